// SPDX-License-Identifier: GPL-2.0
/*
 * The other side, where the machine of the tests has none: an importer of dma-bufs, whose
 * device is the processor following bus addresses (x86 without an IOMMU: they are physical
 * ones), and a PCI core that meets what it does not meet there. For tests only.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "peer.h"

MODULE_IMPORT_NS(DMA_BUF);

struct peer {
	struct mutex lock;
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt; /* NULL: not mapped */
	enum dma_data_direction dir;
};

static struct platform_device *device;

/* ---- PCI errors ----------------------------------------------------------------------------- */

static int call_handler(struct pci_dev *pdev, struct peer_call *c)
{
	const struct pci_error_handlers *h = pdev->driver ? pdev->driver->err_handler : NULL;

	if (!h)
		return -ENODEV;
	switch (c->callback) {
	case PEER_ERROR_DETECTED:
		c->result = h->error_detected(pdev, c->state);
		return 0;
	case PEER_MMIO_ENABLED:
		c->result = h->mmio_enabled(pdev);
		return 0;
	case PEER_SLOT_RESET:
		c->result = h->slot_reset(pdev);
		return 0;
	case PEER_RESUME:
		h->resume(pdev);
		return 0;
	}
	return -EINVAL;
}

static int call(struct peer_call *c)
{
	struct pci_dev *pdev = pci_get_device(0x1234, 0x4d52, NULL);
	int ret;

	if (!pdev)
		return -ENODEV;
	device_lock(&pdev->dev);
	ret = call_handler(pdev, c);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return ret;
}

/* ---- dma-buf -------------------------------------------------------------------------------- */

/* The memory stays where it is for all of the driver's buffers' lives, so nobody calls it. */
static void move_notify(struct dma_buf_attachment *attach)
{
	WARN(1, "peer: moved\n");
}

static const struct dma_buf_attach_ops dynamic_ops = { .move_notify = move_notify };

static void unmap(struct peer *p)
{
	if (p->sgt)
		dma_buf_unmap_attachment_unlocked(p->attach, p->sgt, p->dir);
	p->sgt = NULL;
}

static void detach(struct peer *p)
{
	unmap(p);
	if (p->attach)
		dma_buf_detach(p->buf, p->attach);
	p->attach = NULL;
	if (p->buf)
		dma_buf_put(p->buf);
	p->buf = NULL;
}

static int attach(struct peer *p, const struct peer_attach *a)
{
	struct sg_table *sgt;

	if (p->buf)
		return -EBUSY;
	p->buf = dma_buf_get(a->fd);
	if (IS_ERR(p->buf)) {
		int ret = PTR_ERR(p->buf);

		p->buf = NULL;
		return ret;
	}
	p->attach = dma_buf_dynamic_attach(p->buf, &device->dev, a->dynamic ? &dynamic_ops : NULL,
					   p);
	if (IS_ERR(p->attach)) {
		int ret = PTR_ERR(p->attach);

		p->attach = NULL;
		detach(p);
		return ret;
	}
	p->dir = a->write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
	sgt = dma_buf_map_attachment_unlocked(p->attach, p->dir);
	if (IS_ERR(sgt)) {
		detach(p);
		return PTR_ERR(sgt);
	}
	p->sgt = sgt;
	return 0;
}

static int copy(void *memory, u64 user, u64 n, bool write)
{
	void __user *u = u64_to_user_ptr(user);

	return (write ? copy_from_user(memory, u, n) : copy_to_user(u, memory, n)) ? -EFAULT : 0;
}

/* A page at a time: what is next to it on the bus is not in the processor's view of a page. */
static int access_device(struct peer *p, const struct peer_access *a)
{
	u64 at = a->offset, user = a->user, left = a->bytes;
	struct scatterlist *sg;
	int i, ret;

	if (!p->sgt)
		return -ENXIO;
	for_each_sgtable_dma_sg(p->sgt, sg, i) {
		u64 length = sg_dma_len(sg), skip = min(at, length);

		for (at -= skip; left && skip < length;) {
			phys_addr_t phys = sg_dma_address(sg) + skip;
			u64 n = min3(left, length - skip, (u64)(PAGE_SIZE - offset_in_page(phys)));

			ret = copy(phys_to_virt(phys), user, n, a->write);
			if (ret)
				return ret;
			skip += n;
			user += n;
			left -= n;
		}
	}
	return left ? -ERANGE : 0;
}

static int access_vmap(struct peer *p, const struct peer_access *a)
{
	struct iosys_map map;
	int ret;

	if (!p->buf || a->offset > p->buf->size || a->bytes > p->buf->size - a->offset)
		return -ERANGE;
	dma_resv_lock(p->buf->resv, NULL);
	ret = dma_buf_vmap(p->buf, &map);
	dma_resv_unlock(p->buf->resv);
	if (ret)
		return ret;
	ret = copy(map.vaddr + a->offset, a->user, a->bytes, a->write);
	dma_resv_lock(p->buf->resv, NULL);
	dma_buf_vunmap(p->buf, &map);
	dma_resv_unlock(p->buf->resv);
	return ret;
}

/* ---- the node ------------------------------------------------------------------------------- */

static int peer_open(struct inode *inode, struct file *file)
{
	struct peer *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	mutex_init(&p->lock);
	file->private_data = p;
	return 0;
}

static int peer_release(struct inode *inode, struct file *file)
{
	struct peer *p = file->private_data;

	detach(p);
	kfree(p);
	return 0;
}

static long peer_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	struct peer *p = file->private_data;
	union {
		struct peer_call call;
		struct peer_attach attach;
		struct peer_access access;
	} arg;
	int ret = 0;

	if (_IOC_SIZE(cmd) > sizeof(arg))
		return -ENOTTY;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, (void __user *)user, _IOC_SIZE(cmd)))
		return -EFAULT;
	mutex_lock(&p->lock);
	switch (cmd) {
	case PEER_IOC_CALL:
		ret = call(&arg.call);
		break;
	case PEER_IOC_ATTACH:
		ret = attach(p, &arg.attach);
		break;
	case PEER_IOC_ACCESS:
		ret = arg.access.vmap ? access_vmap(p, &arg.access) : access_device(p, &arg.access);
		break;
	case PEER_IOC_UNMAP:
		unmap(p);
		break;
	case PEER_IOC_DETACH:
		detach(p);
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&p->lock);
	if (!ret && _IOC_DIR(cmd) & _IOC_READ &&
	    copy_to_user((void __user *)user, &arg, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

static const struct file_operations peer_fops = {
	.owner = THIS_MODULE,
	.open = peer_open,
	.release = peer_release,
	.unlocked_ioctl = peer_ioctl,
};

static struct miscdevice peer_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "peer",
	.fops = &peer_fops,
	.mode = 0600,
};

static int __init peer_init(void)
{
	int ret;

	device = platform_device_register_simple("peer", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device))
		return PTR_ERR(device);
	ret = dma_set_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = misc_register(&peer_misc);
	if (ret)
		platform_device_unregister(device);
	return ret;
}
module_init(peer_init);

static void __exit peer_exit(void)
{
	misc_deregister(&peer_misc);
	platform_device_unregister(device);
}
module_exit(peer_exit);

MODULE_DESCRIPTION("The other side of the driver's dma-bufs and error callbacks, for tests");
MODULE_LICENSE("GPL");
