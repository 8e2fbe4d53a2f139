// SPDX-License-Identifier: GPL-2.0
/*
 * The scrub program and its zeros, put on the card through ring 0 while the
 * device has no other user; then the device is told to run it between clients.
 */
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>

#include "hw.h"
#include "millrace.h"
#include "scrub.h"

#define RING_LOG2 6
#define CLEAR_MAX SZ_16M
#define WAIT_US 2000000

/* The memory that ring 0 has meanwhile. Kept: a reset must not depend on getting some. */
struct millrace_install {
	__le32 ring[(1 << RING_LOG2) * MR_PCIE_ENTRY_BYTES / 4];
	u8 completions[(1 << RING_LOG2) * MR_PCIE_CPL_BYTES];
	__le32 segment[MR_PCIE_SEG_BYTES / 4];
	__le32 desc[MILLRACE_SCRUB_DESC_BYTES / 4]; /* and the program behind it, as on the card */
	__le32 program[MILLRACE_SCRUB_CMDS_MAX * MILLRACE_CMD_WORDS];
};

static __le32 *entry(struct millrace_install *in, u32 index, u32 op, u64 card, u32 bytes)
{
	__le32 *w = in->ring + index * (MR_PCIE_ENTRY_BYTES / 4);

	w[MR_PCIE_W_OP] = cpu_to_le32(op);
	w[MR_PCIE_W_CARD_LO] = cpu_to_le32(lower_32_bits(card));
	w[MR_PCIE_W_CARD_HI] = cpu_to_le32(upper_32_bits(card));
	w[MR_PCIE_W_BYTES] = cpu_to_le32(bytes);
	return w;
}

/* Clears and one copy; their number. */
static u32 fill_ring(struct millrace_device *dev, struct millrace_install *in,
		     dma_addr_t dma, u32 cmds)
{
	u64 bytes = dev->scrub_bytes, offset;
	u32 n = 0, c, size = MILLRACE_SCRUB_DESC_BYTES + cmds * MILLRACE_CMD_WORDS * 4;
	dma_addr_t segment = dma + offsetof(struct millrace_install, segment);
	__le32 *w;

	for (c = 0; c < dev->hw.channels; c++)
		for (offset = 0; offset < bytes; offset += CLEAR_MAX) {
			if (n == (1 << RING_LOG2) - 1)
				return 0;
			entry(in, n++, MR_PCIE_OP_CLEAR, dev->scrub_zeros[c] + offset,
			      min_t(u64, bytes - offset, CLEAR_MAX));
		}
	w = entry(in, n++, MR_PCIE_OP_COPY_IN, dev->scrub_run, size);
	w[MR_PCIE_W_HOST_LO] = cpu_to_le32(lower_32_bits(segment));
	w[MR_PCIE_W_HOST_HI] = cpu_to_le32(upper_32_bits(segment));
	w[MR_PCIE_W_SEGMENTS] = cpu_to_le32(1);
	dma += offsetof(struct millrace_install, desc);
	in->segment[0] = cpu_to_le32(lower_32_bits(dma));
	in->segment[1] = cpu_to_le32(upper_32_bits(dma));
	in->segment[2] = cpu_to_le32(size);
	return n;
}

static void set_ring(struct millrace_device *dev, u32 at, dma_addr_t dma)
{
	millrace_write(dev, dev->hw.queues_at + at, lower_32_bits(dma));
	millrace_write(dev, dev->hw.queues_at + at + 4, upper_32_bits(dma));
}

static int run_ring(struct millrace_device *dev, struct millrace_install *in,
		    dma_addr_t dma, u32 n)
{
	void __iomem *ring = dev->bar + dev->hw.queues_at;
	u32 value, i;
	int ret, stopped;

	set_ring(dev, MR_PCIE_Q_RING_LO, dma + offsetof(struct millrace_install, ring));
	set_ring(dev, MR_PCIE_Q_CPL_LO, dma + offsetof(struct millrace_install, completions));
	millrace_write(dev, dev->hw.queues_at + MR_PCIE_Q_SIZE, RING_LOG2);
	millrace_write(dev, dev->hw.queues_at + MR_PCIE_Q_CTRL, 1);
	dma_wmb(); /* entries before the bell */
	millrace_write(dev, dev->hw.queues_at + MR_PCIE_Q_DOORBELL, n);
	ret = readl_poll_timeout(ring + MR_PCIE_Q_HEAD, value,
				 value == n || value == U32_MAX, 100, WAIT_US);
	if (value != n)
		ret = -EIO;
	millrace_write(dev, dev->hw.queues_at + MR_PCIE_Q_CTRL, 0);
	stopped = readl_poll_timeout(ring + MR_PCIE_Q_STATUS, value,
				     value == U32_MAX ||
				     !(value & (MR_PCIE_Q_BUSY | MR_PCIE_Q_ENABLED)), 100,
				     WAIT_US);
	if (stopped || value == U32_MAX)
		pci_clear_master(dev->pdev); /* its memory is about to go */
	if (ret || stopped || value == U32_MAX)
		return -EIO;
	dma_rmb(); /* completions after the number of entries */
	for (i = 0; i < n; i++) {
		const __le32 *c = (const __le32 *)(in->completions + i * MR_PCIE_CPL_BYTES +
						   MR_PCIE_CPL_STATUS);

		if (READ_ONCE(c[MR_PCIE_C_STATUS]) ||
		    le32_to_cpu(READ_ONCE(c[MR_PCIE_C_SEQ])) != i + 1)
			return -EIO;
	}
	return 0;
}

int millrace_install_init(struct millrace_device *dev)
{
	dev->install = dma_alloc_coherent(&dev->pdev->dev, sizeof(*dev->install),
					  &dev->install_dma, GFP_KERNEL);
	return dev->install ? 0 : -ENOMEM;
}

void millrace_install_exit(struct millrace_device *dev)
{
	dma_free_coherent(&dev->pdev->dev, sizeof(*dev->install), dev->install, dev->install_dma);
	dev->install = NULL;
}

int millrace_install_scrub(struct millrace_device *dev)
{
	struct millrace_install *in = dev->install;
	u32 cmds, n;
	int ret;

	memset(in, 0, sizeof(*in));
	cmds = millrace_scrub_program(dev->hw.engine, in->program);
	ret = cmds ? 0 : -EINVAL;
	if (!ret) {
		millrace_scrub_descriptor(dev->hw.engine, in->desc,
					  dev->scrub_run + MILLRACE_SCRUB_DESC_BYTES, cmds,
					  dev->scrub_zeros);
		n = fill_ring(dev, in, dev->install_dma, cmds);
		ret = n ? run_ring(dev, in, dev->install_dma, n) : -EINVAL;
	}
	if (ret)
		return dev_err_probe(&dev->pdev->dev, ret,
				     "the engine's memories cannot be kept apart\n");
	millrace_write(dev, dev->hw.scrub_at + 4, upper_32_bits(dev->scrub_run));
	millrace_write(dev, dev->hw.scrub_at, lower_32_bits(dev->scrub_run) | MR_PCIE_SCRUB_ENABLE);
	return 0;
}
