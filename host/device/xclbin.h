// SPDX-License-Identifier: Apache-2.0
// What is looked at in an xclbin before XRT is asked: which file it is, whether it is whole, and
// which compute units it has. Everything else is XRT's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

// Where things lie in an xclbin (xclbin.h of XRT: axlf, axlf_section_header, mem_topology,
// ip_layout), little endian; tests/xrt/prototypes.c compares them with the header that is
// installed.
enum {
    MR_AXLF_LENGTH = 304, // u64: of the file
    MR_AXLF_COUNT = 448,  // u32: section headers
    MR_AXLF_SECTIONS = 456,
    MR_AXLF_SECTION_SIZE = 40, // a section header: u32 kind, u64 offset, u64 size
    MR_AXLF_SECTION_OFFSET = 24,
    MR_AXLF_SECTION_BYTES = 32,
    MR_AXLF_MEM = 6,         // a section's kind: s32 count, entries
    MR_AXLF_MEM_ENTRIES = 8, // an entry: a bank of the card's memory
    MR_AXLF_MEM_SIZE = 40,
    MR_AXLF_MEM_BASE = 16,  // u64: where it begins
    MR_AXLF_IP_LAYOUT = 8,  // a section's kind: s32 count, entries
    MR_AXLF_IP_ENTRIES = 8, // an entry: u32 type, name of 64 bytes
    MR_AXLF_IP_SIZE = 80,
    MR_AXLF_IP_NAME = 16,
    MR_AXLF_IP_KERNEL = 1, // an entry's type
};

// The xclbin that `uri` runs on, to path: MILLRACE_XCLBIN; in emulation without it what
// 'make xclbin-emu' has built beside the program.
int mr_xclbin_find(char *path, size_t size, const char *uri, struct mr_error *err);

// Compute units KERNEL_1, _2 and so on without a gap; 0 if it has none of them. MR_ERR_FORMAT if
// the file is no xclbin, or cut off.
int mr_xclbin_units(const char *path, const char *kernel, int *units, struct mr_error *err);
