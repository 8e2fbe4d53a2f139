// SPDX-License-Identifier: GPL-2.0
/* User memory for copies: pinned, and charged to its process. */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "millrace.h"

/* Against RLIMIT_MEMLOCK, together with whatever else is pinned for this mm. */
static int charge(struct millrace_memory *memory)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long total = atomic64_add_return(memory->npages, &current->mm->pinned_vm);

	if (total > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(memory->npages, &current->mm->pinned_vm);
		return -ENOMEM;
	}
	memory->mm = current->mm;
	mmgrab(memory->mm);
	return 0;
}

/* Whether writing there gives the program a page of its own in place of one that it shares. */
static bool copied_when_written(unsigned long at)
{
	struct vm_area_struct *vma;
	bool copied;

	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, at);
	copied = vma && is_cow_mapping(vma->vm_flags);
	mmap_read_unlock(current->mm);
	return copied;
}

/*
 * Memory that has not been written yet is a page of zeros, or of a file, that others
 * share: pinned for reading it would stay that, and the device never see what is
 * written later. (From 6.2 on, pinning replaces it by itself.)
 */
static void own_pages(struct page **pages, int n, unsigned long user, unsigned int flags)
{
	int i;

	for (i = 0; i < n; i++) {
		unsigned long at = user + i * PAGE_SIZE;
		struct page *page;

		if (PageAnon(pages[i]) || !copied_when_written(at))
			continue;
		if (pin_user_pages_fast(at, 1, flags | FOLL_WRITE | FOLL_FORCE, &page) != 1)
			continue; /* read-only for good, so nothing is written later */
		unpin_user_page(pages[i]);
		pages[i] = page;
	}
}

static int pin(struct millrace_memory *memory, u64 user)
{
	unsigned int flags = FOLL_LONGTERM | (memory->written ? FOLL_WRITE : 0);
	unsigned long got = 0;

	memory->pages = kvcalloc(memory->npages, sizeof(*memory->pages), GFP_KERNEL_ACCOUNT);
	if (!memory->pages)
		return -ENOMEM;
	while (got < memory->npages) {
		int n = pin_user_pages_fast((user & PAGE_MASK) + got * PAGE_SIZE,
					    min_t(unsigned long, memory->npages - got, 4096),
					    flags, memory->pages + got);

		if (n <= 0 || fatal_signal_pending(current)) {
			unpin_user_pages(memory->pages, got + max(n, 0));
			kvfree(memory->pages);
			memory->pages = NULL;
			return n < 0 ? n : n ? -EINTR : -EFAULT;
		}
		if (!memory->written)
			own_pages(memory->pages + got, n, (user & PAGE_MASK) + got * PAGE_SIZE,
				  flags);
		got += n;
	}
	return 0;
}

static void memory_release(struct kref *refs)
{
	struct millrace_memory *memory = container_of(refs, struct millrace_memory, refs);

	if (memory->pages)
		unpin_user_pages_dirty_lock(memory->pages, memory->npages, memory->written);
	kvfree(memory->pages);
	if (memory->mm) {
		atomic64_sub(memory->npages, &memory->mm->pinned_vm);
		mmdrop(memory->mm);
	}
	kfree(memory);
}

void millrace_memory_put(struct millrace_memory *memory)
{
	kref_put(&memory->refs, memory_release);
}

struct millrace_memory *millrace_memory_create(const struct millrace_map *arg)
{
	struct millrace_memory *memory;
	int ret;

	if (!arg->flags || arg->flags & ~(MILLRACE_MAP_READ | MILLRACE_MAP_WRITE) || !arg->bytes ||
	    arg->bytes > MILLRACE_MAP_BYTES_MAX || arg->user + arg->bytes < arg->user ||
	    arg->user != (unsigned long)arg->user || arg->handle)
		return ERR_PTR(-EINVAL);
	memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	kref_init(&memory->refs);
	memory->bytes = arg->bytes;
	memory->offset = offset_in_page(arg->user);
	memory->npages = DIV_ROUND_UP(memory->offset + arg->bytes, PAGE_SIZE);
	memory->written = arg->flags & MILLRACE_MAP_WRITE;
	ret = charge(memory);
	if (!ret)
		ret = pin(memory, arg->user);
	if (ret) {
		millrace_memory_put(memory);
		return ERR_PTR(ret);
	}
	return memory;
}
