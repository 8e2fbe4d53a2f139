// SPDX-License-Identifier: GPL-2.0
/* What copies go to and from: mapped for the device, and listed in its format. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "map.h"
#include "millrace.h"

/*
 * The same memory may be mapped more than once, by several contexts: nothing is
 * synchronised with the mapping, but each job's own part of it with the job.
 */
#define MAP_ATTRS DMA_ATTR_SKIP_CPU_SYNC

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

	if (!map->sgt || map->foreign)
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
