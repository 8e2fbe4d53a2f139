/* SPDX-License-Identifier: GPL-2.0 */
/* Mappings: what copies go to and from. */
#ifndef MILLRACE_MAP_H
#define MILLRACE_MAP_H

#include "millrace.h"

/* Takes over the memory, also when it fails. */
int millrace_map_create(struct millrace_context *ctx, struct millrace_map *arg,
			struct millrace_memory *memory);
void millrace_map_put(struct millrace_map_object *map);
void millrace_map_release_dma(struct millrace_map_object *map);
struct millrace_map_object *millrace_map_new(struct millrace_context *ctx, u64 bytes, u32 flags);
int millrace_map_publish(struct millrace_map_object *map, u32 *handle);
void millrace_map_sync_for_device(struct millrace_map_object *map, u64 offset, u64 bytes);
void millrace_map_sync_for_cpu(struct millrace_map_object *map, u64 offset, u64 bytes);
static inline enum dma_data_direction millrace_map_direction(const struct millrace_map_object *map)
{
	if (!(map->flags & MILLRACE_MAP_WRITE))
		return DMA_TO_DEVICE;
	return map->flags & MILLRACE_MAP_READ ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
}

/* First segment and bytes to skip in it for an offset. */
u32 millrace_map_find(const struct millrace_map_object *map, u64 offset, u32 *skip);

#endif
