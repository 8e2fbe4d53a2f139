// SPDX-License-Identifier: Apache-2.0
#include "pack/quantise.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "pack/compensate.h"
#include "pack/row_kernels.h"
#include "pack/source.h"

enum { COLS = 64 }; // outputs of a piece: sixteen groups of four

// The compensator of the input that was last needed: q, k and v have the same, for example.
struct inputs {
    struct mr_stream_item item; // whose input it is; k = 0: none yet
    int writer;                 // the item that writes it
    struct mr_compensator compensator;
    double *mean; // [k] of the input, as smoothed
};

// Of one thread.
struct scratch {
    float *w, *error; // [COLS][k] with calibration; else w [k] and no error
    uint8_t *code;    // [COLS][k/32]
    int8_t *element;  // [COLS][k]
    float *raw;       // one row of the checkpoint
    float bias[COLS];
    uint8_t *out; // a piece, packed
};

struct mr_quantiser {
    struct mr_quantise_input in;
    const struct mr_row_kernels *kernels;
    struct inputs inputs;
    struct scratch *scratch; // [workers]
    int workers;
    size_t out_bytes; // of scratch.out
};

// ---- inputs ----

static void free_inputs(struct inputs *inputs)
{
    mr_compensator_free(&inputs->compensator);
    free(inputs->mean);
    *inputs = (struct inputs){0};
}

// Moments of the input as the device gets it, smoothed and padded. Where a bias can take up the
// mean error, the moments are those about the mean.
static int make_inputs(struct inputs *in, struct mr_calibration *calibration,
                       const struct mr_source *s, const struct mr_stream_item *item,
                       struct mr_error *err)
{
    const struct mr_list *list = mr_items_of(mr_calibration_config(calibration), item->layer);
    int writer = mr_item_writer(list, item->index, item->item->from);
    if (in->item.k > 0 && in->item.layer == item->layer && in->item.bias == item->bias &&
        in->writer == writer)
        return 0;
    free_inputs(in);
    const struct mr_moments *m;
    int rc = mr_calibration_moments(calibration, item, &m, err);
    if (rc < 0)
        return rc;
    size_t k = (size_t)item->k;
    double *h = calloc(k * k, sizeof *h), n = (double)m->rows;
    in->mean = calloc(k, sizeof *in->mean);
    if (!h || !in->mean) {
        free(h);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for moments of %d inputs", item->k);
    }
    for (size_t i = 0; i < k; i++) {
        int ci = mr_unpad((int)i, s->shape.col_head, s->shape.cols);
        if (ci < 0)
            continue;
        int ei = s->col_exp ? -s->col_exp[ci] : 0;
        in->mean[i] = ldexp((double)m->sum[ci] / n, ei);
        for (size_t j = 0; j <= i; j++) {
            int cj = mr_unpad((int)j, s->shape.col_head, s->shape.cols);
            if (cj < 0)
                continue;
            int e = ei + (s->col_exp ? -s->col_exp[cj] : 0);
            double v = ldexp((double)m->outer[(size_t)ci * (size_t)m->n + (size_t)cj] / n, e);
            if (item->bias)
                v -= in->mean[i] * in->mean[j];
            h[i * k + j] = h[j * k + i] = v;
        }
    }
    in->item = *item;
    in->writer = writer;
    return mr_compensator_make(&in->compensator, item->k, h, err);
}

// ---- a piece: COLS outputs of a matrix ----

struct run {
    struct mr_quantiser *q;
    struct mr_sink *sink;
    size_t piece; // bytes, but for the last
    // one of the two
    struct mr_stream_item item;
    struct mr_source source;
    const struct mr_tensor *copied;
    size_t elements_a_piece;
    // results
    atomic_size_t done; // bytes that progress() has not heard of
    atomic_int failed;  // the first piece that failed, or INT_MAX
    pthread_mutex_t lock;
    struct mr_error error; // of that piece; guarded by lock
};

static int read_bias(const struct run *run, int base, struct scratch *s, struct mr_error *err)
{
    const struct mr_tensor *bias = run->source.bias;
    for (int o = 0; o < COLS; o++) {
        int r = mr_unpad(base + o, run->source.shape.row_head, run->source.shape.rows);
        s->bias[o] = 0;
        if (!run->item.bias || r < 0)
            continue;
        (void)mr_tensor_read_f32(bias, (size_t)r, 1, &s->bias[o]); // of a checkpoint
        if (mr_expo(s->bias[o]) == 255)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: element %d is infinite or NaN; the checkpoint is damaged or its "
                           "training diverged",
                           bias->name, r);
        if (run->source.row_exp)
            s->bias[o] = mr_fscale(s->bias[o], run->source.row_sign * run->source.row_exp[r]);
    }
    return 0;
}

// Each block for itself, row by row, so that a row stays in the cache.
static int round_rows(const struct run *run, int base, struct scratch *s, struct mr_error *err)
{
    const struct mr_row_kernels *kernels = run->q->kernels;
    size_t k = (size_t)run->item.k;
    for (size_t o = 0; o < COLS; o++) {
        int rc =
            mr_source_read(&run->source, kernels, base + (int)o, run->item.k, s->w, s->raw, err);
        if (rc < 0)
            return rc;
        (run->item.format == MR_FORMAT_MXFP4 ? kernels->mxfp4 : kernels->mxint8)(
            s->w, k / 32, s->code + o * k / 32, s->element + o * k);
    }
    return 0;
}

static int read_rows(const struct run *run, int base, struct scratch *s, struct mr_error *err)
{
    int rc = 0;
    for (int o = 0; o < COLS && rc == 0; o++)
        rc = mr_source_read(&run->source, run->q->kernels, base + o, run->item.k,
                            s->w + (size_t)o * (size_t)run->item.k, s->raw, err);
    return rc;
}

// With the errors made up for by other weights, and their mean by the bias.
static int compensate_rows(const struct run *run, int base, struct scratch *s, struct mr_error *err)
{
    const struct inputs *in = &run->q->inputs;
    size_t k = (size_t)run->item.k;
    int rc = read_rows(run, base, s, err);
    if (rc == 0)
        rc = mr_compensate(&in->compensator, run->item.format, COLS, s->w, s->code, s->element,
                           s->error, err);
    for (size_t o = 0; rc == 0 && run->item.bias && o < COLS; o++) {
        double lost = 0; // of the mean output
        for (size_t i = 0; i < k; i++)
            lost += (double)s->error[o * k + i] * in->mean[i];
        s->bias[o] = (float)((double)s->bias[o] + lost);
    }
    return rc;
}

// What was read of the mapped file is not needed again.
static void release_rows(const struct run *run, int base)
{
    const struct mr_matrix_shape *m = &run->source.shape;
    int first = -1, last = -1;
    for (int o = 0; o < COLS; o++) {
        int r = mr_unpad(base + o, m->row_head, m->rows);
        first = first < 0 ? r : first;
        last = r >= 0 ? r : last;
    }
    if (first >= 0)
        mr_tensor_release(run->source.weight, (size_t)first * (size_t)m->cols,
                          (size_t)(last - first + 1) * (size_t)m->cols);
}

// Puts column o into its group; codes and elements of k-block b go to section b / 16. Returns the
// largest code.
static uint8_t put_column(const struct mr_stream_item *item, const struct scratch *c, int o,
                          uint8_t *group)
{
    int kb = item->k / 32, fp4 = item->format == MR_FORMAT_MXFP4, lane = o % 4;
    size_t per_block = fp4 ? 64 : 128; // bytes of the four columns
    uint8_t top = 0;
    for (int b = 0; b < kb; b++) {
        uint8_t *section = group + (size_t)(b / 16) * (MR_BEAT + 16 * per_block);
        uint8_t *data = section + MR_BEAT + (size_t)(b % 16) * per_block;
        size_t block = (size_t)o * (size_t)kb + (size_t)b;
        const int8_t *e = c->element + 32 * block;
        if (fp4)
            for (int i = 0; i < 16; i++)
                data[16 * lane + i] = (uint8_t)(e[2 * i] | e[2 * i + 1] << 4);
        else
            memcpy(data + 32 * lane, e, 32);
        section[4 * (b % 16) + lane] = c->code[block];
        top = c->code[block] > top ? c->code[block] : top;
    }
    return top;
}

static int make_columns(const struct run *run, int i, struct scratch *s, size_t *size,
                        struct mr_error *err)
{
    size_t group_bytes = (size_t)mr_group_beats(&run->item) * MR_BEAT;
    size_t header_bytes = (size_t)mr_header_beats(&run->item) * MR_BEAT;
    int base = i * COLS, rc = read_bias(run, base, s, err);
    if (rc == 0)
        rc = (run->q->in.calibration ? compensate_rows : round_rows)(run, base, s, err);
    if (rc < 0)
        return rc;
    release_rows(run, base);
    *size = run->piece;
    memset(s->out, 0, run->piece);
    for (int o = 0; o < COLS; o++)
        s->out[o] =
            put_column(&run->item, s, o, s->out + header_bytes + (size_t)(o / 4) * group_bytes);
    if (run->item.bias)
        memcpy(s->out + MR_BEAT, s->bias, sizeof s->bias);
    return 0;
}

// The first of n elements that is Inf or NaN, or n.
static size_t first_infinite(enum mr_dtype dtype, const uint8_t *data, size_t n)
{
    size_t i = 0;
    if (dtype == MR_DTYPE_F32) {
        for (uint32_t v; i < n; i++) {
            memcpy(&v, data + i * sizeof v, sizeof v);
            if ((v & 0x7F800000u) == 0x7F800000u)
                break;
        }
        return i;
    }
    unsigned exponent = dtype == MR_DTYPE_F16 ? 0x7C00u : 0x7F80u;
    for (uint16_t v; i < n; i++) {
        memcpy(&v, data + i * sizeof v, sizeof v);
        if ((v & exponent) == exponent)
            break;
    }
    return i;
}

static int make_copy(const struct run *run, int i, struct scratch *s, size_t *size,
                     struct mr_error *err)
{
    const struct mr_tensor *t = run->copied;
    size_t first = (size_t)i * run->elements_a_piece;
    size_t n = t->count - first < run->elements_a_piece ? t->count - first : run->elements_a_piece;
    (void)mr_tensor_copy(t, first, n, s->out); // in range
    mr_tensor_release(t, first, n);
    size_t bad = first_infinite(t->dtype, s->out, n);
    if (bad < n)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: row %zu has an infinite or NaN weight; the checkpoint is damaged or "
                       "its training diverged",
                       t->name, (first + bad) / (size_t)t->shape[t->rank - 1]);
    *size = n * (t->bytes / t->count);
    return 0;
}

// ---- all pieces of a tensor ----

static void fail_piece(struct run *run, int i, const struct mr_error *err)
{
    pthread_mutex_lock(&run->lock);
    if (i <
        run->failed) { // pieces are begun in order, so the first to fail does not depend on luck
        run->failed = i;
        run->error = *err;
    }
    pthread_mutex_unlock(&run->lock);
    if (run->sink)
        mr_sink_give_up(run->sink);
}

static void tell(struct run *run, int i)
{
    const struct mr_quantise_input *in = &run->q->in;
    size_t bytes = atomic_exchange(&run->done, 0);
    if (in->progress && in->progress(in->arg, bytes))
        fail_piece(run, i, &(struct mr_error){.status = MR_ERR_INTERRUPTED, .text = "interrupted"});
}

static void do_piece(void *arg, int i, int worker)
{
    struct run *run = arg;
    struct scratch *s = &run->q->scratch[worker];
    struct mr_error err = {0};
    size_t size = 0;
    if (i > run->failed)
        return;
    int rc = run->copied ? make_copy(run, i, s, &size, &err) : make_columns(run, i, s, &size, &err);
    if (rc == 0 && run->sink)
        rc = mr_sink_put(run->sink, i, (size_t)i * run->piece, s->out, size, &err);
    if (rc < 0)
        fail_piece(run, i, &err);
    atomic_fetch_add(&run->done, size);
    if (worker == 0 && i <= run->failed)
        tell(run, i);
}

static int do_run(struct run *run, int pieces, bool share, struct mr_error *err)
{
    run->failed = INT_MAX;
    pthread_mutex_init(&run->lock, NULL);
    mr_pool_run(run->q->in.pool, pieces, do_piece, run, share);
    if (run->failed == INT_MAX && run->done > 0) // of the other threads
        tell(run, pieces);
    pthread_mutex_destroy(&run->lock);
    if (run->failed == INT_MAX)
        return 0;
    return mr_fail(err, run->error.status, "%s", run->error.text);
}

static int quantise_matrix(struct mr_quantiser *q, const struct mr_stream_item *item,
                           struct mr_sink *sink, struct mr_error *err)
{
    struct run run = {.q = q, .sink = sink, .item = *item};
    run.piece = (size_t)(mr_header_beats(item) + COLS / 4 * mr_group_beats(item)) * MR_BEAT;
    int rc = 0;
    mr_source_find(&run.source, q->in.checkpoint, q->in.smooth, item);
    if (q->in.calibration) {
        rc = read_rows(&run, 0, &q->scratch[0], err); // NaN is said here and not of the moments
        if (rc == 0)
            rc = make_inputs(&q->inputs, q->in.calibration, &run.source, item, err);
    }
    // The compensator's library has threads of its own.
    return rc < 0 ? rc : do_run(&run, item->cols / COLS, !q->in.calibration, err);
}

int mr_quantise_copy(struct mr_quantiser *q, const struct mr_tensor *tensor, struct mr_sink *sink,
                     struct mr_error *err)
{
    size_t size = tensor->bytes / tensor->count;
    struct run run = {.q = q, .sink = sink, .copied = tensor};
    run.elements_a_piece = q->out_bytes / size;
    run.piece = run.elements_a_piece * size;
    int pieces = (int)((tensor->count + run.elements_a_piece - 1) / run.elements_a_piece);
    return do_run(&run, pieces, true, err);
}

static int quantise_vectors(struct mr_quantiser *q, const struct mr_stream_item *item,
                            struct mr_sink *sink, struct mr_error *err)
{
    const struct mr_checkpoint *ck = q->in.checkpoint;
    const struct mr_config *c = mr_checkpoint_config(ck);
    uint8_t *out = q->scratch[0].out;
    int group = mr_item_scaling(mr_arch_of(c), mr_items_of(c, item->layer), item->index).rows;
    const int8_t *exp = group < 0 ? NULL : mr_smooth_group(q->in.smooth, item->layer, group);
    size_t half = (size_t)mr_item_beats(item, 1) / 2 * MR_BEAT;
    memset(out, 0, 2 * half);
    for (int part = 0; part < MR_PARTS; part++) {
        const struct mr_tensor *t =
            mr_checkpoint_item(ck, item->layer, item->item, (enum mr_part)part);
        for (int i = 0; i < c->n_embd; i++) {
            float v;
            (void)mr_tensor_read_f32(t, (size_t)i, 1, &v); // of a checkpoint
            if (mr_expo(v) == 255)
                return mr_fail(err, MR_ERR_FORMAT,
                               "%s: element %d is infinite or NaN; the checkpoint is damaged or "
                               "its training diverged",
                               t->name, i);
            v = exp ? mr_fscale(v, -exp[i]) : v;
            memcpy(out + (size_t)part * half + 4 * (size_t)i, &v, 4);
        }
    }
    return mr_sink_put(sink, 0, 0, out, 2 * half, err);
}

int mr_quantise_item(struct mr_quantiser *q, const struct mr_stream_item *item,
                     struct mr_sink *sink, struct mr_error *err)
{
    return item->cols == 0 ? quantise_vectors(q, item, sink, err)
                           : quantise_matrix(q, item, sink, err);
}

// ---- memory ----

static bool allocate(struct scratch *s, size_t k, size_t out_bytes, bool calibrate)
{
    size_t n = COLS * k;
    s->w = malloc((calibrate ? n : k) * sizeof *s->w);
    s->error = calibrate ? malloc(n * sizeof *s->error) : NULL;
    s->code = malloc(n / 32);
    s->element = malloc(n);
    s->raw = malloc(k * sizeof *s->raw);
    s->out = malloc(out_bytes);
    return s->w && (s->error || !calibrate) && s->code && s->element && s->raw && s->out;
}

int mr_quantiser_open(struct mr_quantiser **out, const struct mr_quantise_input *in,
                      struct mr_error *err)
{
    struct mr_dims d = mr_dims_of(mr_checkpoint_config(in->checkpoint));
    int longest = d.longest;
    const struct mr_stream_item widest = {.k = longest, .bias = true, .format = MR_FORMAT_MXINT8};
    struct mr_quantiser *q = *out = calloc(1, sizeof *q);
    if (!q)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for packing");
    q->in = *in;
    q->kernels = mr_row_kernels[mr_simd_best()];
    q->workers = mr_pool_workers(in->pool);
    q->out_bytes =
        (size_t)(mr_header_beats(&widest) + COLS / 4 * mr_group_beats(&widest)) * MR_BEAT;
    q->scratch = calloc((size_t)q->workers, sizeof *q->scratch);
    bool enough = q->scratch;
    for (int i = 0; enough && i < q->workers; i++)
        enough = allocate(&q->scratch[i], (size_t)longest, q->out_bytes, in->calibration);
    if (enough)
        return 0;
    int rc = mr_fail(err, MR_ERR_MEMORY, "no memory for packing with %d threads", q->workers);
    mr_quantiser_close(q);
    *out = NULL;
    return rc;
}

void mr_quantiser_close(struct mr_quantiser *q)
{
    if (!q)
        return;
    for (int i = 0; q->scratch && i < q->workers; i++) {
        free(q->scratch[i].w);
        free(q->scratch[i].error);
        free(q->scratch[i].code);
        free(q->scratch[i].element);
        free(q->scratch[i].raw);
        free(q->scratch[i].out);
    }
    free(q->scratch);
    free_inputs(&q->inputs);
    free(q);
}
