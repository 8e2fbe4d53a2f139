// SPDX-License-Identifier: Apache-2.0
// How long a command of a program of training is at work, by an estimate from its fields.
#pragma once

#include "cmodel/command.h"
#include "device/device.h"

// From the start of a program to its first command, and from the last one to its end.
enum { MR_PROGRAM_CYCLES = 106 };

// Of a product in the array: a k-block of R rows and V columns is a step.
double mr_product_cycles(const struct mr_geometry *g, double kblocks, double cols, int rows);

// Of two that run beside each other: the longer one, and more where both take about as long, since
// each hinders the other. The greater the power, the less of that.
double mr_longer(double a, double b, int power);

// Row 0 of the run is row *first of the micro-batch from LOAD_ROWS on; else nothing changes.
void mr_command_rows(const struct mr_command *c, int *first);

// In a run of `rows` rows at positions pos[rows] of their sequences; a beat of a channel takes
// `beat` cycles. Streams take no time: their product does.
double mr_command_cycles(const struct mr_command *c, const struct mr_geometry *g, double beat,
                         int rows, const int *pos);
