// SPDX-License-Identifier: Apache-2.0
// Inside of "pci:", for its tests.
#ifndef MR_DEVICE_PCI_H
#define MR_DEVICE_PCI_H

#include "common/error.h"
#include "driver/include/uapi/millrace.h"

// Whether a driver that says this about itself has what the runtime asks it for. Later versions of
// the uapi only add to it, so each from 1 on will do.
int mr_pci_check(const struct millrace_info *driver, const char *uri, struct mr_error *err);

#endif
