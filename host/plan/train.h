// SPDX-License-Identifier: Apache-2.0
// A step of training, predicted: work and traffic of its programs (train/pass.h), which are made as
// for a device and counted command by command; cycles by an estimate
// (docs/use/plan.md#training).
#pragma once

#include "plan/job.h"
#include "train/pass.h"
#include "train/work.h"

struct mr_plan_train_job {
    const struct mr_config *model;
    const struct mr_geometry *g;
    const char *config; // its name
    const struct mr_plan_memory *memory;
    const int *lengths; // of the sequences of a micro-batch
    int n_sequences;
    int micro_batches; // a step
    uint64_t capacity; // bytes of the device's memory, 0: not limited
    bool no_link;      // nothing can stream
    double clock_mhz;
    bool recompute;
    const struct mr_lora_options *lora; // NULL: the whole model learns; else its rank, alpha and
                                        // targets count
};

struct mr_plan_train_part {
    struct mr_work work;
    double array;  // cycles in which the array has a command
    double cycles; // estimated; with a sum of gradients in the array they are dW's
    double whole;  // of the part's programs, with such sums
    uint64_t programs, commands;
};

struct mr_plan_link {
    double up, down; // bytes to the device, and from it
};

struct mr_plan_train {
    struct mr_plan_train_part part[MR_PASS_PARTS], sum; // of a micro-batch
    double ideal;  // cycles of the three products of all matrices, one block a PE and cycle
    double memory; // cycles in which a channel moves data
    double stash;  // bytes a layer and row
    struct mr_pass_memory whole, two; // of device memory: all layers, two at a time
    // Of a micro-batch that is counted above: with all layers in memory unless the capacity holds
    // two but not all. Each channel has its share of it, and rows and sums are the first one's.
    struct mr_pass_streaming streaming;
    bool fits;            // so
    double at_rest, disk; // of the store: weights and moments; all its files
    double streams;       // of an adapter's: both, in files without a name while it is open
    double host;          // memory of the process, beside what is mapped
    // Over the link in a step: with all in device memory, with two layers there, and as counted.
    struct mr_plan_link link_whole, link_two, link;
};

int mr_plan_train_rows(const struct mr_plan_train_job *job); // of a micro-batch

// MR_ERR_USAGE for a configuration without TRAIN, MR_ERR_FIT for what does not fit it.
int mr_plan_train(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                  struct mr_error *err);
