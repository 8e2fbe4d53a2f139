// SPDX-License-Identifier: GPL-2.0
/* The device: what probe verifies before anything is trusted, and safe removal. */
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/module.h>

#include "millrace.h"

#define CAPS_MAX 16 /* of the list, so that a broken one ends */
#define WATCHDOG_LOG2 24 /* cycles without progress of a run */

static DEFINE_IDA(millrace_ida);
struct dentry *millrace_debugfs_root;

int millrace_enter(struct millrace_device *dev)
{
	down_read(&dev->alive);
	if (!dev->gone)
		return 0;
	up_read(&dev->alive);
	return -ENODEV;
}

void millrace_exit(struct millrace_device *dev)
{
	up_read(&dev->alive);
}

static void device_release(struct kref *refs)
{
	kfree(container_of(refs, struct millrace_device, refs));
}

void millrace_device_put(struct millrace_device *dev)
{
	kref_put(&dev->refs, device_release);
}

/* Takes over one capability; offsets and sizes must lie within the BAR. */
static int take_capability(struct millrace_device *dev, u32 id, u32 at, u32 a, u32 b)
{
	switch (id) {
	case MR_PCIE_CAP_ENGINE:
		if (at % 4 || at > dev->bar_bytes || a < 0x1000 || a > dev->bar_bytes - at)
			return -EINVAL;
		dev->engine_at = at;
		break;
	case MR_PCIE_CAP_QUEUES:
		if (at % 4 || !a || a > MILLRACE_QUEUES_MAX || at > dev->bar_bytes ||
		    a * MR_PCIE_Q_STRIDE > dev->bar_bytes - at || b < MILLRACE_RING_LOG2)
			return -EINVAL;
		dev->queues_at = at;
		dev->queues = a;
		break;
	case MR_PCIE_CAP_MEMORY:
		if (!a || a > MILLRACE_CHANNELS_MAX || b < PAGE_SHIFT || b > 36)
			return -EINVAL;
		dev->channels = a;
		dev->mem_log2 = b;
		break;
	case MR_PCIE_CAP_COPY:
		if (a < 26)
			return -EINVAL;
		break;
	case MR_PCIE_CAP_SCRUB:
		if (at % 8 || at > dev->bar_bytes - 8)
			return -EINVAL;
		dev->scrub_at = at;
		break;
	default: /* of a later version, and no business of ours */
		break;
	}
	return 0;
}

static int read_capabilities(struct millrace_device *dev)
{
	u32 at = millrace_read(dev, MR_PCIE_REG_CAPS), n, word;
	int ret;

	for (n = 0; at && n < CAPS_MAX; n++) {
		if (at % 4 || at > dev->bar_bytes - 16)
			return -EINVAL;
		word = millrace_read(dev, at);
		ret = take_capability(dev, word & 0xffff, millrace_read(dev, at + 4),
				      millrace_read(dev, at + 8), millrace_read(dev, at + 12));
		if (ret)
			return ret;
		at = word >> 16;
	}
	return at || !dev->engine_at || !dev->queues || !dev->channels || !dev->scrub_at ?
		-EINVAL : 0;
}

/* Nothing is written but SCRATCH until all the rest of this holds. */
static int verify(struct millrace_device *dev)
{
	struct device *d = &dev->pdev->dev;
	u32 magic = millrace_read(dev, MR_PCIE_REG_MAGIC), i;

	if (magic == U32_MAX)
		return dev_err_probe(d, -EIO, "device does not answer: it needs a reset\n");
	if (magic != MR_PCIE_MAGIC)
		return dev_err_probe(d, -ENODEV, "not a Millrace device (magic 0x%08x)\n", magic);
	dev->version = millrace_read(dev, MR_PCIE_REG_VERSION);
	if (dev->version >> 16 != MR_PCIE_VERSION_MAJOR)
		return dev_err_probe(d, -ENODEV, "register interface %u.%u, driver knows %u\n",
				     dev->version >> 16, dev->version & 0xffff,
				     MR_PCIE_VERSION_MAJOR);
	if (read_capabilities(dev))
		return dev_err_probe(d, -ENODEV, "bad capability list\n");
	for (i = 0; i < MILLRACE_INFO_ENGINE_WORDS; i++)
		dev->engine[i] = millrace_read(dev, dev->engine_at + MR_REG_MAGIC + 4 * i);
	if (dev->engine[0] != MR_MAGIC_REG ||
	    (dev->engine[(MR_REG_GEOMETRY - MR_REG_MAGIC) / 4] & 0xff) != dev->channels)
		return dev_err_probe(d, -ENODEV, "engine and wrapper disagree\n");
	millrace_write(dev, MR_PCIE_REG_SCRATCH, 0x5a17c0de);
	if (millrace_read(dev, MR_PCIE_REG_SCRATCH) != 0x5a17c0de)
		return dev_err_probe(d, -EIO, "writes do not arrive\n");
	/* A program that waits for itself ends in an error, long before its ring's time-out. */
	millrace_write(dev, dev->engine_at + MR_REG_WATCHDOG, WATCHDOG_LOG2);
	return 0;
}

/* Rings that an earlier driver left running are stopped before bus mastering. */
static int quiesce(struct millrace_device *dev)
{
	u32 q;

	for (q = 0; q < dev->queues; q++)
		millrace_write(dev, dev->queues_at + q * MR_PCIE_Q_STRIDE + MR_PCIE_Q_CTRL, 0);
	if (millrace_read(dev, MR_PCIE_REG_STATUS) & MR_PCIE_STATUS_BUSY)
		return dev_err_probe(&dev->pdev->dev, -EBUSY, "device is busy: it needs a reset\n");
	return 0;
}

static int map_bar(struct millrace_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "cannot be enabled\n");
	if (!(pci_resource_flags(pdev, 0) & IORESOURCE_MEM) ||
	    pci_resource_len(pdev, 0) < MR_PCIE_BAR_BYTES)
		return dev_err_probe(&pdev->dev, -ENODEV, "BAR 0 is %pR\n", &pdev->resource[0]);
	ret = pcim_iomap_regions(pdev, BIT(0), KBUILD_MODNAME);
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "BAR 0 cannot be mapped\n");
	dev->bar = pcim_iomap_table(pdev)[0];
	dev->bar_bytes = pci_resource_len(pdev, 0);
	return 0;
}

static int set_dma_masks(struct pci_dev *pdev)
{
	int ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));

	if (ret)
		ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(32));
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "no usable DMA mask\n");
	/* Bounced memory comes in smaller pieces. */
	dma_set_max_seg_size(&pdev->dev, min_t(size_t, SZ_1G, dma_max_mapping_size(&pdev->dev)));
	return 0;
}

static int millrace_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct millrace_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int ret;

	if (!dev)
		return -ENOMEM;
	ret = ida_alloc(&millrace_ida, GFP_KERNEL);
	if (ret < 0) {
		kfree(dev);
		return ret;
	}
	dev->index = ret;
	snprintf(dev->name, sizeof(dev->name), "millrace%d", dev->index);
	kref_init(&dev->refs);
	dev->pdev = pdev;
	init_rwsem(&dev->alive);
	mutex_init(&dev->down_lock);
	mutex_init(&dev->lock);

	ret = map_bar(dev);
	if (!ret)
		ret = verify(dev);
	if (!ret)
		ret = set_dma_masks(pdev);
	if (!ret)
		ret = quiesce(dev);
	if (!ret)
		ret = millrace_card_init(dev);
	if (ret)
		goto err_put;
	pci_set_master(pdev);
	ret = millrace_install_scrub(dev);
	if (ret)
		goto err_card;
	ret = millrace_irq_init(dev);
	if (ret)
		goto err_card;
	pci_set_drvdata(pdev, dev);
	dev->misc = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR,
		.name = dev->name,
		.fops = &millrace_fops,
		.parent = &pdev->dev,
		.groups = millrace_groups,
		.mode = 0660,
	};
	ret = misc_register(&dev->misc);
	if (ret)
		goto err_irq;
	millrace_debugfs_init(dev);
	dev_info(&pdev->dev, "%s: %u channel%s of %llu MiB, %u rings, %d vectors\n", dev->name,
		 dev->channels, dev->channels == 1 ? "" : "s", BIT_ULL(dev->mem_log2) >> 20,
		 dev->queues, dev->vectors);
	return 0;

err_irq:
	millrace_irq_exit(dev);
err_card:
	pci_clear_master(pdev);
	millrace_card_exit(dev);
err_put:
	ida_free(&millrace_ida, dev->index);
	millrace_device_put(dev);
	return ret;
}

static void millrace_remove(struct pci_dev *pdev)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);
	u32 q;

	misc_deregister(&dev->misc); /* no file is opened from here on */
	millrace_debugfs_exit(dev);
	ida_free(&millrace_ida, dev->index);

	/* Waits end, accesses under way are let finish, none begins. */
	mutex_lock(&dev->lock);
	for (q = 0; q < dev->queues; q++)
		if (dev->contexts[q])
			millrace_queue_fail(dev->contexts[q], -ENODEV);
	mutex_unlock(&dev->lock);
	down_write(&dev->alive);
	dev->gone = true;
	up_write(&dev->alive);

	millrace_irq_exit(dev);
	mutex_lock(&dev->down_lock);
	for (q = 0; q < dev->queues; q++)
		if (dev->contexts[q])
			millrace_context_down(dev->contexts[q]);
	mutex_unlock(&dev->down_lock);
	pci_clear_master(pdev);
	millrace_card_exit(dev);
	dev->bar = NULL; /* unmapped by pcim_ */
	dev->pdev = NULL;
	millrace_device_put(dev);
}

static const struct pci_device_id millrace_ids[] = {
	{ PCI_DEVICE(MR_PCIE_VENDOR, MR_PCIE_DEVICE) },
	{}
};
MODULE_DEVICE_TABLE(pci, millrace_ids);

static struct pci_driver millrace_driver = {
	.name = KBUILD_MODNAME,
	.id_table = millrace_ids,
	.probe = millrace_probe,
	.remove = millrace_remove,
};

static int __init millrace_init(void)
{
	int ret;

	millrace_debugfs_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
	ret = pci_register_driver(&millrace_driver);
	if (ret)
		debugfs_remove(millrace_debugfs_root);
	return ret;
}
module_init(millrace_init);

static void __exit millrace_exit_module(void)
{
	pci_unregister_driver(&millrace_driver);
	debugfs_remove(millrace_debugfs_root);
	ida_destroy(&millrace_ida);
}
module_exit(millrace_exit_module);

MODULE_DESCRIPTION("Millrace weight-streaming accelerator");
MODULE_AUTHOR("Millrace contributors");
MODULE_LICENSE("GPL");
