// SPDX-License-Identifier: Apache-2.0
// What stands behind the opaque types of millrace.h.
#pragma once

#include "device/device.h"
#include "engine/backend.h"
#include "millrace.h"
#include "pack/packed.h"

struct mr_model {
    struct mr_packed packed;
    char *dir;      // the Hugging Face directory, NULL for a packed file
    bool synthetic; // weights from a seed
};

struct mr_session {
    struct mr_model *model;
    struct mr_device *dev; // NULL for cpu:
    struct mr_backend *backend;
    int max_seqs;
};
