// SPDX-License-Identifier: GPL-2.0
/*
 * dma-buf: a mapping's memory for other devices, processes and contexts, and any
 * exporter's memory as a mapping.
 *
 * An exported buffer refers to the pinned memory and to nothing else, so it
 * outlives handle, context, file and device, and nothing that it is imported into
 * can lead back to it. No lock of the driver is taken in what exporters call.
 */
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "map.h"
#include "millrace.h"

MODULE_IMPORT_NS(DMA_BUF);

struct export {
	struct millrace_memory *memory;
	struct user_struct *user; /* that is charged */
	bool writable;
	struct mutex lock; /* attachments */
	struct list_head attachments;
};

struct attachment {
	struct list_head link;
	struct device *dev;
	struct sg_table sgt;
	enum dma_data_direction dir;
	bool mapped;
	bool own; /* of this driver, which keeps each job's part in step itself */
};

/* What this driver's attachments are known by. */
static const char importer;

/* ---- what importers call -------------------------------------------------------------------- */

static int export_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct export *e = buf->priv;
	struct millrace_memory *memory = e->memory;
	struct attachment *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int ret;

	if (!a)
		return -ENOMEM;
	ret = sg_alloc_table_from_pages_segment(&a->sgt, memory->pages, memory->npages, 0,
						memory->bytes, dma_get_max_seg_size(attach->dev),
						GFP_KERNEL);
	if (ret) {
		kfree(a);
		return ret;
	}
	a->dev = attach->dev;
	a->own = attach->importer_priv == &importer;
	attach->priv = a;
	mutex_lock(&e->lock);
	list_add(&a->link, &e->attachments);
	mutex_unlock(&e->lock);
	return 0;
}

static void export_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct export *e = buf->priv;
	struct attachment *a = attach->priv;

	mutex_lock(&e->lock);
	list_del(&a->link);
	mutex_unlock(&e->lock);
	sg_free_table(&a->sgt);
	kfree(a);
}

static struct sg_table *export_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct export *e = attach->dmabuf->priv;
	struct attachment *a = attach->priv;
	int ret;

	if (dir != DMA_TO_DEVICE && !e->writable)
		return ERR_PTR(-EACCES);
	ret = dma_map_sgtable(a->dev, &a->sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (ret)
		return ERR_PTR(ret);
	mutex_lock(&e->lock);
	a->dir = dir;
	a->mapped = true;
	if (!a->own)
		dma_sync_sgtable_for_device(a->dev, &a->sgt, dir);
	mutex_unlock(&e->lock);
	return &a->sgt;
}

static void export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	struct export *e = attach->dmabuf->priv;
	struct attachment *a = attach->priv;

	mutex_lock(&e->lock);
	if (!a->own)
		dma_sync_sgtable_for_cpu(a->dev, sgt, dir);
	a->mapped = false;
	mutex_unlock(&e->lock);
	dma_unmap_sgtable(a->dev, sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
}

static int export_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct export *e = buf->priv;
	struct attachment *a;

	mutex_lock(&e->lock);
	list_for_each_entry(a, &e->attachments, link)
		if (a->mapped && !a->own)
			dma_sync_sgtable_for_cpu(a->dev, &a->sgt, a->dir);
	mutex_unlock(&e->lock);
	return 0;
}

static int export_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct export *e = buf->priv;
	struct attachment *a;

	mutex_lock(&e->lock);
	list_for_each_entry(a, &e->attachments, link)
		if (a->mapped && !a->own)
			dma_sync_sgtable_for_device(a->dev, &a->sgt, a->dir);
	mutex_unlock(&e->lock);
	return 0;
}

/*
 * Pages of a process cannot be given to another one as such, only their addresses;
 * the vma holds the buffer's file, that its memory. dma-buf has checked the range.
 */
static int export_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct export *e = buf->priv;
	unsigned long i;
	int ret = 0;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (!e->writable && vma->vm_flags & (VM_WRITE | VM_MAYWRITE))
		return -EACCES;
	for (i = 0; !ret && i < vma_pages(vma); i++)
		ret = remap_pfn_range(vma, vma->vm_start + i * PAGE_SIZE,
				      page_to_pfn(e->memory->pages[vma->vm_pgoff + i]),
				      PAGE_SIZE, vma->vm_page_prot);
	return ret;
}

static int export_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct export *e = buf->priv;
	void *p = vmap(e->memory->pages, e->memory->npages, VM_MAP,
		       e->writable ? PAGE_KERNEL : PAGE_KERNEL_RO);

	if (!p)
		return -ENOMEM;
	iosys_map_set_vaddr(map, p);
	return 0;
}

static void export_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	vunmap(map->vaddr);
}

static void uncharge(struct export *e)
{
	atomic_long_sub(e->memory->npages, &e->user->locked_vm);
	free_uid(e->user);
}

static void export_release(struct dma_buf *buf)
{
	struct export *e = buf->priv;

	uncharge(e);
	millrace_memory_put(e->memory);
	kfree(e);
}

static const struct dma_buf_ops export_ops = {
	.attach = export_attach,
	.detach = export_detach,
	.map_dma_buf = export_map,
	.unmap_dma_buf = export_unmap,
	.begin_cpu_access = export_begin,
	.end_cpu_access = export_end,
	.mmap = export_mmap,
	.vmap = export_vmap,
	.vunmap = export_vunmap,
	.release = export_release,
};

/* By this driver. */
static bool is_ours(const struct dma_buf *buf)
{
	return buf->ops == &export_ops;
}

/* ---- ioctls --------------------------------------------------------------------------------- */

/*
 * Beside what its process is charged with, since it outlives the process: what a
 * user has exported stays within RLIMIT_MEMLOCK.
 */
static int charge_user(struct export *e)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT, total;

	e->user = get_uid(current_user());
	total = atomic_long_add_return(e->memory->npages, &e->user->locked_vm);
	if (total <= limit || capable(CAP_IPC_LOCK))
		return 0;
	uncharge(e);
	return -ENOMEM;
}

static struct dma_buf *export_memory(struct millrace_memory *memory, bool writable)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct export *e = kzalloc(sizeof(*e), GFP_KERNEL_ACCOUNT);
	struct dma_buf *buf;
	int ret;

	if (!e)
		return ERR_PTR(-ENOMEM);
	e->memory = memory;
	e->writable = writable;
	mutex_init(&e->lock);
	INIT_LIST_HEAD(&e->attachments);
	ret = charge_user(e);
	if (ret) {
		kfree(e);
		return ERR_PTR(ret);
	}
	info.ops = &export_ops;
	info.size = memory->bytes;
	info.flags = O_CLOEXEC | (writable ? O_RDWR : O_RDONLY);
	info.priv = e;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		uncharge(e);
		kfree(e);
		return buf;
	}
	kref_get(&memory->refs);
	return buf;
}

/* Returns the file too, which the caller installs at arg->fd when nothing can fail any more. */
int millrace_export(struct millrace_context *ctx, struct millrace_export *arg, struct file **file)
{
	struct millrace_map_object *map;
	struct dma_buf *buf;
	int fd;

	if (!(arg->flags & MILLRACE_MAP_READ) ||
	    arg->flags & ~(MILLRACE_MAP_READ | MILLRACE_MAP_WRITE) || arg->fd || arg->reserved)
		return -EINVAL;
	map = xa_load(&ctx->maps, arg->handle);
	if (!map)
		return -ENOENT;
	/* Who maps the buffer sees whole pages, so it has to have them. */
	if (!map->memory || map->memory->offset || !PAGE_ALIGNED(map->bytes))
		return -EINVAL;
	if (arg->flags & ~map->flags)
		return -EACCES;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	buf = export_memory(map->memory, arg->flags & MILLRACE_MAP_WRITE);
	if (IS_ERR(buf)) {
		put_unused_fd(fd);
		return PTR_ERR(buf);
	}
	arg->fd = fd;
	*file = buf->file;
	return 0;
}

/* An exporter's list must have the bytes that its buffer promises. */
static bool all_there(const struct sg_table *sgt, u64 bytes)
{
	struct scatterlist *sg;
	u64 sum = 0;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i)
		sum += sg_dma_len(sg);
	return sum >= bytes;
}

static int attach(struct millrace_map_object *map)
{
	struct dma_buf_attachment *at;
	struct sg_table *sgt;

	/* Without move_notify, so static: the memory stays where it is. */
	at = dma_buf_dynamic_attach(map->buf, &map->ctx->dev->pdev->dev, NULL, (void *)&importer);
	if (IS_ERR(at))
		return PTR_ERR(at);
	map->attach = at;
	sgt = dma_buf_map_attachment_unlocked(at, millrace_map_direction(map));
	if (IS_ERR_OR_NULL(sgt))
		return sgt ? PTR_ERR(sgt) : -ENOMEM;
	map->sgt = sgt;
	return all_there(sgt, map->bytes) ? 0 : -EINVAL;
}

int millrace_import(struct millrace_context *ctx, struct millrace_import *arg)
{
	struct millrace_map_object *map;
	struct dma_buf *buf;
	u32 handle;
	int ret = 0;

	if (!arg->flags || arg->flags & ~(MILLRACE_MAP_READ | MILLRACE_MAP_WRITE) ||
	    arg->handle || arg->reserved || arg->bytes)
		return -EINVAL;
	buf = dma_buf_get(arg->fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (!buf->size || buf->size > MILLRACE_MAP_BYTES_MAX)
		ret = -EINVAL;
	else if (arg->flags & MILLRACE_MAP_WRITE && !(buf->file->f_mode & FMODE_WRITE))
		ret = -EACCES;
	map = ret ? NULL : millrace_map_new(ctx, buf->size, arg->flags);
	if (!map) {
		dma_buf_put(buf);
		return ret ?: -ENOMEM;
	}
	map->buf = buf;
	map->foreign = !is_ours(buf);
	ret = attach(map);
	if (!ret)
		ret = millrace_map_publish(map, &handle);
	if (ret) {
		millrace_map_put(map);
		/* No room in the IOMMU, or to bounce; an exporter's own reasons. */
		return ret == -EIO ? -ENOMEM : ret;
	}
	arg->handle = handle;
	arg->bytes = map->bytes;
	return 0;
}
