// SPDX-License-Identifier: GPL-2.0
/* A context's command ring: its memory, its registers, its entries; starting and stopping it. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "hw.h"
#include "ring.h"
#include "trace.h"

static unsigned int stop_ms = 300;
module_param(stop_ms, uint, 0644);
MODULE_PARM_DESC(stop_ms, "milliseconds that a ring may take to stop");

unsigned long millrace_stop_time(void)
{
	return msecs_to_jiffies(stop_ms) + 1;
}

static void set_address(struct millrace_context *ctx, u32 at, dma_addr_t addr)
{
	u32 reg = millrace_queue_reg(ctx->dev, &ctx->queue, at);

	millrace_write(ctx->dev, reg, lower_32_bits(addr));
	millrace_write(ctx->dev, reg + 4, upper_32_bits(addr));
}

void millrace_ring_free(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct device *d = &ctx->dev->pdev->dev;

	if (q->descriptors)
		dma_free_coherent(d, MILLRACE_RING * MILLRACE_DESC_BYTES, q->descriptors,
				  q->descriptors_dma);
	if (q->completions)
		dma_free_coherent(d, MILLRACE_RING * MR_PCIE_CPL_BYTES, q->completions,
				  q->completions_dma);
	if (q->ring)
		dma_free_coherent(d, MILLRACE_RING * MR_PCIE_ENTRY_BYTES, q->ring, q->ring_dma);
	q->ring = NULL;
	q->completions = NULL;
	q->descriptors = NULL;
}

/* The ring begins with entry q->base. */
void millrace_ring_enable(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;

	set_address(ctx, MR_PCIE_Q_RING_LO, q->ring_dma);
	set_address(ctx, MR_PCIE_Q_CPL_LO, q->completions_dma);
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_SIZE), MILLRACE_RING_LOG2);
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_VECTOR),
		       millrace_irq_vector(dev, q->index));
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_CTRL), 1);
}

int millrace_ring_alloc(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct device *d = &ctx->dev->pdev->dev;

	q->ring = dma_alloc_coherent(d, MILLRACE_RING * MR_PCIE_ENTRY_BYTES, &q->ring_dma,
				     GFP_KERNEL);
	q->completions = dma_alloc_coherent(d, MILLRACE_RING * MR_PCIE_CPL_BYTES,
					    &q->completions_dma, GFP_KERNEL);
	q->descriptors = dma_alloc_coherent(d, MILLRACE_RING * MILLRACE_DESC_BYTES,
					    &q->descriptors_dma, GFP_KERNEL);
	if (!q->ring || !q->completions || !q->descriptors) {
		millrace_ring_free(ctx);
		return -ENOMEM;
	}
	return 0;
}

/* Cancelled entries are no completions from here on: they may have to be given again. */
void millrace_ring_tell_to_stop(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	q->stopping = true;
	spin_unlock_irqrestore(&q->lock, flags);
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_CTRL), 0);
}

/* The ring is told to stop, and waited for: when that is true it makes no accesses any more. */
bool millrace_ring_stop(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	unsigned long end = jiffies + millrace_stop_time();
	bool last, stopped;
	u32 status;

	millrace_ring_tell_to_stop(ctx);
	for (;;) {
		last = time_after(jiffies, end);
		status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
		stopped = !(status & (MR_PCIE_Q_BUSY | MR_PCIE_Q_ENABLED));
		if (stopped || last || status == U32_MAX)
			break;
		usleep_range(100, 200);
	}
	trace_millrace_stop(dev->index, q->index, status, stopped);
	if (!stopped)
		dev_err(&dev->pdev->dev, "ring %u does not stop (status 0x%08x)\n", q->index,
			status);
	return stopped;
}

bool millrace_ring_at_rest(struct millrace_context *ctx)
{
	u32 at = millrace_queue_reg(ctx->dev, &ctx->queue, MR_PCIE_Q_STATUS);

	return !(millrace_read(ctx->dev, at) & MR_PCIE_Q_BUSY);
}

/* Writes an entry where the device looks for it. */
void millrace_ring_put(struct millrace_queue *q, u32 index)
{
	u32 place = millrace_ring_place(q->base, index, MILLRACE_RING);
	const struct millrace_entry *e = &q->entries[index % MILLRACE_RING];
	__le32 *w = q->ring + place * (MR_PCIE_ENTRY_BYTES / 4);
	__le32 *c = q->completions + place * MR_PCIE_CPL_BYTES + MR_PCIE_CPL_STATUS;

	memset(w, 0, MR_PCIE_ENTRY_BYTES);
	/* A completion of this place that is still there belongs to an earlier entry. */
	c[MR_PCIE_C_SEQ] = cpu_to_le32(~millrace_ring_seq(q->base, index));
	w[MR_PCIE_W_OP] = cpu_to_le32(e->op);
	w[MR_PCIE_W_TAG] = cpu_to_le32(index);
	w[MR_PCIE_W_HOST_LO] = cpu_to_le32(lower_32_bits(e->host));
	w[MR_PCIE_W_HOST_HI] = cpu_to_le32(upper_32_bits(e->host));
	w[MR_PCIE_W_CARD_LO] = cpu_to_le32(lower_32_bits(e->card));
	w[MR_PCIE_W_CARD_HI] = cpu_to_le32(upper_32_bits(e->card));
	w[MR_PCIE_W_BYTES] = cpu_to_le32(e->bytes);
	w[MR_PCIE_W_SEGMENTS] = cpu_to_le32(e->segments);
	w[MR_PCIE_W_SKIP] = cpu_to_le32(e->skip);
}

/* With q->lock held, so that no bell comes before an earlier one. */
void millrace_ring_doorbell(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;

	dma_wmb(); /* entries before the bell */
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_DOORBELL),
		       millrace_ring_bell(q->base, q->tail));
	trace_millrace_doorbell(dev->index, q->index, q->tail);
}
