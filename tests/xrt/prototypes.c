// SPDX-License-Identifier: Apache-2.0
// Compiling this compares host/device/xrt_functions.h with the headers of the installed XRT.
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <ert.h>

#include <stddef.h>

#include <xclbin.h>

#include "device/xclbin.h"
#include "device/xrt_functions.h"

#define X(result, name, parameters)                                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), result parameters),              \
                   #name " is declared otherwise by XRT");
MR_XRT_FUNCTIONS(X)
#undef X

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(MR_XRT_TO_DEVICE, XCL_BO_SYNC_BO_TO_DEVICE);
SAME(MR_XRT_FROM_DEVICE, XCL_BO_SYNC_BO_FROM_DEVICE);
SAME(MR_XRT_COMPLETED, ERT_CMD_STATE_COMPLETED);
SAME(MR_XRT_NEW, ERT_CMD_STATE_NEW);
SAME(MR_XRT_QUEUED, ERT_CMD_STATE_QUEUED);
SAME(MR_XRT_RUNNING, ERT_CMD_STATE_RUNNING);
SAME(MR_XRT_SUBMITTED, ERT_CMD_STATE_SUBMITTED);
SAME(MR_XRT_TIMEOUT, ERT_CMD_STATE_TIMEOUT);
_Static_assert(sizeof(xuid_t) == 16, "UUID");

// What host/device/xclbin.c reads itself.
SAME(MR_AXLF_LENGTH, offsetof(struct axlf, m_header.m_length));
SAME(MR_AXLF_COUNT, offsetof(struct axlf, m_header.m_numSections));
SAME(MR_AXLF_SECTIONS, offsetof(struct axlf, m_sections));
SAME(MR_AXLF_SECTION_SIZE, sizeof(struct axlf_section_header));
SAME(MR_AXLF_SECTION_OFFSET, offsetof(struct axlf_section_header, m_sectionOffset));
SAME(MR_AXLF_SECTION_BYTES, offsetof(struct axlf_section_header, m_sectionSize));
SAME(MR_AXLF_MEM, MEM_TOPOLOGY);
SAME(MR_AXLF_MEM_ENTRIES, offsetof(struct mem_topology, m_mem_data));
SAME(MR_AXLF_MEM_SIZE, sizeof(struct mem_data));
SAME(MR_AXLF_MEM_BASE, offsetof(struct mem_data, m_base_address));
SAME(MR_AXLF_IP_LAYOUT, IP_LAYOUT);
SAME(MR_AXLF_IP_ENTRIES, offsetof(struct ip_layout, m_ip_data));
SAME(MR_AXLF_IP_SIZE, sizeof(struct ip_data));
SAME(MR_AXLF_IP_NAME, offsetof(struct ip_data, m_name));
SAME(MR_AXLF_IP_KERNEL, IP_KERNEL);
