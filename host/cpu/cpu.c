// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu.h"

#include <string.h>

#include "common/blas.h"
#include "cpu/cpu_impl.h"
#include "cpu/cpu_math.h"

// ---- a step ----

void mr_cpu_observe(struct mr_cpu *cpu,
                    void (*see)(void *arg, enum mr_cpu_seen what, int layer, int item, int rows,
                                int width, const float *data),
                    void *arg)
{
    cpu->see = see;
    cpu->see_arg = arg;
}

void mr_cpu_watch(struct mr_cpu *cpu, int (*watch)(void *arg, int layer, double share, int rows),
                  void *arg)
{
    cpu->watch = watch;
    cpu->watch_arg = arg;
}

// One head of one row against its sequence's keys and values; out[head_dim].
static void attend(struct mr_cpu *cpu, int layer, const float *q, const float *keys,
                   const float *values, int position, float *out)
{
    int head_dim = cpu->config->head_dim;
    int n_embd = cpu->config->n_embd;
    int visible = position + 1; // the causal mask: itself and what came before
    float *scores = cpu->scratch.scores;
    mr_blas.sgemv(CblasRowMajor, CblasNoTrans, visible, head_dim, 1.0F, keys, n_embd, q, 1, 0.0F,
                  scores, 1);
    mr_cpu_softmax(scores, (size_t)visible, 1.0F / (float)mr_attention_root(cpu->config, layer));
    mr_blas.sgemv(CblasRowMajor, CblasTrans, visible, head_dim, 1.0F, values, n_embd, scores, 1,
                  0.0F, out, 1);
}

// Rows that go through a list of items together.
struct pass {
    int layer, item, n_rows;
    const struct mr_cpu_row *rows; // of a block
    const int *lengths;            // of an encoder: its texts, one behind the other
    bool pending;                  // scratch.delta is to be added to the residual
    float *logits;                 // of the tail
    double all, done;              // elements of the list's matrices
};

// The watcher hears where the pass is; true: it ends the step.
static bool stopped(const struct mr_cpu *cpu, const struct pass *p)
{
    return cpu->watch &&
           cpu->watch(cpu->watch_arg, p->layer, p->all > 0 ? p->done / p->all : 0, p->n_rows);
}

static void show(const struct mr_cpu *cpu, const struct pass *p, enum mr_cpu_seen what,
                 enum mr_place place, const float *data)
{
    if (cpu->see)
        cpu->see(cpu->see_arg, what, p->layer, p->item, p->n_rows,
                 mr_axis_length(cpu->config, mr_place_axis(place)), data);
}

// In both directions: each row of a text sees all of it.
static bool attend_texts(struct mr_cpu *cpu, const struct pass *p, float *out)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    float scale = 1.0F / (float)mr_attention_root(c, p->layer);
    for (int first = 0, t = 0; first < p->n_rows; first += p->lengths[t++]) {
        int n = p->lengths[t];
        for (int h = 0; h < c->n_head; h++) {
            size_t at = (size_t)first * (size_t)c->n_embd + (size_t)h * (size_t)c->head_dim;
            mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, c->head_dim, 1.0F,
                          s->place[MR_Q] + at, c->n_embd, s->place[MR_K] + at, c->n_embd, 0.0F,
                          s->scores, n);
            for (int r = 0; r < n; r++)
                mr_cpu_softmax(s->scores + (size_t)r * (size_t)n, (size_t)n, scale);
            mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, c->head_dim, n, 1.0F,
                          s->scores, n, s->place[MR_V] + at, c->n_embd, 0.0F, out + at, c->n_embd);
        }
        if (stopped(cpu, p))
            return false;
    }
    return true;
}

// out = attention of q; the rows' keys and values join those of their sequences first. False: the
// watcher has ended it, here and below.
static bool run_attend(struct mr_cpu *cpu, const struct pass *p, float *out)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    size_t n_embd = (size_t)c->n_embd;
    for (int r = 0; r < p->n_rows; r++) {
        const struct sequence *seq = &cpu->sequences[p->rows[r].seq];
        size_t row = (size_t)r * n_embd, cached = (size_t)s->position[r] * n_embd;
        memcpy(seq->keys[p->layer] + cached, s->place[MR_K] + row, n_embd * sizeof(float));
        memcpy(seq->values[p->layer] + cached, s->place[MR_V] + row, n_embd * sizeof(float));
    }
    for (int r = 0; r < p->n_rows; r++) {
        const struct sequence *seq = &cpu->sequences[p->rows[r].seq];
        for (int h = 0; h < c->n_head; h++) {
            size_t head = (size_t)h * (size_t)c->head_dim;
            size_t at = (size_t)r * n_embd + head;
            attend(cpu, p->layer, s->place[MR_Q] + at, seq->keys[p->layer] + head,
                   seq->values[p->layer] + head, s->position[r], out + at);
        }
        if (stopped(cpu, p))
            return false;
    }
    return true;
}

static void rotate_heads(const struct mr_cpu *cpu, float *x, int n_rows)
{
    const struct mr_config *c = cpu->config;
    for (int r = 0; r < n_rows; r++)
        for (int h = 0; h < c->n_head; h++)
            mr_cpu_rotate(x + (size_t)r * (size_t)c->n_embd + (size_t)h * (size_t)c->head_dim,
                          cpu->scratch.sincos + (size_t)r * (size_t)c->rotary_dim, c->rotary_dim);
}

// Piece by piece, so that the watcher hears of large matrices more than once.
static bool multiply(struct mr_cpu *cpu, struct pass *p, float *out, const float *in,
                     const float *weights, int n_out, int n_in)
{
    int most = mr_cpu_columns(p->n_rows, n_in);
    for (int at = 0; at < n_out; at += most) {
        int n = n_out - at < most ? n_out - at : most;
        mr_cpu_multiply(out + at, n_out, in, weights + (size_t)at * (size_t)n_in, p->n_rows, n,
                        n_in);
        p->done += (double)n * n_in;
        if (stopped(cpu, p))
            return false;
    }
    return true;
}

// Summands of the residual are added to each other first, and to it before it is read: the order of
// modeling_gptj, whose block adds two.
static bool run_linear(struct mr_cpu *cpu, const struct mr_item *item, const struct weights *w,
                       struct pass *p)
{
    struct scratch *s = &cpu->scratch;
    int n_out = mr_axis_length(cpu->config, mr_place_axis(item->to));
    int n_in = mr_axis_length(cpu->config, mr_place_axis(item->from));
    size_t n = (size_t)p->n_rows, size = n * (size_t)n_out;
    float *out = item->to == MR_RESULT     ? p->logits
                 : item->to != MR_RESIDUAL ? s->place[item->to]
                 : p->pending              ? s->product
                                           : s->delta;
    if (!multiply(cpu, p, out, s->place[item->from], w->weight, n_out, n_in))
        return false;
    if (w->bias)
        mr_cpu_add_bias(out, n, (size_t)n_out, w->bias);
    if (item->epilogue == MR_ROTARY)
        rotate_heads(cpu, out, p->n_rows);
    if (item->epilogue == MR_FUNCTION) {
        show(cpu, p, MR_CPU_RAW, item->to, out);
        mr_cpu_function(mr_function_of(cpu->config), out, size);
    }
    for (size_t i = 0; out == s->product && i < size; i++)
        s->delta[i] += out[i];
    p->pending |= item->to == MR_RESIDUAL;
    return true;
}

static void add_pending(struct mr_cpu *cpu, struct pass *p)
{
    float *x = cpu->scratch.place[MR_RESIDUAL];
    size_t size = (size_t)p->n_rows * (size_t)cpu->config->n_embd;
    for (size_t i = 0; p->pending && i < size; i++)
        x[i] = cpu->scratch.delta[i] + x[i];
    p->pending = false;
}

static void run_norm(struct mr_cpu *cpu, const struct mr_item *item, const struct weights *w,
                     struct pass *p)
{
    size_t n_embd = (size_t)cpu->config->n_embd;
    add_pending(cpu, p);
    show(cpu, p, MR_CPU_READ, MR_RESIDUAL, cpu->scratch.place[MR_RESIDUAL]);
    for (size_t r = 0; r < (size_t)p->n_rows; r++)
        mr_cpu_layer_norm(cpu->scratch.place[MR_X] + r * n_embd,
                          cpu->scratch.place[MR_RESIDUAL] + r * n_embd, n_embd, w->weight, w->bias,
                          cpu->config->layer_norm_epsilon);
    if (item->back)
        memcpy(cpu->scratch.place[MR_RESIDUAL], cpu->scratch.place[MR_X],
               (size_t)p->n_rows * n_embd * sizeof(float));
}

static double elements(const struct mr_cpu *cpu, const struct mr_list *list)
{
    double sum = 0;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].kind == MR_LINEAR)
            sum += (double)mr_axis_length(cpu->config, mr_place_axis(list->items[i].to)) *
                   mr_axis_length(cpu->config, mr_place_axis(list->items[i].from));
    return sum;
}

// The items of a block, or of the tail, in their order.
static bool run_items(struct mr_cpu *cpu, struct pass *p)
{
    const struct mr_list *list = mr_items_of(cpu->config, p->layer);
    bool more = true;
    p->all = elements(cpu, list);
    for (int i = 0; more && i < list->count; i++) {
        const struct mr_item *item = &list->items[i];
        const struct weights *w = mr_cpu_weights(cpu, p->layer, i);
        p->item = i;
        if (item->kind == MR_NORM)
            run_norm(cpu, item, w, p);
        else if (item->kind == MR_ATTEND)
            more = (p->lengths ? attend_texts : run_attend)(cpu, p, cpu->scratch.place[item->to]);
        else
            more = run_linear(cpu, item, w, p);
        if (more && item->to != MR_RESIDUAL && item->to != MR_RESULT)
            show(cpu, p, MR_CPU_WRITTEN, item->to, cpu->scratch.place[item->to]);
    }
    add_pending(cpu, p);
    return more;
}

// Writes the logits of the rows that want them and returns how many there were, or -1.
static int write_logits(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows,
                        float *logits)
{
    float *x = cpu->scratch.place[MR_RESIDUAL];
    size_t n_embd = (size_t)cpu->config->n_embd;
    struct pass p = {.layer = cpu->config->n_layer, .logits = logits};
    for (int r = 0; r < n_rows; r++) {
        if (rows[r].want_logits && p.n_rows++ < r)
            memcpy(x + (size_t)(p.n_rows - 1) * n_embd, x + (size_t)r * n_embd, n_embd * sizeof *x);
    }
    return p.n_rows == 0 || run_items(cpu, &p) ? p.n_rows : -1;
}

// The sum of the tables' rows. In range: the types were checked when the checkpoint was opened, the
// token by our caller.
static void embed(struct mr_cpu *cpu, int token, int position, int type, float *x)
{
    size_t n = (size_t)cpu->config->n_embd;
    for (int t = 0; t < cpu->arch->tables.count; t++) {
        enum mr_by by = cpu->arch->tables.items[t].by;
        int row = by == MR_BY_TYPE ? type : by == MR_BY_TOKEN ? token : position;
        float *to = t == 0 ? x : cpu->scratch.row;
        (void)mr_tensor_read_f32(cpu->tables[t], (size_t)row * n, n, to);
        for (size_t i = 0; t > 0 && i < n; i++)
            x[i] += to[i];
    }
}

// Runs at most MAX_ROWS rows, all of them checked and with room in the caches. Returns how many
// wanted logits; -1: the watcher has stopped it.
static int run_rows(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows, float *logits)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    for (int r = 0; r < n_rows; r++) {
        struct sequence *seq = &cpu->sequences[rows[r].seq];
        s->position[r] = seq->length++;
        seq->pending--;
        embed(cpu, rows[r].token, s->position[r], 0,
              s->place[MR_RESIDUAL] + (size_t)r * (size_t)c->n_embd);
        mr_cpu_rotary_angles(s->sincos + (size_t)r * (size_t)c->rotary_dim, cpu->frequencies,
                             c->rotary_dim, s->position[r]);
    }
    for (int l = 0; l <= c->n_layer; l++) {
        struct pass p = {.layer = l, .n_rows = n_rows, .rows = rows};
        if (stopped(cpu, &p) || (l < c->n_layer && !run_items(cpu, &p)))
            return -1;
    }
    return write_logits(cpu, n_rows, rows, logits);
}

// The first rows of a step are taken back.
static int take_back(struct mr_cpu *cpu, const struct mr_cpu_row *rows, int n, struct mr_error *err)
{
    for (int r = 0; r < n; r++)
        cpu->sequences[rows[r].seq].length--;
    for (int i = 0; i < cpu->n_sequences; i++)
        cpu->sequences[i].pending = 0;
    return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
}

static int check_row(struct mr_cpu *cpu, int r, const struct mr_cpu_row *row, const float *logits,
                     struct mr_error *err)
{
    const struct mr_config *c = cpu->config;
    struct sequence *s = mr_cpu_sequence(cpu, row->seq);
    if (!s)
        return mr_fail(err, MR_ERR_USAGE, "row %d: there is no sequence %d", r, row->seq);
    if (row->token < 0 || row->token >= c->vocab_size)
        return mr_fail(err, MR_ERR_USAGE, "row %d: token %d is outside the vocabulary of %d", r,
                       row->token, c->vocab_size);
    if (s->length + s->pending >= c->n_positions)
        return mr_fail(err, MR_ERR_FIT,
                       "row %d: sequence %d would exceed the model's %d positions; shorten the "
                       "prompt or generate fewer tokens",
                       r, row->seq, c->n_positions);
    if (row->want_logits && !logits)
        return mr_fail(err, MR_ERR_USAGE, "row %d wants logits, but there is no place for them", r);
    s->pending++;
    return 0;
}

static int check_text(const struct mr_config *c, int i, const struct mr_cpu_text *text,
                      struct mr_error *err)
{
    if (text->count < 1 || text->count > c->n_positions)
        return mr_fail(err, MR_ERR_FIT, "text %d has %d tokens; the model reads 1 to %d", i,
                       text->count, c->n_positions);
    for (int k = 0; k < text->count; k++) {
        int type = text->types ? text->types[k] : 0;
        if (text->tokens[k] < 0 || text->tokens[k] >= c->vocab_size || type < 0 ||
            type >= c->n_types)
            return mr_fail(err, MR_ERR_USAGE,
                           "text %d: token %d of type %d is outside the vocabulary of %d and %d "
                           "types",
                           i, (int)text->tokens[k], type, c->vocab_size, c->n_types);
    }
    return 0;
}

// The texts' rows through all layers; false: the watcher has stopped it.
static bool encode_rows(struct mr_cpu *cpu, int count, const struct mr_cpu_text *texts,
                        const int *lengths, int n_rows)
{
    struct scratch *s = &cpu->scratch;
    struct pass p = {.layer = -1, .n_rows = n_rows, .lengths = lengths};
    size_t n_embd = (size_t)cpu->config->n_embd;
    float *x = s->place[MR_RESIDUAL];
    for (int i = 0; i < count; i++)
        for (int k = 0; k < texts[i].count; k++, x += n_embd)
            embed(cpu, texts[i].tokens[k], k, texts[i].types ? texts[i].types[k] : 0, x);
    for (p.item = 0; p.item < cpu->arch->front.count; p.item++) {
        run_norm(cpu, &cpu->arch->front.items[p.item], &cpu->front[p.item], &p);
        show(cpu, &p, MR_CPU_WRITTEN, MR_X, s->place[MR_X]);
    }
    bool more = true;
    for (p.layer = 0; more && p.layer < cpu->config->n_layer; p.layer++) {
        p.done = 0;
        more = !stopped(cpu, &p) && run_items(cpu, &p);
    }
    return more;
}

int mr_cpu_encode(struct mr_cpu *cpu, int count, const struct mr_cpu_text *texts, float *rows,
                  struct mr_error *err)
{
    enum { TEXTS = MAX_ROWS };
    int lengths[TEXTS], rc = 0;
    size_t n_embd = (size_t)cpu->config->n_embd;
    for (int i = 0; i < count && rc == 0; i++)
        rc = check_text(cpu->config, i, &texts[i], err);
    for (int first = 0, n; first < count && rc == 0; first += n) {
        int n_rows = 0, longest = 0;
        // As many texts as fit, and at least one.
        for (n = 0; n < TEXTS && first + n < count; n++) {
            int length = texts[first + n].count;
            if (n > 0 && n_rows + length > MAX_ROWS)
                break;
            lengths[n] = length;
            n_rows += length;
            longest = length > longest ? length : longest;
        }
        rc = mr_cpu_reserve(cpu, n_rows > MAX_ROWS ? n_rows : MAX_ROWS, longest, err);
        if (rc == 0 && !encode_rows(cpu, n, texts + first, lengths, n_rows))
            rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        if (rc == 0)
            memcpy(rows, cpu->scratch.place[MR_X], (size_t)n_rows * n_embd * sizeof *rows);
        rows += (size_t)n_rows * n_embd;
    }
    return rc;
}

int mr_cpu_step(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows, float *logits,
                struct mr_error *err)
{
    int rc = 0;
    for (int r = 0; r < n_rows && !rc; r++)
        rc = check_row(cpu, r, &rows[r], logits, err);
    for (int i = 0; i < cpu->n_sequences && !rc; i++)
        rc = mr_cpu_reserve_positions(cpu, &cpu->sequences[i], err);
    if (rc) {
        for (int i = 0; i < cpu->n_sequences; i++)
            cpu->sequences[i].pending = 0;
        return rc;
    }
    for (int first = 0; first < n_rows; first += MAX_ROWS) {
        int n = n_rows - first < MAX_ROWS ? n_rows - first : MAX_ROWS;
        int wanted = run_rows(cpu, n, rows + first, logits);
        if (wanted < 0)
            return take_back(cpu, rows, first + n, err);
        if (wanted > 0)
            logits += (size_t)wanted * (size_t)cpu->config->vocab_size;
    }
    return 0;
}
