/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: events/millrace in tracefs. `dev` is the number in the device's name. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM millrace

#if !defined(MILLRACE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MILLRACE_TRACE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

TRACE_EVENT(millrace_submit,
	    TP_PROTO(int dev, u32 ring, u64 job, u32 first, u32 count),
	    TP_ARGS(dev, ring, job, first, count),
	    TP_STRUCT__entry(__field(int, dev)
			     __field(u32, ring)
			     __field(u64, job)
			     __field(u32, first)
			     __field(u32, count)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->ring = ring;
			   __entry->job = job;
			   __entry->first = first;
			   __entry->count = count;),
	    TP_printk("dev=%d ring=%u job=%llu first=%u count=%u", __entry->dev, __entry->ring,
		      __entry->job, __entry->first, __entry->count)
);

TRACE_EVENT(millrace_doorbell,
	    TP_PROTO(int dev, u32 ring, u32 tail),
	    TP_ARGS(dev, ring, tail),
	    TP_STRUCT__entry(__field(int, dev)
			     __field(u32, ring)
			     __field(u32, tail)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->ring = ring;
			   __entry->tail = tail;),
	    TP_printk("dev=%d ring=%u tail=%u", __entry->dev, __entry->ring, __entry->tail)
);

TRACE_EVENT(millrace_completion,
	    TP_PROTO(int dev, u32 ring, u32 index, u32 status),
	    TP_ARGS(dev, ring, index, status),
	    TP_STRUCT__entry(__field(int, dev)
			     __field(u32, ring)
			     __field(u32, index)
			     __field(u32, status)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->ring = ring;
			   __entry->index = index;
			   __entry->status = status;),
	    TP_printk("dev=%d ring=%u entry=%u status=%u", __entry->dev, __entry->ring,
		      __entry->index, __entry->status)
);

TRACE_EVENT(millrace_interrupt,
	    TP_PROTO(int dev, int vector),
	    TP_ARGS(dev, vector),
	    TP_STRUCT__entry(__field(int, dev)
			     __field(int, vector)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->vector = vector;),
	    TP_printk("dev=%d vector=%d", __entry->dev, __entry->vector)
);

TRACE_EVENT(millrace_stop,
	    TP_PROTO(int dev, u32 ring, u32 status, bool stopped),
	    TP_ARGS(dev, ring, status, stopped),
	    TP_STRUCT__entry(__field(int, dev)
			     __field(u32, ring)
			     __field(u32, status)
			     __field(bool, stopped)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->ring = ring;
			   __entry->status = status;
			   __entry->stopped = stopped;),
	    TP_printk("dev=%d ring=%u status=0x%08x stopped=%d", __entry->dev, __entry->ring,
		      __entry->status, __entry->stopped)
);

TRACE_EVENT(millrace_reset,
	    TP_PROTO(int dev, int state),
	    TP_ARGS(dev, state),
	    TP_STRUCT__entry(__field(int, dev)
			     __field(int, state)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->state = state;),
	    TP_printk("dev=%d state=%s", __entry->dev,
		      __print_symbolic(__entry->state, { MILLRACE_RUNNING, "running" },
				       { MILLRACE_PAUSED, "paused" }, { MILLRACE_DEAD, "dead" }))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
