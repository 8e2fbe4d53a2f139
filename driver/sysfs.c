// SPDX-License-Identifier: GPL-2.0
/* Documentation/ABI/testing/sysfs-class-misc-millrace says what these are. */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "millrace.h"

static struct millrace_device *of(struct device *d)
{
	return container_of((struct miscdevice *)dev_get_drvdata(d), struct millrace_device, misc);
}

static ssize_t version_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u.%u\n", of(d)->hw.version >> 16, of(d)->hw.version & 0xffff);
}
static DEVICE_ATTR_RO(version);

static ssize_t channels_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", of(d)->hw.channels);
}
static DEVICE_ATTR_RO(channels);

static ssize_t channel_bytes_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", BIT_ULL(of(d)->hw.mem_log2));
}
static DEVICE_ATTR_RO(channel_bytes);

static ssize_t vectors_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", of(d)->vectors);
}
static DEVICE_ATTR_RO(vectors);

static ssize_t contexts_show(struct device *d, struct device_attribute *attr, char *buf)
{
	struct millrace_device *dev = of(d);
	u32 q, n = 0;

	mutex_lock(&dev->lock);
	for (q = 0; q < dev->hw.queues; q++)
		n += !!dev->contexts[q];
	mutex_unlock(&dev->lock);
	return sysfs_emit(buf, "%u of %u\n", n, dev->hw.queues);
}
static DEVICE_ATTR_RO(contexts);

static ssize_t state_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", millrace_state(of(d)));
}
static DEVICE_ATTR_RO(state);

static ssize_t resets_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(of(d)->resets));
}
static DEVICE_ATTR_RO(resets);

static struct attribute *millrace_attrs[] = {
	&dev_attr_version.attr,
	&dev_attr_channels.attr,
	&dev_attr_channel_bytes.attr,
	&dev_attr_vectors.attr,
	&dev_attr_contexts.attr,
	&dev_attr_state.attr,
	&dev_attr_resets.attr,
	NULL
};

static const struct attribute_group millrace_group = {
	.attrs = millrace_attrs,
};

const struct attribute_group *millrace_groups[] = { &millrace_group, NULL };
