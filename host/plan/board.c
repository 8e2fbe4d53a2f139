// SPDX-License-Identifier: Apache-2.0
#include "plan/board.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "engine/program.h"
#include "plan/area.h"

// What the shell of an Alveo card's platform takes of the device, in percent of LUTs, multipliers,
// block RAM and UltraRAM: the report of a card's platform in AMD's UG1702 (docs/use/plan.md).
#define ALVEO_SHELL {17.2, 14.0, 13.9, 16.7}

// A port of HBM moves 256 bits at 450 MHz, 14.4 GB/s, to whichever pseudo-channels it reaches.
// The cards' link is PCIe of 16 lanes of the third generation, or 8 of the fourth: 12 GB/s.
static const struct mr_plan_board boards[] = {
    {.name = "kv260",
     .chip = "XCK26",
     .cells = MR_PLAN_ULTRASCALE,
     .memory = "ddr4-2400",
     .channels = 1,
     .gigabytes = 19.2,
     .capacity = 4,
     .host = 0.5,
     .multipliers = 1248,
     .luts = 117120,
     .bram = 144,
     .uram = 64,
     .config = "kv260",
     .clock_mhz = 200,
     .watts = 36},
    {"u50", "XCU50", MR_PLAN_ULTRASCALE, "hbm2", 16, 14.4, 8, 5952, 872000, 1344, 640, ALVEO_SHELL,
     "u50", "u50t", 200, 75, 12, NULL, 0},
    {"u250", "XCU250", MR_PLAN_ULTRASCALE, "ddr4-2400", 4, 19.2, 64, 12288, 1728000, 2688, 1280,
     ALVEO_SHELL, "u250", NULL, 200, 225, 12, NULL, 0},
    {"u280", "XCU280", MR_PLAN_ULTRASCALE, "hbm2", 16, 14.4, 8, 9024, 1304000, 2016, 960,
     ALVEO_SHELL, "u280", "u280t", 200, 225, 12, NULL, 0},
    // Its maker says: 1 GB of DDR3 in two parts, 340 block RAMs of 18 Kb. That the parts make 32
    // bits at 800 MT/s is assumed (docs/use/plan.md). No way in by its PCIe is known yet.
    {.name = "tang-138k",
     .chip = "GW5AST-138C",
     .cells = MR_PLAN_GW5A,
     .memory = "ddr4-2400",
     .dram = "DDR3-800",
     .channels = 1,
     .gigabytes = 3.2,
     .capacity = 1,
     .multipliers = 298,
     .luts = 138240,
     .bram = 170,
     .config = "gw5a",
     .clock_mhz = 99},
};

const char *mr_plan_board_name(int index)
{
    return index >= 0 && index < (int)(sizeof boards / sizeof *boards) ? boards[index].name : NULL;
}

const struct mr_plan_board *mr_plan_board_named(const char *name)
{
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (strcasecmp(boards[i].name, name) == 0)
            return &boards[i];
    return NULL;
}

// The family that a configuration is meant for: that of the board that takes it, UltraScale+ where
// none does.
static enum mr_plan_cells cells_of(const struct mr_config_entry *c)
{
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (strcmp(boards[i].config, c->name) == 0)
            return boards[i].cells;
    return MR_PLAN_ULTRASCALE;
}

double mr_plan_clock_of(const struct mr_config_entry *c, const struct mr_plan_board *b)
{
    if (c && (!b || b->cells == cells_of(c)))
        return c->clock_khz / 1e3;
    return b ? b->clock_mhz : 300;
}

// More than this is left to others: training, where it is not there, and routing.
static const double share[2][MR_PLAN_KINDS] = {
    {[MR_PLAN_LUTS] = 52, [MR_PLAN_MULTIPLIERS] = 100, [MR_PLAN_BRAM] = 70, [MR_PLAN_URAM] = 70},
    {[MR_PLAN_LUTS] = 62, [MR_PLAN_MULTIPLIERS] = 100, [MR_PLAN_BRAM] = 75, [MR_PLAN_URAM] = 75}};

struct mr_plan_cost mr_plan_cost_of(const struct mr_geometry *g, bool pair, int fold,
                                    const struct mr_plan_board *b)
{
    struct mr_plan_area a = mr_plan_area_of(g, pair, fold, b ? b->cells : MR_PLAN_ANY, NULL);
    struct mr_plan_memories m = mr_plan_memories_of(g);
    return (struct mr_plan_cost){.array_multipliers = (int)a.array_multipliers,
                                 .use = {[MR_PLAN_LUTS] = a.luts,
                                         [MR_PLAN_MULTIPLIERS] = a.multipliers,
                                         [MR_PLAN_BRAM] = a.bram > 0 ? a.bram : m.bram,
                                         [MR_PLAN_URAM] = m.uram},
                                 .on_chip = m.bytes,
                                 .known = a.known,
                                 .places = a.places,
                                 .counted = a.counted,
                                 .trains = g->train != 0};
}

double mr_plan_board_has(const struct mr_plan_board *b, enum mr_plan_kind kind)
{
    const int has[] = {[MR_PLAN_LUTS] = b->luts,
                       [MR_PLAN_MULTIPLIERS] = b->multipliers,
                       [MR_PLAN_BRAM] = b->bram,
                       [MR_PLAN_URAM] = b->uram};
    return has[kind];
}

struct mr_plan_part mr_plan_part_of(const struct mr_plan_board *b, const struct mr_plan_cost *c,
                                    enum mr_plan_kind kind)
{
    double use = c->use[kind], has = mr_plan_board_has(b, kind);
    // Without UltraRAM, eight block RAMs hold what one would.
    if (b->uram == 0 && kind == MR_PLAN_BRAM)
        use += 8 * c->use[MR_PLAN_URAM];
    if (b->uram == 0 && kind == MR_PLAN_URAM)
        use = 0;
    double part = (has > 0 ? 100 * use / has : 0) + b->shell[kind];
    return (struct mr_plan_part){
        .percent = part, .fits = part <= 100, .room = part <= share[c->trains][kind]};
}

struct mr_plan_bytes mr_plan_bytes_of(const struct mr_config *model, enum mr_format format,
                                      const struct mr_geometry *g, int seqs)
{
    struct mr_dims d = mr_dims_of(model);
    int words = d.w / 64, scales = (words + 31) / 32, n = g->n;
    double positions = (model->n_positions + n - 1) / n;
    double rows = g->t < MR_PROGRAM_ROWS ? g->t : MR_PROGRAM_ROWS;
    if (mr_arch_of(model)->encoder) {
        // Each layer has the KV store that the one before has had, of a run's rows; rows go in and
        // out. Where a text can be longer than a run (engine/encode_chunks.c) there are also K and
        // V of all layers, both sides of all chunks, and the weights once more with a norm a layer.
        struct mr_stream_item norm = mr_stream_item(model, format, 0);
        bool longer = model->n_positions > rows;
        double chunks = ceil(model->n_positions / rows), layers = model->n_layer;
        double window = (double)MR_BEAT * (MR_PROGRAM_ROWS / 4) + rows * 4 * d.d;
        double stream = (double)mr_stream_beats(model, format, n);
        double again = longer ? stream + layers * (double)mr_item_beats(&norm, n) : 0;
        return (struct mr_plan_bytes){
            .weights = (double)MR_BEAT * n * (stream + again),
            .kv = (double)MR_BEAT * n * 3 * (words + scales) *
                  (rows + (longer ? layers * positions : 0)),
            .windows = window + rows * 4 * d.d + (longer ? 2 * chunks * window : 0),
        };
    }
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
