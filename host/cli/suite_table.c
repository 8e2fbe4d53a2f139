// SPDX-License-Identifier: Apache-2.0
// The runs and the rows of the suites. S is the number of positions that a decoded token sees,
// itself included. Anchors: what others measured or claim, each for its own machine and task.
#include "cli/suite_table.h"

#define LAYER "synthetic:gptj-6b,layers=1,vocab=64"

// Fields: id, model, device, fp4, two_pass, batch, head, kind, at, n, suites, timed, note. The
// longest come first, because two processes share them.
const struct suite_run suite_runs[] = {
    {"pre0", LAYER, "sim:", 0, 0, 1, 0, RUN_PREFILL, 0, 128, SUITE_FULL, 0, "prefill 128 at 0"},
    {"pre1024", LAYER, "sim:", 0, 0, 1, 0, RUN_PREFILL, 1024, 128, SUITE_FULL, 0,
     "prefill 128 at 1024"},
    {"pre16", LAYER, "sim:", 0, 0, 1, 0, RUN_PREFILL, 0, 16, SUITE_QUICK, 0, "prefill 16 at 0"},
    {"s1", LAYER, "sim:", 0, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_BOTH, 0, "decode, S = 1"},
    {"s2047", LAYER, "sim:", 0, 0, 1, 0, RUN_DECODE, 2046, 1, SUITE_BOTH, 0, "decode, S = 2047"},
    {"s512", LAYER, "sim:", 0, 0, 1, 0, RUN_DECODE, 511, 1, SUITE_FULL, 0, "decode, S = 512"},
    {"s1024", LAYER, "sim:", 0, 0, 1, 0, RUN_DECODE, 1023, 1, SUITE_FULL, 0, "decode, S = 1024"},
    {"hbm1", LAYER, "sim:sim,memory=hbm2", 0, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0,
     "hbm2, S = 1"},
    {"hbm2047", LAYER, "sim:sim,memory=hbm2", 0, 0, 1, 0, RUN_DECODE, 2046, 1, SUITE_FULL, 0,
     "hbm2, S = 2047"},
    {"fp1", LAYER, "sim:", 1, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_BOTH, 0, "MXFP4, S = 1"},
    {"fp512", LAYER, "sim:", 1, 0, 1, 0, RUN_DECODE, 511, 1, SUITE_FULL, 0, "MXFP4, S = 512"},
    {"fp1024", LAYER, "sim:", 1, 0, 1, 0, RUN_DECODE, 1023, 1, SUITE_FULL, 0, "MXFP4, S = 1024"},
    {"fp2047", LAYER, "sim:", 1, 0, 1, 0, RUN_DECODE, 2046, 1, SUITE_FULL, 0, "MXFP4, S = 2047"},
    {"two1", LAYER, "sim:", 0, 1, 1, 0, RUN_DECODE, 0, 1, SUITE_BOTH, 0, "two passes, batch 1"},
    {"two2", LAYER, "sim:", 0, 1, 2, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0, "two passes, batch 2"},
    {"batch2", LAYER, "sim:", 0, 0, 2, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0, "batch 2"},
    {"batch4", LAYER, "sim:", 0, 0, 4, 0, RUN_DECODE, 0, 1, SUITE_BOTH, 0, "batch 4"},
    {"n2", LAYER, "sim:sim2", 0, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0, "N = 2"},
    {"n4", LAYER, "sim:sim4", 0, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0, "N = 4"},
    {"n8", LAYER, "sim:wide", 0, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0, "N = 8, S = 1"},
    {"n8s2047", LAYER, "sim:wide", 0, 0, 1, 0, RUN_DECODE, 2046, 1, SUITE_FULL, 0,
     "N = 8, S = 2047"},
    {"n8hbm1", LAYER, "sim:wide,memory=hbm2", 0, 0, 1, 0, RUN_DECODE, 0, 1, SUITE_FULL, 0,
     "N = 8, hbm2, S = 1"},
    {"n8hbm2047", LAYER, "sim:wide,memory=hbm2", 0, 0, 1, 0, RUN_DECODE, 2046, 1, SUITE_FULL, 0,
     "N = 8, hbm2, S = 2047"},
    {"token", "synthetic:gptj-6b", "sim:", 0, 0, 1, 1, RUN_DECODE, 0, 1, SUITE_FULL, 1,
     "a whole GPT-J-6B token"},
    {"cpu1", LAYER, "model:", 0, 0, 1, 0, RUN_AGAINST, 0, 1, SUITE_BOTH, 1,
     "model: and cpu:, layer, S = 1"},
    {"cpu1024", LAYER, "model:", 0, 0, 1, 0, RUN_AGAINST, 1023, 1, SUITE_FULL, 1,
     "model: and cpu:, layer, S = 1024"},
    {"cpuhead", "synthetic:gptj-6b,layers=1", "model:", 0, 0, 1, 1, RUN_AGAINST, 0, 1, SUITE_FULL,
     1, "model: and cpu:, layer and head"},
};
const int suite_run_count = sizeof suite_runs / sizeof *suite_runs;

#define PIN "Hummingbird 93-94 % of pin, LLaMA2-7B on a KV260 85 %, FlightLLM about 66 %"
#define MAC                                                                                        \
    "apex 95.6 % (matrix product on a board), RedMulE 98.8 %, ITA 99.9 % (kernels, ideal memory)"

const struct suite_row suite_rows[] = {
    {1, "decode S = 1, ddr4-2400", OF_SEQUENTIAL, "s1", 0, 0.99, PIN, SUITE_BOTH},
    {1, "decode S = 512, ddr4-2400", OF_SEQUENTIAL, "s512", 0, 0.99, PIN, SUITE_FULL},
    {1, "decode S = 1024, ddr4-2400", OF_SEQUENTIAL, "s1024", 0, 0.99, PIN, SUITE_FULL},
    {1, "decode S = 2047, ddr4-2400", OF_SEQUENTIAL, "s2047", 0, 0.99, PIN, SUITE_BOTH},
    {1, "decode S = 1, hbm2", OF_SEQUENTIAL, "hbm1", 0, 0.98, PIN, SUITE_FULL},
    {1, "decode S = 2047, hbm2", OF_SEQUENTIAL, "hbm2047", 0, 0.98, PIN, SUITE_FULL},
    {1, "decode S = 1, wide, ddr4-2400", OF_SEQUENTIAL, "n8", 0, 0.98, PIN, SUITE_FULL},
    {1, "decode S = 2047, wide, ddr4-2400", OF_SEQUENTIAL, "n8s2047", 0, 0.98, PIN, SUITE_FULL},
    {1, "decode S = 1, wide, hbm2", OF_SEQUENTIAL, "n8hbm1", 0, 0.98, PIN, SUITE_FULL},
    {1, "decode S = 2047, wide, hbm2", OF_SEQUENTIAL, "n8hbm2047", 0, 0.98, PIN, SUITE_FULL},
    {2, "MXFP4 over MXINT8, S = 1", SPEED_OVER_BYTES, "fp1", "s1", 0.985, "", SUITE_BOTH},
    {2, "MXFP4 over MXINT8, S = 512", SPEED_OVER_BYTES, "fp512", "s512", 0.985, "", SUITE_FULL},
    {2, "MXFP4 over MXINT8, S = 1024", SPEED_OVER_BYTES, "fp1024", "s1024", 0.985, "", SUITE_FULL},
    {2, "MXFP4 over MXINT8, S = 2047", SPEED_OVER_BYTES, "fp2047", "s2047", 0.985, "", SUITE_FULL},
    {3, "attention at S = 2047, over its bytes", OVER_BYTES, "s2047", "s1", 0.01,
     "ITA 99.2-99.8 % utilisation (unmasked int8), apex about 90 %", SUITE_BOTH},
    {3, "two passes, batch 1", ADDED_CYCLES, "two1", "s1", 0.005, "", SUITE_BOTH},
    {3, "two passes, batch 2", ADDED_CYCLES, "two2", "batch2", 0.005, "", SUITE_FULL},
    {3, "batch 2, cycles a step", ADDED_CYCLES, "batch2", "s1", 0.02, "", SUITE_FULL},
    {3, "batch 4, cycles a step", ADDED_CYCLES, "batch4", "s1", 0.02, "", SUITE_BOTH},
    {4, "prefill of 16 at position 0, MACs", OF_MACS, "pre16", 0, 0.97, MAC, SUITE_QUICK},
    {4, "prefill of 128 at position 0, MACs", OF_MACS, "pre0", 0, 0.97, MAC, SUITE_FULL},
    {4, "prefill of 128 at position 1024, MACs", OF_MACS, "pre1024", 0, 0.97, MAC, SUITE_FULL},
    {5, "decode, 2 channels", OF_LINEAR, "n2", "s1", 0.97, "", SUITE_FULL},
    {5, "decode, 4 channels", OF_LINEAR, "n4", "s1", 0.97, "", SUITE_FULL},
    {5, "decode, 8 channels", OF_LINEAR, "n8", "s1", 0.97, "", SUITE_FULL},
    {6, "GPT-J-6B token, S = 1, simulated in", WALL_SECONDS, "token", 0, 30, "", SUITE_FULL},
    {6, "its peak of resident memory", PEAK_GIB, "token", 0, 10, "", SUITE_FULL},
    {6, "its bandwidth, ddr4-2400", OF_SEQUENTIAL, "token", 0, 0.99, PIN, SUITE_FULL},
    {6, "its time a simulated cycle", NS_PER_CYCLE, "token", 0, 0, "", SUITE_FULL},
    {7, "model: over cpu:, layer, S = 1", TIMES_FASTER, "cpu1", 0, 1, "", SUITE_BOTH},
    {7, "model: over cpu:, layer, S = 1024", TIMES_FASTER, "cpu1024", 0, 1, "", SUITE_FULL},
    {7, "model: over cpu:, head", TIMES_FASTER, "cpuhead", 0, 1, "", SUITE_FULL},
};
const int suite_row_count = sizeof suite_rows / sizeof *suite_rows;
