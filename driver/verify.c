// SPDX-License-Identifier: GPL-2.0
/* What the device says about itself, verified before anything of it is trusted. */
#include "hw.h"
#include "millrace.h"

#define CAPS_MAX 16 /* of the list, so that a broken one ends */
#define WATCHDOG_LOG2 24 /* cycles without progress of a run */

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
int millrace_verify(struct millrace_device *dev, struct millrace_hw *hw)
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
int millrace_verify_idle(struct millrace_device *dev)
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
	int ret = millrace_verify(dev, &hw);

	if (ret)
		return ret;
	/* From CTRL on the engine's registers are no constants. */
	if (memcmp(&hw, &dev->hw, offsetof(struct millrace_hw, engine) +
				  MR_REG_CTRL - MR_REG_MAGIC)) {
		dev_err(&dev->pdev->dev, "not the device that it was before\n");
		return -ENODEV;
	}
	return millrace_verify_idle(dev);
}
