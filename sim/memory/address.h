// SPDX-License-Identifier: Apache-2.0
// How the memory channels are addressed.
#pragma once

#define MR_MEM_MAX_CHANNELS 16
#define MR_MEM_CHANNEL_LOG2 36 // channel c is addresses c << 36 up to (c + 1) << 36
#define MR_MEM_BEAT         64 // bytes
