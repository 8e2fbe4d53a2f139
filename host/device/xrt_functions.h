// SPDX-License-Identifier: Apache-2.0
// The functions of XRT's native C API that are used: X(result, name, parameters). They are the same
// in every release from 2.13 on; tests/xrt/prototypes.c compares them with the headers of the XRT
// that is installed. Handles are pointers, enumerations unsigned, UUIDs 16 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MR_XRT_FUNCTIONS(X)                                                                        \
    X(void *, xrtDeviceOpen, (unsigned))                                                           \
    X(int, xrtDeviceClose, (void *))                                                               \
    X(int, xrtDeviceLoadXclbinFile, (void *, const char *))                                        \
    X(int, xrtDeviceGetXclbinUUID, (void *, unsigned char *))                                      \
    X(void *, xrtPLKernelOpenExclusive, (void *, const unsigned char *, const char *))             \
    X(int, xrtKernelClose, (void *))                                                               \
    X(int, xrtKernelArgGroupId, (void *, int))                                                     \
    X(uint32_t, xrtKernelArgOffset, (void *, int))                                                 \
    X(int, xrtKernelReadRegister, (void *, uint32_t, uint32_t *))                                  \
    X(int, xrtKernelWriteRegister, (void *, uint32_t, uint32_t))                                   \
    X(void *, xrtBOAlloc, (void *, size_t, uint64_t, uint32_t))                                    \
    X(int, xrtBOFree, (void *))                                                                    \
    X(uint64_t, xrtBOAddress, (void *))                                                            \
    X(void *, xrtBOMap, (void *))                                                                  \
    X(int, xrtBOSync, (void *, unsigned, size_t, size_t))                                          \
    X(void *, xrtRunOpen, (void *))                                                                \
    X(int, xrtRunClose, (void *))                                                                  \
    X(int, xrtRunSetArg, (void *, int, ...))                                                       \
    X(int, xrtRunStart, (void *))                                                                  \
    X(unsigned, xrtRunState, (void *))                                                             \
    X(int, xrtRunSetCallback, (void *, unsigned, void (*)(void *, unsigned, void *), void *))      \
    X(unsigned, xrtRunWaitFor, (void *, unsigned))

// Values of its enumerations.
enum {
    MR_XRT_TO_DEVICE = 0,   // XCL_BO_SYNC_BO_TO_DEVICE
    MR_XRT_FROM_DEVICE = 1, // XCL_BO_SYNC_BO_FROM_DEVICE
    MR_XRT_COMPLETED = 4,   // ERT_CMD_STATE_COMPLETED, and the states that are no end
    MR_XRT_NEW = 1,
    MR_XRT_QUEUED = 2,
    MR_XRT_RUNNING = 3,
    MR_XRT_SUBMITTED = 7,
    MR_XRT_TIMEOUT = 8,
};
