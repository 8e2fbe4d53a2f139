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
	for (;;) {
		int ret = wait_event_interruptible(dev->resumed, millrace_running(dev) ||
						   READ_ONCE(dev->gone));

		if (ret)
			return ret;
		down_read(&dev->alive);
		ret = dev->gone ? -ENODEV : dev->dead ? -EIO : 0;
		if (ret)
			up_read(&dev->alive);
		if (ret || !dev->paused)
			return ret;
		up_read(&dev->alive);
	}
}

bool millrace_try_enter(struct millrace_device *dev)
{
	if (!down_read_trylock(&dev->alive))
		return false;
	if (!dev->gone && !dev->dead && millrace_running(dev))
		return true;
	up_read(&dev->alive);
	return false;
}

bool millrace_hold(struct millrace_device *dev)
{
	down_read(&dev->alive);
	if (!dev->gone)
		return true;
	up_read(&dev->alive);
	return false;
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
static int take_capability(struct millrace_hw *hw, size_t bar, u32 id, u32 at, u32 a, u32 b)
{
	switch (id) {
	case MR_PCIE_CAP_ENGINE:
		if (at % 4 || at > bar || a < 0x1000 || a > bar - at)
			return -EINVAL;
		hw->engine_at = at;
		break;
	case MR_PCIE_CAP_QUEUES:
		if (at % 4 || !a || a > MILLRACE_QUEUES_MAX || at > bar ||
		    a * MR_PCIE_Q_STRIDE > bar - at || b < MILLRACE_RING_LOG2)
			return -EINVAL;
		hw->queues_at = at;
		hw->queues = a;
		break;
	case MR_PCIE_CAP_MEMORY:
		if (!a || a > MILLRACE_CHANNELS_MAX || b < PAGE_SHIFT || b > 36)
			return -EINVAL;
		hw->channels = a;
		hw->mem_log2 = b;
		break;
	case MR_PCIE_CAP_COPY:
		if (a < 26)
			return -EINVAL;
		break;
	case MR_PCIE_CAP_SCRUB:
		if (at % 8 || at > bar - 8)
			return -EINVAL;
		hw->scrub_at = at;
		break;
	default: /* of a later version, and no business of ours */
		break;
	}
	return 0;
}

static int read_capabilities(struct millrace_device *dev, struct millrace_hw *hw)
{
	u32 at = millrace_read(dev, MR_PCIE_REG_CAPS), n, word;
	int ret;

	for (n = 0; at && n < CAPS_MAX; n++) {
		if (at % 4 || at > dev->bar_bytes - 16)
			return -EINVAL;
		word = millrace_read(dev, at);
		ret = take_capability(hw, dev->bar_bytes, word & 0xffff,
				      millrace_read(dev, at + 4), millrace_read(dev, at + 8),
				      millrace_read(dev, at + 12));
		if (ret)
			return ret;
		at = word >> 16;
	}
	return at || !hw->engine_at || !hw->queues || !hw->channels || !hw->scrub_at ?
		-EINVAL : 0;
}

/* Nothing is written but SCRATCH until all the rest of this holds. */
static int verify(struct millrace_device *dev, struct millrace_hw *hw)
{
	struct device *d = &dev->pdev->dev;
	u32 magic = millrace_read(dev, MR_PCIE_REG_MAGIC), i;

	memset(hw, 0, sizeof(*hw));
	if (magic == U32_MAX)
		return dev_err_probe(d, -EIO, "device does not answer: it needs a reset\n");
	if (magic != MR_PCIE_MAGIC)
		return dev_err_probe(d, -ENODEV, "not a Millrace device (magic 0x%08x)\n", magic);
	hw->version = millrace_read(dev, MR_PCIE_REG_VERSION);
	if (hw->version >> 16 != MR_PCIE_VERSION_MAJOR)
		return dev_err_probe(d, -ENODEV, "register interface %u.%u, driver knows %u\n",
				     hw->version >> 16, hw->version & 0xffff,
				     MR_PCIE_VERSION_MAJOR);
	if (read_capabilities(dev, hw))
		return dev_err_probe(d, -ENODEV, "bad capability list\n");
	for (i = 0; i < MILLRACE_INFO_ENGINE_WORDS; i++)
		hw->engine[i] = millrace_read(dev, hw->engine_at + MR_REG_MAGIC + 4 * i);
	if (hw->engine[0] != MR_MAGIC_REG ||
	    (hw->engine[(MR_REG_GEOMETRY - MR_REG_MAGIC) / 4] & 0xff) != hw->channels)
		return dev_err_probe(d, -ENODEV, "engine and wrapper disagree\n");
	millrace_write(dev, MR_PCIE_REG_SCRATCH, 0x5a17c0de);
	if (millrace_read(dev, MR_PCIE_REG_SCRATCH) != 0x5a17c0de)
		return dev_err_probe(d, -EIO, "writes do not arrive\n");
	/* A program that waits for itself ends in an error, long before its ring's time-out. */
	millrace_write(dev, hw->engine_at + MR_REG_WATCHDOG, WATCHDOG_LOG2);
	return 0;
}

/* Rings that an earlier driver left running are stopped before bus mastering. */
static int quiesce(struct millrace_device *dev)
{
	u32 q;

	for (q = 0; q < dev->hw.queues; q++)
		millrace_write(dev, dev->hw.queues_at + q * MR_PCIE_Q_STRIDE + MR_PCIE_Q_CTRL, 0);
	if (millrace_read(dev, MR_PCIE_REG_STATUS) & MR_PCIE_STATUS_BUSY)
		return dev_err_probe(&dev->pdev->dev, -EBUSY, "device is busy: it needs a reset\n");
	return 0;
}

int millrace_verify_again(struct millrace_device *dev)
{
	struct millrace_hw hw;
	int ret = verify(dev, &hw);

	if (ret)
		return ret;
	/* From CTRL on the engine's registers are no constants. */
	if (memcmp(&hw, &dev->hw, offsetof(struct millrace_hw, engine) +
				  MR_REG_CTRL - MR_REG_MAGIC)) {
		dev_err(&dev->pdev->dev, "not the device that it was before\n");
		return -ENODEV;
	}
	return quiesce(dev);
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
	mutex_init(&dev->dump_lock);
	init_waitqueue_head(&dev->resumed);
	millrace_reset_init(dev);

	ret = map_bar(dev);
	if (!ret)
		ret = verify(dev, &dev->hw);
	if (!ret)
		ret = set_dma_masks(pdev);
	if (!ret)
		ret = quiesce(dev);
	if (!ret)
		ret = millrace_card_init(dev);
	if (ret)
		goto err_put;
	pci_set_master(pdev);
	ret = millrace_install_init(dev);
	if (ret)
		goto err_card;
	ret = millrace_install_scrub(dev);
	if (ret)
		goto err_install;
	ret = millrace_irq_init(dev);
	if (ret)
		goto err_install;
	pci_save_state(pdev); /* for resets that the PCI core does not save it for */
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
		 dev->hw.channels, dev->hw.channels == 1 ? "" : "s",
		 BIT_ULL(dev->hw.mem_log2) >> 20, dev->hw.queues, dev->vectors);
	return 0;

err_irq:
	millrace_irq_exit(dev);
err_install:
	pci_clear_master(pdev);
	millrace_install_exit(dev);
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

	/* Accesses under way are let finish, none begins, and nobody waits for one. */
	down_write(&dev->alive);
	WRITE_ONCE(dev->gone, true);
	up_write(&dev->alive);
	wake_up_all(&dev->resumed);
	millrace_fail_all(dev, -ENODEV);
	misc_deregister(&dev->misc); /* no file is opened from here on */
	millrace_debugfs_exit(dev);
	ida_free(&millrace_ida, dev->index);

	millrace_irq_exit(dev);
	mutex_lock(&dev->down_lock);
	for (q = 0; q < dev->hw.queues; q++)
		if (dev->contexts[q])
			millrace_context_down(dev->contexts[q]);
	mutex_unlock(&dev->down_lock);
	/* Now that no file can ask for a reset: one that was being closed may have, just before. */
	millrace_reset_cancel(dev);
	pci_clear_master(pdev);
	millrace_install_exit(dev);
	millrace_card_exit(dev);
	millrace_dump_free(dev);
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
	.err_handler = &millrace_error_handlers,
	.driver.pm = pm_sleep_ptr(&millrace_pm_ops),
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
