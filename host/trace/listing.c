// SPDX-License-Identifier: Apache-2.0
#include "trace/listing.h"

#include <inttypes.h>
#include <string.h>

#include "cmodel/row_work.h"
#include "trace/programs.h"
#include "train/work.h"

enum { SHAPE = 96 };

struct listing {
    const struct mr_listing *l;
    FILE *out;
    struct mr_work sum;
    uint64_t programs, commands;
};

static unsigned get(const struct mr_command *c, unsigned field)
{
    return mr_command_get(c, field);
}

// ---- shapes -------------------------------------------------------------------------------------

static const char *const moves[] = {
    [MR_MOVE_COPY] = "copy of row",
    [MR_MOVE_NORM_BACK] = "LayerNorm backwards in row",
    [MR_MOVE_NORM_GAIN] = "gain's gradient in row",
    [MR_MOVE_SOFTMAX] = "softmax in row",
    [MR_MOVE_SOFTMAX_BACK] = "softmax backwards in row",
};

static void shape_of_matmul(const struct mr_command *c, int rows, char *text)
{
    static const char *const to[] = {[MR_DST_ACT] = "activations",
                                     [MR_DST_QKV] = "q/k/v",
                                     [MR_DST_RES] = "row",
                                     [MR_DST_RESULT] = "results"};
    bool row = get(c, MR_F_MATMUL_DST) == MR_DST_RES;
    (void)snprintf(
        text, SHAPE, "%d x %u x %u -> %s%s%s%s%s%s%s", rows, 32 * get(c, MR_F_MATMUL_KBLOCKS),
        get(c, MR_F_MATMUL_COLS), to[get(c, MR_F_MATMUL_DST)],
        !row                      ? ""
        : get(c, MR_F_MATMUL_ROW) ? " 2"
                                  : " 1",
        row && !get(c, MR_F_MATMUL_SET) ? ", added" : "",
        get(c, MR_F_MATMUL_ROTARY) ? ", rotary" : "",
        get(c, MR_F_MATMUL_FUNCTION) ? ", GELU"
        : get(c, MR_F_MATMUL_SLOPE)  ? ", GELU's slopes"
                                     : "",
        get(c, MR_F_MATMUL_TILES) ? ", tiles" : "", get(c, MR_F_MATMUL_TURNED) ? ", turned" : "");
}

static void shape_of_move(const struct mr_command *c, int rows, char *text)
{
    unsigned work = get(c, MR_F_MOVE_ROWS_WORK);
    bool second = work == MR_MOVE_COPY ? get(c, MR_F_MOVE_ROWS_SRC) : mr_row_work_writes(work) == 2;
    (void)snprintf(text, SHAPE, "%d x %u, %s %d%s%s", rows, get(c, MR_F_MOVE_ROWS_COLS),
                   moves[work], 1 + second, get(c, MR_F_MOVE_ROWS_TO_ACT) ? " -> activations" : "",
                   get(c, MR_F_MOVE_ROWS_TURNED) ? ", turned" : "");
}

// Columns, blocks and their place in the matrix.
static void shape_of_part(char *text, const char *what, unsigned first, unsigned n, unsigned kblock,
                          unsigned kblocks, unsigned off)
{
    (void)snprintf(text, SHAPE, "%s %u..%u, k-blocks %u..%u, at %u", what, first, first + n - 1,
                   kblock, kblock + kblocks - 1, off);
}

static void shape_of(const struct mr_command *c, int rows, char text[SHAPE])
{
    text[0] = 0;
    switch (get(c, MR_F_CMD_OPCODE)) {
    case MR_OP_MATMUL:
        shape_of_matmul(c, rows, text);
        break;
    case MR_OP_GRAD:
        (void)snprintf(text, SHAPE, "%u x %u x %u -> int32", get(c, MR_F_GRAD_ROWS),
                       32 * get(c, MR_F_GRAD_KBLOCKS), get(c, MR_F_GRAD_COLS));
        break;
    case MR_OP_LOAD_ROWS:
        (void)snprintf(text, SHAPE, "rotary of %d rows", rows);
        break;
    case MR_OP_STREAM_VEC:
        (void)snprintf(text, SHAPE, "gain and bias of %u", get(c, MR_F_STREAM_VEC_D));
        break;
    case MR_OP_STREAM_TILES:
        (void)snprintf(text, SHAPE, "%u x %u", 32 * get(c, MR_F_STREAM_TILES_KBLOCKS),
                       get(c, MR_F_STREAM_TILES_COLS));
        break;
    case MR_OP_STREAM_STASH:
        shape_of_part(text, "columns", get(c, MR_F_STREAM_STASH_FIRST_COL),
                      get(c, MR_F_STREAM_STASH_COLS), get(c, MR_F_STREAM_STASH_FIRST_KBLOCK),
                      get(c, MR_F_STREAM_STASH_KBLOCKS), get(c, MR_F_STREAM_STASH_OFF));
        break;
    case MR_OP_LOAD_ACT:
        shape_of_part(text, "rows", get(c, MR_F_LOAD_ACT_FIRST_COL), get(c, MR_F_LOAD_ACT_ROWS),
                      get(c, MR_F_LOAD_ACT_FIRST_KBLOCK), get(c, MR_F_LOAD_ACT_KBLOCKS),
                      get(c, MR_F_LOAD_ACT_OFF));
        break;
    case MR_OP_MOVE_ROWS:
        shape_of_move(c, rows, text);
        break;
    case MR_OP_FETCH_ROWS:
        (void)snprintf(text, SHAPE, "%d x %u -> row %u%s", rows, 16 * get(c, MR_F_FETCH_ROWS_BEATS),
                       1 + get(c, MR_F_FETCH_ROWS_ROW),
                       get(c, MR_F_FETCH_ROWS_ADD) ? ", added" : "");
        break;
    case MR_OP_SAVE_ROWS:
        (void)snprintf(text, SHAPE, "%d x %u of row %u", rows, 16 * get(c, MR_F_SAVE_ROWS_BEATS),
                       1 + get(c, MR_F_SAVE_ROWS_ROW));
        break;
    case MR_OP_LAYERNORM:
        (void)snprintf(text, SHAPE, "%d x %u -> activations", rows,
                       32 * get(c, MR_F_LAYERNORM_DBLOCKS));
        break;
    case MR_OP_ATTEND:
        (void)snprintf(text, SHAPE, "%d rows, %u heads of %u", rows, get(c, MR_F_ATTEND_HEADS),
                       64 * get(c, MR_F_ATTEND_HEAD_BEATS));
        break;
    case MR_OP_STORE_KV:
        (void)snprintf(text, SHAPE, "%s of %d rows", get(c, MR_F_STORE_KV_IS_V) ? "V" : "K", rows);
        break;
    default:
        break;
    }
}

static void print_head(const struct listing *x, const struct mr_pass_program *p)
{
    char name[96];
    fprintf(x->out, "layer %d, %s, ", p->layer, mr_program_name(p, name, sizeof name));
    if (p->part == MR_PASS_WEIGHTS)
        fprintf(x->out, "all rows\n");
    else
        fprintf(x->out, "from row %d on, %d at a time\n", p->first, p->rows);
}

static void print_work(const struct listing *x, const char *name, const char *item,
                       const char *shape, const struct mr_work *w)
{
    const uint64_t n[] = {w->mac_blocks,    w->weights,   w->stash_read,
                          w->stash_written, w->host_read, w->host_written};
    char line[256];
    int at = snprintf(line, sizeof line, "  %-12s %-8s %-52s", name, item, shape);
    for (int i = 0; i < 6; i++) {
        int width = i == 0 ? 13 : 10;
        at += n[i] ? snprintf(line + at, sizeof line - (size_t)at, "%*" PRIu64, width, n[i])
                   : snprintf(line + at, sizeof line - (size_t)at, "%*s", width, "");
    }
    while (at > 0 && line[at - 1] == ' ')
        line[--at] = 0;
    fprintf(x->out, "%s\n", line);
}

static int show(void *arg, const struct mr_pass_program *p)
{
    struct listing *x = arg;
    if (x->l->layer >= 0 && p->layer != x->l->layer)
        return 0;
    print_head(x, p);
    for (int i = 0; i < p->count; i++) {
        const struct mr_command *c = &p->commands[i];
        unsigned opcode = get(c, MR_F_CMD_OPCODE);
        struct mr_work w = mr_work_of(c, x->l->g->n, p->rows);
        char shape[SHAPE];
        shape_of(c, p->rows, shape);
        print_work(x, mr_opcode_name(opcode), mr_program_item(x->l->model, p, i), shape, &w);
        mr_work_add(&x->sum, &w);
    }
    x->programs++;
    x->commands += (uint64_t)p->count;
    return 0;
}

int mr_listing_write(const struct mr_listing *l, FILE *out, struct mr_error *err)
{
    struct listing x = {.l = l, .out = out};
    struct mr_pass_options o = l->o;
    struct mr_pass *pass;
    char shape[SHAPE];
    o.rows = 0;
    for (int i = 0; i < l->n_sequences; i++)
        o.rows += l->lengths[i];
    int rc = mr_pass_plan(&pass, l->g, l->device, l->model, &o, err);
    if (rc < 0)
        return rc;
    fprintf(out, "  %-12s %-8s %-52s %12s %9s %9s %9s %9s %9s\n", "command", "item", "shape",
            "products", "weights", "stash in", "out", "host in", "out");
    rc = mr_pass_programs(pass, l->lengths, l->n_sequences, show, &x, err);
    mr_pass_close(pass);
    (void)snprintf(shape, sizeof shape, "%" PRIu64 " commands in %" PRIu64 " programs", x.commands,
                   x.programs);
    if (rc == 0)
        print_work(&x, "all", "", shape, &x.sum);
    return rc;
}
