// SPDX-License-Identifier: GPL-2.0
/* The device: probe, and safe removal. */
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/module.h>

#include "gate.h"
#include "millrace.h"

static DEFINE_IDA(millrace_ida);

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
		ret = millrace_verify(dev, &dev->hw);
	if (!ret)
		ret = set_dma_masks(pdev);
	if (!ret)
		ret = millrace_verify_idle(dev);
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

	millrace_debugfs_begin();
	ret = pci_register_driver(&millrace_driver);
	if (ret)
		millrace_debugfs_end();
	return ret;
}
module_init(millrace_init);

static void __exit millrace_exit_module(void)
{
	pci_unregister_driver(&millrace_driver);
	millrace_debugfs_end();
	ida_destroy(&millrace_ida);
}
module_exit(millrace_exit_module);

MODULE_DESCRIPTION("Millrace weight-streaming accelerator");
MODULE_AUTHOR("Millrace contributors");
MODULE_LICENSE("GPL");
