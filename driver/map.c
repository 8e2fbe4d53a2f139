// SPDX-License-Identifier: GPL-2.0
/* Memory for copies: pinned and charged, mapped for the device, listed in its format. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "millrace.h"

/*
 * The same memory may be mapped more than once, by several contexts: nothing is
 * synchronised with the mapping, but each job's own part of it with the job.
 */
#define MAP_ATTRS DMA_ATTR_SKIP_CPU_SYNC

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

/* The device's list: address, length, zero. */
static int list_segments(struct millrace_map_object *map)
{
	struct device *d = &map->ctx->dev->pdev->dev;
	struct scatterlist *sg;
	__le32 *w;
	int i;

	map->segments = map->sgt->nents;
	map->list_bytes = (size_t)map->segments * MR_PCIE_SEG_BYTES;
	map->list = dma_alloc_coherent(d, map->list_bytes, &map->list_dma, GFP_KERNEL);
	if (!map->list)
		return -ENOMEM;
	w = map->list;
	for_each_sgtable_dma_sg(map->sgt, sg, i) {
		w[0] = cpu_to_le32(lower_32_bits(sg_dma_address(sg)));
		w[1] = cpu_to_le32(upper_32_bits(sg_dma_address(sg)));
		w[2] = cpu_to_le32(sg_dma_len(sg));
		w[3] = 0;
		w += MR_PCIE_SEG_BYTES / 4;
	}
	return 0;
}

void millrace_map_release_dma(struct millrace_map_object *map)
{
	struct device *d = &map->ctx->dev->pdev->dev;

	if (map->list)
		dma_free_coherent(d, map->list_bytes, map->list, map->list_dma);
	map->list = NULL;
	if (map->attach) {
		if (map->sgt)
			dma_buf_unmap_attachment_unlocked(map->attach, map->sgt,
							  millrace_map_direction(map));
		dma_buf_detach(map->buf, map->attach);
	} else if (map->sgt) {
		dma_unmap_sgtable(d, map->sgt, millrace_map_direction(map), MAP_ATTRS);
	}
	map->attach = NULL;
	map->sgt = NULL;
}

static void map_release(struct kref *refs)
{
	struct millrace_map_object *map = container_of(refs, struct millrace_map_object, refs);
	struct millrace_device *dev = map->ctx->dev;

	mutex_lock(&dev->down_lock);
	list_del(&map->link);
	if (!map->ctx->down)
		millrace_map_release_dma(map);
	mutex_unlock(&dev->down_lock);
	sg_free_table(&map->own);
	if (map->memory)
		millrace_memory_put(map->memory);
	if (map->buf)
		dma_buf_put(map->buf);
	kfree(map);
}

void millrace_map_put(struct millrace_map_object *map)
{
	kref_put(&map->refs, map_release);
}

u32 millrace_map_find(const struct millrace_map_object *map, u64 offset, u32 *skip)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(map->sgt, sg, i) {
		if (offset < sg_dma_len(sg))
			break;
		offset -= sg_dma_len(sg);
	}
	*skip = offset;
	return i;
}

/*
 * A part of a mapping, for the device or for the CPU. The lists of other exporters
 * are their business: dma-buf has the memory in step from map_dma_buf on.
 */
static void sync_part(struct millrace_map_object *map, u64 offset, u64 bytes, bool device)
{
	struct device *d = &map->ctx->dev->pdev->dev;
	struct scatterlist *sg;
	int i;

	if (!map->sgt || (map->buf && !millrace_exported(map->buf)))
		return;
	for_each_sgtable_dma_sg(map->sgt, sg, i) {
		u64 n = sg_dma_len(sg);

		if (!bytes)
			break;
		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = min_t(u64, n - offset, bytes);
		if (device)
			dma_sync_single_for_device(d, sg_dma_address(sg) + offset, n,
						   millrace_map_direction(map));
		else
			dma_sync_single_for_cpu(d, sg_dma_address(sg) + offset, n,
						millrace_map_direction(map));
		offset = 0;
		bytes -= n;
	}
}

void millrace_map_sync_for_device(struct millrace_map_object *map, u64 offset, u64 bytes)
{
	sync_part(map, offset, bytes, true);
}

void millrace_map_sync_for_cpu(struct millrace_map_object *map, u64 offset, u64 bytes)
{
	sync_part(map, offset, bytes, false);
}

struct millrace_map_object *millrace_map_new(struct millrace_context *ctx, u64 bytes, u32 flags)
{
	struct millrace_map_object *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (!map)
		return NULL;
	kref_init(&map->refs);
	map->ctx = ctx;
	map->bytes = bytes;
	map->flags = flags;
	mutex_lock(&ctx->dev->down_lock);
	list_add(&map->link, &ctx->map_list);
	mutex_unlock(&ctx->dev->down_lock);
	return map;
}

/* The last step: from here on the handle can be used. */
int millrace_map_publish(struct millrace_map_object *map, u32 *handle)
{
	int ret = list_segments(map);

	if (!ret)
		ret = xa_alloc(&map->ctx->maps, handle, map, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	return ret;
}

static int map_memory(struct millrace_map_object *map)
{
	struct millrace_memory *memory = map->memory;
	struct device *d = &map->ctx->dev->pdev->dev;
	int ret;

	ret = sg_alloc_table_from_pages_segment(&map->own, memory->pages, memory->npages,
						memory->offset, memory->bytes,
						dma_get_max_seg_size(d), GFP_KERNEL);
	if (ret)
		return ret;
	ret = dma_map_sgtable(d, &map->own, millrace_map_direction(map), MAP_ATTRS);
	if (!ret)
		map->sgt = &map->own;
	return ret == -EIO ? -ENOMEM : ret; /* no room in the IOMMU, or to bounce */
}

int millrace_map_create(struct millrace_context *ctx, struct millrace_map *arg,
			struct millrace_memory *memory)
{
	struct millrace_map_object *map;
	u32 handle;
	int ret;

	map = millrace_map_new(ctx, arg->bytes, arg->flags);
	if (!map) {
		millrace_memory_put(memory);
		return -ENOMEM;
	}
	map->memory = memory;
	ret = map_memory(map);
	if (!ret)
		ret = millrace_map_publish(map, &handle);
	if (ret) {
		millrace_map_put(map);
		return ret;
	}
	arg->handle = handle;
	return 0;
}
