// SPDX-License-Identifier: Apache-2.0
#include "plan/board.h"

#include <stddef.h>
#include <string.h>

#include "engine/program.h"

#define MIB (1024.0 * 1024.0)
// Block memory of UltraScale+: 36 Kb block RAMs and 288 Kb UltraRAMs.
#define BRAM_URAM(bram, uram) (((bram) * 36.0 + (uram) * 288.0) / 8 / 1024)

// Alveo and Kria: 300 MHz is the design's aim (rtl/spec/configs.def), nothing has been placed yet.
static const struct mr_plan_board boards[] = {
    {"kv260", "XCK26", "ddr4-2400", 1, 19.2, 4, 300, "DSP48E2", 1248, 117120, BRAM_URAM(144, 64), 1,
     4, 32, false},
    {"u50", "XCU50", "hbm2", 16, 316.0 / 32, 8, 300, "DSP48E2", 5952, 872000, BRAM_URAM(1344, 640),
     8, 4, 256, false},
    {"u250", "XCU250", "ddr4-2400", 4, 19.2, 64, 300, "DSP48E2", 12288, 1728000,
     BRAM_URAM(2688, 1280), 4, 16, 512, false},
    {"u280", "XCU280", "hbm2", 16, 460.0 / 32, 8, 300, "DSP48E2", 9024, 1304000,
     BRAM_URAM(2016, 960), 16, 4, 512, true},
    // DDR3-800, 16 bits wide, 512 MiB, as boards with this chip have it; 208 block RAMs of 18 Kb.
    {"ecp5-85", "LFE5U-85F", "ddr4-2400", 1, 1.6, 0.5, 80, "MULT18X18D", 156, 84000,
     208 * 18.0 / 8 / 1024, 1, 1, 8, false},
};

const struct mr_plan_board *mr_plan_board_at(int index)
{
    return index >= 0 && index < (int)(sizeof boards / sizeof *boards) ? &boards[index] : NULL;
}

const struct mr_plan_board *mr_plan_board_named(const char *name)
{
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (strcmp(boards[i].name, name) == 0)
            return &boards[i];
    return NULL;
}

// Figures of docs/synthesis.md: units of `tiny` (N = 1, four lanes) and PEs alone.
enum {
    PE_MULTIPLIERS = 32,
    PE_LUTS = 740,
    PAIR_MULTIPLIERS = 34, // two PEs that share their multipliers
    PAIR_LUTS = 481,
    ARRAY_LUTS = 6507,                  // of four PEs, with control
    CHANNEL_LUTS = 5546 + 1072 + 20658, // stream, reader, attention lane
    LANE_MULTIPLIERS = 132,             // attention lane, a channel
    VECTOR_LUTS = 18165 + 10851 + 2452, // epilogue, LayerNorm, vector output: of four lanes
    VECTOR_MULTIPLIERS = 20 + 32,
    ALL_LUTS = 82801,
    ALL_MULTIPLIERS = 343,
};

struct mr_plan_cost mr_plan_cost_of(const struct mr_geometry *g, bool pair)
{
    struct mr_plan_cost c;
    int pes = g->r * 4 * g->n, units = pair ? pes / 2 : pes;
    c.pe_multipliers = (pair ? PAIR_MULTIPLIERS : PE_MULTIPLIERS) * units;
    int rest = ALL_MULTIPLIERS - 4 * PE_MULTIPLIERS - LANE_MULTIPLIERS - VECTOR_MULTIPLIERS;
    c.multipliers = c.pe_multipliers + rest + g->n * (LANE_MULTIPLIERS + VECTOR_MULTIPLIERS);
    c.luts = ALL_LUTS - ARRAY_LUTS - CHANNEL_LUTS - VECTOR_LUTS +
             (double)g->n * (CHANNEL_LUTS + VECTOR_LUTS) +
             (double)units * (pair ? PAIR_LUTS : PE_LUTS) +
             (double)g->n * (ARRAY_LUTS - 4 * PE_LUTS);
    // docs/architecture.md, "What stays on the chip"; FIFOs of 256 and 128 beats a channel.
    double t = g->t;
    c.on_chip = t * (4.0 * g->d_max + 4.0 * g->rot_max + 33.0 * g->act_words + 66.0 * g->qkv_words +
                     g->w_max / 32.0) +
                (double)g->n * (g->ring * 132.0 + (256 + 128) * 64.0) + 4.0 * g->scores +
                t * 64 * 4;
    return c;
}

struct mr_plan_bytes mr_plan_bytes_of(const struct mr_config *model, enum mr_format format,
                                      const struct mr_geometry *g, int seqs)
{
    struct mr_dims d = mr_dims_of(model);
    int words = d.w / 64, scales = (words + 31) / 32, n = g->n;
    double positions = (model->n_positions + n - 1) / n;
    double rows = g->t < MR_PROGRAM_ROWS ? g->t : MR_PROGRAM_ROWS;
    struct mr_plan_bytes b = {
        .weights = (double)MR_BEAT * n * (double)mr_stream_beats(model, format, n),
        .kv = (double)MR_BEAT * n * positions * (2 * (words + scales) + scales) * model->n_layer *
              seqs,
        // row table, rotary rows, residual rows, logits
        .windows = (double)MR_BEAT * (MR_PROGRAM_ROWS / 4 + MR_PROGRAM_ROWS * d.rot_floats / 16) +
                   rows * 4 * (d.d + d.vocab),
    };
    return b;
}
