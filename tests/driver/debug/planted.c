// SPDX-License-Identifier: GPL-2.0
/* One bug for each detector of the debug kernel, which has to see it. For tests only: insmod planted.ko bug=NAME */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *bug = "none";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "which");

#define BYTES 64

static void none(struct device *d)
{
}

/* KASAN. What the compiler could see through is hidden from it. */
static void use_after_free(struct device *d)
{
	volatile char *p = kmalloc(BYTES, GFP_KERNEL);

	if (!p)
		return;
	kfree((void *)p);
	OPTIMIZER_HIDE_VAR(p);
	(void)p[8];
}

static void out_of_bounds(struct device *d)
{
	volatile char *p = kmalloc(BYTES, GFP_KERNEL);
	size_t at = BYTES;

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(at);
	p[at] = 1;
	kfree((void *)p);
}

/* Lockdep: it needs no second thread that does hold them. */
static void lock_inversion(struct device *d)
{
	static DEFINE_MUTEX(a);
	static DEFINE_MUTEX(b);

	mutex_lock(&a);
	mutex_lock(&b);
	mutex_unlock(&b);
	mutex_unlock(&a);
	mutex_lock(&b);
	mutex_lock(&a);
	mutex_unlock(&a);
	mutex_unlock(&b);
}

static void sleep_in_atomic(struct device *d)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
}

/* DMA_API_DEBUG */
static void dma_not_mapped(struct device *d)
{
	dma_unmap_single(d, 0x10000, BYTES, DMA_TO_DEVICE);
}

/* The same: said when the device's driver goes, so with a device whose driver does; millrace's own. */
static void dma_kept(struct device *d)
{
	struct pci_dev *pdev = NULL;
	void *p = kmalloc(BYTES, GFP_KERNEL);

	for_each_pci_dev(pdev)
		if (p && pdev->driver && !strcmp(pdev->driver->name, "millrace") &&
		    !dma_mapping_error(&pdev->dev, dma_map_single(&pdev->dev, p, BYTES, DMA_TO_DEVICE)))
			p = NULL; /* the device's for ever */
	kfree(p);
}

/* kmemleak */
static void leak(struct device *d)
{
	int i;

	for (i = 0; i < 8; i++) {
		void *p = kmalloc(BYTES + 300, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

/* UBSAN */
static void shift(struct device *d)
{
	unsigned int n = 40;
	volatile int result;

	OPTIMIZER_HIDE_VAR(n);
	result = 1 << n;
	(void)result;
}

static void bounds(struct device *d)
{
	static volatile int array[8];
	unsigned int n = 8;

	OPTIMIZER_HIDE_VAR(n);
	array[n] = 1;
}

/* DEBUG_OBJECTS */
static void nothing(struct timer_list *t)
{
}

static void timer_freed(struct device *d)
{
	struct timer_list *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return;
	timer_setup(t, nothing, 0);
	mod_timer(t, jiffies + 1000 * HZ);
	kfree(t);
}

static const struct {
	const char *name;
	void (*act)(struct device *d);
} bugs[] = {
	{ "none", none },
	{ "use_after_free", use_after_free },
	{ "out_of_bounds", out_of_bounds },
	{ "lock_inversion", lock_inversion },
	{ "sleep_in_atomic", sleep_in_atomic },
	{ "dma_not_mapped", dma_not_mapped },
	{ "dma_kept", dma_kept },
	{ "leak", leak },
	{ "shift", shift },
	{ "bounds", bounds },
	{ "timer_freed", timer_freed },
};

static int planted_probe(struct platform_device *pdev)
{
	int i, ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));

	for (i = 0; !ret && i < ARRAY_SIZE(bugs); i++)
		if (!strcmp(bugs[i].name, bug)) {
			bugs[i].act(&pdev->dev);
			return 0;
		}
	return ret ? ret : -EINVAL;
}

static struct platform_driver planted_driver = {
	.driver = { .name = "planted" },
	.probe = planted_probe,
};

static struct platform_device *planted_device;

static int __init planted_init(void)
{
	int ret;

	planted_device = platform_device_register_simple("planted", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(planted_device))
		return PTR_ERR(planted_device);
	ret = platform_driver_probe(&planted_driver, planted_probe);
	if (ret)
		platform_device_unregister(planted_device);
	return ret;
}
module_init(planted_init);

static void __exit planted_exit(void)
{
	platform_driver_unregister(&planted_driver);
	platform_device_unregister(planted_device);
}
module_exit(planted_exit);

MODULE_DESCRIPTION("Bugs that the debug kernel has to see");
MODULE_LICENSE("GPL");
