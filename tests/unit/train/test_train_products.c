// SPDX-License-Identifier: Apache-2.0
// Each product of the backward pass on the C model, from the operands in fp32 that the reference
// has, against that product in double: dX, dW, dQ, dK, dV of the demo model, pooled over layers and
// heads, the least of eight batches.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmodel/num.h"
#include "device/open.h"
#include "reference/reference.h"
#include "train/pass.h"
#include "train/pass_impl.h"
#include "unit/check.h"
#include "unit/memory_store.h"
#include "unit/train/spoken.h"

enum { ROWS = 64, BATCHES = 8, WIDE = 2048 };
enum { DX, DW, DQ, DK, DV, PRODUCTS };

static const struct {
    const char *name;
    double bound; // dB
} products[PRODUCTS] = {{"dX", 35}, {"dW", 30}, {"dQ", 32}, {"dK", 35}, {"dV", 37}};

struct measured {
    const struct mr_config *c;
    const struct mr_params *weights;
    struct mr_reference *reference;
    struct mr_device *dev;
    struct mr_pass *p;
    double size[PRODUCTS], error[PRODUCTS];
    float *got; // [ROWS][WIDE]
};

static void add(struct measured *m, int product, double want, double got)
{
    m->size[product] += want * want;
    m->error[product] += (want - got) * (want - got);
}

// ---- fp32 rows to and from the device: at the beginning of the rows window ----------------------

static void write_rows(const struct measured *m, const float *x, int width)
{
    struct mr_error err = {0};
    check(mr_device_write(m->dev, m->p->mem.rows_addr, x, ROWS * (size_t)width * sizeof *x, &err),
          &err);
}

static void fetch(struct run *r, int width)
{
    struct mr_command *c = run_add(r, MR_OP_FETCH_ROWS, 0, run_place(MR_RESIDUAL));
    mr_command_set(c, MR_F_FETCH_ROWS_BEATS, (uint32_t)width / 16);
}

static void save(struct run *r, int width)
{
    struct mr_command *c = run_add(r, MR_OP_SAVE_ROWS, run_memory(MR_MEM_SECOND), 0);
    mr_command_set(c, MR_F_SAVE_ROWS_BEATS, (uint32_t)width / 16);
    mr_command_set(c, MR_F_SAVE_ROWS_ROW, 1);
}

static void read_rows(const struct measured *m, int width)
{
    struct mr_error err = {0};
    check(
        mr_device_read(m->dev, m->p->mem.rows_addr, m->got, ROWS * (size_t)width * sizeof(float), &err),
        &err);
}

static void turn(const struct measured *m, const float *x, int width, uint64_t off)
{
    struct mr_error err = {0};
    struct run r;
    write_rows(m, x, width);
    check(run_begin(&r, m->p, ROWS, &err), &err);
    fetch(&r, width);
    run_copy_turned(&r, run_copy(&r, false, width, NO_MEMORY), off, 0, 0, 0);
    check(run_end(&r), &err);
}

static void product_to_rows(struct run *r, int kblocks, int cols)
{
    struct mr_command *c = run_matmul(r, kblocks, cols, run_place(MR_X), run_memory(MR_MEM_SECOND));
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
    mr_command_set(c, MR_F_MATMUL_ROW, 1);
    mr_command_set(c, MR_F_MATMUL_SET, 1);
    save(r, cols);
}

// ---- matrices -----------------------------------------------------------------------------------

// dX = dY W
static void input_gradient(struct measured *m, const struct mr_stream_item *it, int stream,
                           const float *dy, const float *w)
{
    struct mr_error err = {0};
    struct run r;
    write_rows(m, dy, it->cols);
    check(run_begin(&r, m->p, ROWS, &err), &err);
    fetch(&r, it->cols);
    (void)run_copy(&r, false, it->cols, run_place(MR_X));
    (void)run_stream_weights(&r, m->p->at.wt_off[stream], it->cols / 32, it->k, false);
    product_to_rows(&r, it->cols / 32, it->k);
    check(run_end(&r), &err);
    read_rows(m, it->k);
    for (int i = 0; i < ROWS; i += 9) { // a part of them is enough
        static double want[WIDE];
        memset(want, 0, sizeof want);
        for (int o = 0; o < it->cols; o++)
            for (int k = 0; k < it->k; k++)
                want[k] += (double)dy[i * it->cols + o] * w[o * it->k + k];
        for (int k = 0; k < it->k; k++)
            add(m, DX, want[k], m->got[i * it->k + k]);
    }
}

static void sum(struct mr_pass *p, size_t tensor, uint64_t rows_off, uint64_t cols_off)
{
    struct mr_error err = {0};
    check(pass_grad(p, tensor, rows_off, cols_off, &err), &err);
    check(pass_sums(p, EVERYTHING, &err), &err);
    check(pass_read_gradients(p, &err), &err);
}

// dW = dY^T X
static void weight_gradient(struct measured *m, const struct mr_stream_item *it, size_t tensor,
                            const float *dy, const float *x)
{
    struct mr_error err = {0};
    struct mr_pass *p = m->p;
    struct tensor_grad *t = &p->host.tensors[tensor];
    uint64_t in = p->at.grad[MR_HIDDEN].turned, out = p->at.grad[MR_RESULT].turned;
    turn(m, x, it->k, in);
    turn(m, dy, it->cols, out);
    t->unit = NO_UNIT;
    sum(p, tensor, t->inputs_are_rows ? in : out, t->inputs_are_rows ? out : in);
    assert_int_equal(t->flags, 0);
    // A second time with the unit that the rule gives.
    t->unit += bit_length(t->peak) - bit_length(p->limit) + 3; // as the next step has it
    sum(p, tensor, t->inputs_are_rows ? in : out, t->inputs_are_rows ? out : in);
    assert_int_equal(t->flags, 0);
    size_t bytes = (size_t)(t->rows / 32) * (size_t)(t->cols / 64) * 8192;
    check(mr_device_read(m->dev, p->mem.grad_addr + t->off * 64, p->host.tiles, bytes, &err), &err);
    for (int row = 0; row < t->rows; row += 31)
        for (int col = 0; col < t->cols; col++) {
            int o = t->inputs_are_rows ? col : row, k = t->inputs_are_rows ? row : col;
            double want = 0;
            for (int i = 0; i < ROWS; i++)
                want += (double)dy[i * it->cols + o] * x[i * it->k + k];
            size_t at = 2048 * (size_t)(row / 32 * (t->cols / 64) + col / 64) +
                        (size_t)(row % 32 * 64 + col % 64);
            add(m, DW, want, ldexp(p->host.tiles[at], t->unit));
        }
}

// ---- attention ----------------------------------------------------------------------------------

struct head {
    int e, n;
    const float *q, *k, *v, *dy;
    float p[ROWS * ROWS], ds[ROWS * ROWS];
};

// dQ = dS K, dK = dS^T Q, dV = P^T dO; `turned`: the columns, of all heads.
static void head_on_device(struct measured *m, const struct head *h, int first_col, int product,
                           uint64_t turned)
{
    struct mr_error err = {0};
    struct mr_pass *p = m->p;
    struct run r;
    const float *rows = product == DV ? h->p : h->ds;
    if (product != DQ)
        turn(m, rows, ROWS, p->at.ds_turned);
    write_rows(m, rows, ROWS);
    check(run_begin(&r, p, ROWS, &err), &err);
    fetch(&r, ROWS);
    if (product == DQ)
        (void)run_copy(&r, false, ROWS, run_place(MR_X));
    else
        (void)run_load_act(&r, p->at.ds_turned, p->batch.kblocks, 0, p->batch.kblocks, 0, ROWS, run_place(MR_X));
    run_stream_stash(&r, turned, p->batch.kblocks, 0, p->batch.kblocks, first_col, p->d.head_lanes);
    product_to_rows(&r, p->batch.kblocks, p->d.head_lanes);
    check(run_end(&r), &err);
    read_rows(m, p->d.head_lanes);
}

// The same in double.
static void head_exactly(struct head *h, double *dq, double *dk, double *dv)
{
    double scale = 1 / sqrt((double)h->n);
    memset(dk, 0, ROWS * (size_t)h->n * sizeof *dk);
    memset(dv, 0, ROWS * (size_t)h->n * sizeof *dv);
    memset(dq, 0, ROWS * (size_t)h->n * sizeof *dq);
    memset(h->p, 0, sizeof h->p);
    memset(h->ds, 0, sizeof h->ds);
    for (int t = 0; t < ROWS; t++) {
        double s[ROWS], dp[ROWS], top = -1e300, sum = 0, mean = 0;
        for (int u = 0; u <= t; u++) {
            s[u] = dp[u] = 0;
            for (int i = 0; i < h->n; i++) {
                s[u] += (double)h->q[t * h->e + i] * h->k[u * h->e + i] * scale;
                dp[u] += (double)h->dy[t * h->e + i] * h->v[u * h->e + i];
            }
            top = s[u] > top ? s[u] : top;
        }
        for (int u = 0; u <= t; u++)
            sum += s[u] = exp(s[u] - top);
        for (int u = 0; u <= t; u++)
            mean += s[u] / sum * dp[u];
        for (int u = 0; u <= t; u++) {
            double p = s[u] / sum, ds = p * (dp[u] - mean) * scale;
            h->p[t * ROWS + u] = (float)p;
            h->ds[t * ROWS + u] = (float)ds;
            for (int i = 0; i < h->n; i++) {
                dv[u * h->n + i] += p * h->dy[t * h->e + i];
                dk[u * h->n + i] += ds * h->q[t * h->e + i];
                dq[t * h->n + i] += ds * h->k[u * h->e + i];
            }
        }
    }
}

static void attend(struct measured *m, int layer, int i, const float *dy)
{
    const struct mr_stash *stash = mr_reference_stash(m->reference);
    static double want[3][ROWS * MR_HEAD_LANES_MAX];
    uint64_t dy_turned = m->p->at.grad[MR_ATTENTION].turned, q_turned = m->p->at.grad[MR_Q].turned,
             k_turned = m->p->at.grad[MR_K].turned;
    const float *q = mr_stash_input(stash, layer, i, MR_Q),
                *k = mr_stash_input(stash, layer, i, MR_K),
                *v = mr_stash_input(stash, layer, i, MR_V);
    int e = m->c->n_embd, n = m->c->head_dim;
    turn(m, q, e, q_turned);
    turn(m, k, e, k_turned);
    turn(m, dy, e, dy_turned);
    for (int head = 0; head < m->c->n_head; head++) {
        size_t at = (size_t)head * (size_t)n;
        static struct head h;
        h = (struct head){.e = e, .n = n, .q = q + at, .k = k + at, .v = v + at, .dy = dy + at};
        uint64_t turned[3] = {k_turned, q_turned, dy_turned};
        head_exactly(&h, want[0], want[1], want[2]);
        for (int product = DQ; product <= DV; product++) {
            head_on_device(m, &h, head * n, product, turned[product - DQ]);
            for (int x = 0; x < ROWS * n; x++)
                add(m, product, want[product - DQ][x], m->got[x]);
        }
    }
}

// ---- the batches --------------------------------------------------------------------------------

static void see(void *arg, int layer, int i, const float *dy)
{
    struct measured *m = arg;
    const struct mr_list *list = mr_items_of(m->c, layer);
    const struct mr_item *item = &list->items[i];
    if (item->kind == MR_ATTEND) {
        attend(m, layer, i, dy);
        return;
    }
    int stream = pass_item(m->p, layer, i)->stream;
    struct mr_stream_item it = mr_stream_item(m->c, MR_FORMAT_MXINT8, stream);
    size_t tensor = mr_params_index(m->c, layer, item, MR_WEIGHT);
    input_gradient(m, &it, stream, dy, mr_params_at(m->weights, tensor));
    weight_gradient(m, &it, tensor, dy,
                    mr_stash_input(mr_reference_stash(m->reference), layer, i, item->from));
}

static void products_are_good(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct spoken s;
    struct measured m = {0};
    struct mr_params gradient;
    struct mr_pass_options o = {.rows = ROWS};
    double least[PRODUCTS];
    spoken_open(&s, "models/demo", ROWS);
    m.c = s.config;
    m.weights = &s.weights;
    m.got = allocate((size_t)ROWS * WIDE, sizeof *m.got);
    check(mr_params_new(&gradient, m.c, &err), &err);
    check(mr_reference_open(&m.reference, &s.weights, &err), &err);
    check(mr_device_open(&m.dev, "model:sim,train", &err), &err);
    check(mr_pass_open(&m.p, m.dev, m.c, &o, &err), &err);
    struct mr_volume *volume;
    struct mr_store *store = memory_store(s.checkpoint, &volume);
    check(mr_pass_weights(m.p, store, &err), &err);
    mr_reference_observe(m.reference, see, &m);
    m.p->batch.rows = m.p->batch.cols = ROWS;
    m.p->batch.kblocks = ROWS / 32;
    for (int b = 0; b < BATCHES; b++) {
        struct mr_loss loss = {0};
        spoken_batch(&s, 100 + (unsigned)b);
        memset(m.size, 0, sizeof m.size);
        memset(m.error, 0, sizeof m.error);
        check(mr_reference_run(m.reference, &s.batch, &loss, &gradient, &err), &err);
        for (int i = 0; i < PRODUCTS; i++) {
            double db = 10 * log10(m.size[i] / m.error[i]);
            least[i] = b == 0 || db < least[i] ? db : least[i];
        }
    }
    for (int i = 0; i < PRODUCTS; i++)
        printf("# %s: %.1f dB, at least %.0f\n", products[i].name, least[i], products[i].bound);
    for (int i = 0; i < PRODUCTS; i++)
        assert_true(least[i] >= products[i].bound);
    mr_pass_close(m.p);
    mr_store_close(store);
    mr_device_close(m.dev);
    mr_reference_close(m.reference);
    mr_params_free(&gradient);
    free(m.got);
    spoken_close(&s);
}

int main(void)
{
    if (setenv("MILLRACE_THREADS", "1", 1) || setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_good)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
