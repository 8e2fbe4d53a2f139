// SPDX-License-Identifier: GPL-2.0
/* User memory for copies: pinned and charged, mapped for the device, listed in its format. */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "millrace.h"

static enum dma_data_direction direction(const struct millrace_map_object *map)
{
	if (!(map->flags & MILLRACE_MAP_WRITE))
		return DMA_TO_DEVICE;
	return map->flags & MILLRACE_MAP_READ ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
}

/* Against RLIMIT_MEMLOCK, together with whatever else is pinned for this mm. */
static int charge(struct millrace_map_object *map)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long total = atomic64_add_return(map->npages, &current->mm->pinned_vm);

	if (total > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(map->npages, &current->mm->pinned_vm);
		return -ENOMEM;
	}
	map->mm = current->mm;
	mmgrab(map->mm);
	return 0;
}

/*
 * Memory that has not been written yet is a page of zeros that all share: pinned
 * for reading it would stay that, and the device never see what is written later.
 * Such a page has no mapping. (From 6.2 on, pinning replaces it by itself.)
 */
static void own_pages(struct page **pages, int n, unsigned long user, unsigned int flags)
{
	int i;

	for (i = 0; i < n; i++) {
		struct page *page;

		if (compound_head(pages[i])->mapping)
			continue;
		if (pin_user_pages_fast(user + i * PAGE_SIZE, 1, flags | FOLL_WRITE | FOLL_FORCE,
					&page) != 1)
			continue; /* read-only for good, so nothing is written later */
		unpin_user_page(pages[i]);
		pages[i] = page;
	}
}

static int pin(struct millrace_map_object *map, u64 user)
{
	unsigned int flags = FOLL_LONGTERM | (map->flags & MILLRACE_MAP_WRITE ? FOLL_WRITE : 0);
	unsigned long got = 0;

	map->pages = kvcalloc(map->npages, sizeof(*map->pages), GFP_KERNEL_ACCOUNT);
	if (!map->pages)
		return -ENOMEM;
	while (got < map->npages) {
		int n = pin_user_pages_fast((user & PAGE_MASK) + got * PAGE_SIZE,
					    min_t(unsigned long, map->npages - got, 4096),
					    flags, map->pages + got);

		if (n <= 0 || fatal_signal_pending(current)) {
			unpin_user_pages(map->pages, got + max(n, 0));
			kvfree(map->pages);
			map->pages = NULL;
			return n < 0 ? n : n ? -EINTR : -EFAULT;
		}
		if (!(map->flags & MILLRACE_MAP_WRITE))
			own_pages(map->pages + got, n, (user & PAGE_MASK) + got * PAGE_SIZE, flags);
		got += n;
	}
	return 0;
}

/* The device's list: address, length, zero. */
static int list_segments(struct millrace_map_object *map)
{
	struct device *d = &map->ctx->dev->pdev->dev;
	struct scatterlist *sg;
	__le32 *w;
	int i;

	map->segments = map->sgt.nents;
	map->list_bytes = (size_t)map->segments * MR_PCIE_SEG_BYTES;
	map->list = dma_alloc_coherent(d, map->list_bytes, &map->list_dma, GFP_KERNEL);
	if (!map->list)
		return -ENOMEM;
	w = map->list;
	for_each_sgtable_dma_sg(&map->sgt, sg, i) {
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
	if (map->mapped)
		dma_unmap_sgtable(d, &map->sgt, direction(map), 0);
	map->mapped = false;
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
	sg_free_table(&map->sgt);
	if (map->pages)
		unpin_user_pages_dirty_lock(map->pages, map->npages,
					    map->flags & MILLRACE_MAP_WRITE);
	kvfree(map->pages);
	if (map->mm) {
		atomic64_sub(map->npages, &map->mm->pinned_vm);
		mmdrop(map->mm);
	}
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

	for_each_sgtable_dma_sg(&map->sgt, sg, i) {
		if (offset < sg_dma_len(sg))
			break;
		offset -= sg_dma_len(sg);
	}
	*skip = offset;
	return i;
}

int millrace_map_create(struct millrace_context *ctx, struct millrace_map *arg)
{
	struct millrace_map_object *map;
	u32 handle;
	int ret;

	if (!arg->flags || arg->flags & ~(MILLRACE_MAP_READ | MILLRACE_MAP_WRITE) || !arg->bytes ||
	    arg->bytes > MILLRACE_MAP_BYTES_MAX || arg->user + arg->bytes < arg->user ||
	    arg->user != (unsigned long)arg->user || arg->handle)
		return -EINVAL;
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return -ENOMEM;
	kref_init(&map->refs);
	map->ctx = ctx;
	map->bytes = arg->bytes;
	map->flags = arg->flags;
	mutex_lock(&ctx->dev->down_lock);
	list_add(&map->link, &ctx->map_list);
	mutex_unlock(&ctx->dev->down_lock);
	map->npages = DIV_ROUND_UP(offset_in_page(arg->user) + arg->bytes, PAGE_SIZE);
	ret = charge(map);
	if (!ret)
		ret = pin(map, arg->user);
	if (!ret)
		ret = sg_alloc_table_from_pages_segment(&map->sgt, map->pages, map->npages,
							offset_in_page(arg->user), map->bytes,
							dma_get_max_seg_size(&ctx->dev->pdev->dev),
							GFP_KERNEL);
	if (!ret) {
		ret = dma_map_sgtable(&ctx->dev->pdev->dev, &map->sgt, direction(map), 0);
		map->mapped = !ret;
		if (ret == -EIO) /* no room in the IOMMU, or to bounce: less may fit */
			ret = -ENOMEM;
	}
	if (!ret)
		ret = list_segments(map);
	if (!ret)
		ret = xa_alloc(&ctx->maps, &handle, map, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret) {
		millrace_map_put(map);
		return ret;
	}
	arg->handle = handle;
	return 0;
}
