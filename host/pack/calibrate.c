// SPDX-License-Identifier: Apache-2.0
#include "pack/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "common/file.h"
#include "cpu/cpu.h"
#include "text/look.h"

enum {
    SELF_TOKENS = 8192, // at most; and no more than 32 for each input of the widest matrix
    SELF_LENGTH = 512,  // of a sequence, at most
    SELF_STREAMS = 32,  // sequences sampled at the same time, at most
    CHUNK = 256,        // rows a step of the reference
};

#define MEMORY ((size_t)4 << 30) // for moments; half as much for keys and values

struct mr_calibration {
    const struct mr_config *config;
    struct mr_cpu *cpu;
    int32_t *ids;
    size_t count;
    size_t window; // tokens of a sequence
    int *lengths;  // of an encoder's texts, one behind the other; else NULL
    int n_texts;
    int first, layers;          // the layers whose moments are here; n_layer is the final one
    int room;                   // most layers at a time
    int inputs;                 // of a block, or of the tail if that has more: see input_of()
    struct mr_moments *moments; // [room][inputs]
    float *logits;              // or an encoder's rows
    int (*stop)(void *arg);
    void *arg;
};

static int stopped(const struct mr_calibration *cal, struct mr_error *err)
{
    return cal->stop && cal->stop(cal->arg) ? mr_fail(err, MR_ERR_INTERRUPTED, "interrupted") : 0;
}

// ---- text ----

// SplitMix64 (Steele, Lea, Flood 2014), 53 bits in [0, 1).
static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

// A token with its probability at temperature 1; -1 if no logit is finite.
static int draw(const float *logits, int n, uint64_t *state)
{
    double top = -INFINITY, sum = 0;
    int last = -1;
    for (int i = 0; i < n; i++)
        if (isfinite(logits[i]) && (double)logits[i] > top)
            top = (double)logits[i];
    for (int i = 0; i < n; i++)
        sum += isfinite(logits[i]) ? exp((double)logits[i] - top) : 0;
    double left = uniform(state) * sum;
    for (int i = 0; i < n; i++)
        if (isfinite(logits[i])) {
            left -= exp((double)logits[i] - top);
            last = i;
            if (left < 0)
                break;
        }
    return last;
}

// Samples n sequences of `window` tokens side by side, from `start` on.
static int sample_streams(struct mr_calibration *cal, int n, int32_t start, int32_t *ids,
                          uint64_t *state, struct mr_error *err)
{
    int vocab = cal->config->vocab_size, made = 0, rc = 0;
    struct mr_cpu_row rows[SELF_STREAMS];
    while (rc == 0 && made < n) {
        rc = mr_cpu_seq_new(cal->cpu, &rows[made].seq, err);
        rows[made].want_logits = true;
        ids[(size_t)made * cal->window] = start;
        made += rc == 0;
    }
    for (size_t t = 0; rc == 0 && t + 1 < cal->window; t++) {
        for (int s = 0; s < n; s++)
            rows[s].token = ids[(size_t)s * cal->window + t];
        rc = mr_cpu_step(cal->cpu, n, rows, cal->logits, err);
        for (int s = 0; rc == 0 && s < n; s++) {
            int id = draw(cal->logits + (size_t)s * (size_t)vocab, vocab, state);
            if (id < 0)
                rc = mr_fail(err, MR_ERR_FORMAT,
                             "calibration: the reference has no finite logit; the checkpoint is "
                             "damaged or its training diverged");
            ids[(size_t)s * cal->window + t + 1] = id;
        }
        if (rc == 0)
            rc = stopped(cal, err);
    }
    while (made > 0)
        mr_cpu_seq_free(cal->cpu, rows[--made].seq);
    return rc;
}

static int sample_text(struct mr_calibration *cal, struct mr_error *err)
{
    const struct mr_config *c = cal->config;
    int start = c->bos_token_id >= 0 && c->bos_token_id < c->vocab_size   ? c->bos_token_id
                : c->eos_token_id >= 0 && c->eos_token_id < c->vocab_size ? c->eos_token_id
                                                                          : 0;
    cal->window = (size_t)(c->n_positions < SELF_LENGTH ? c->n_positions : SELF_LENGTH);
    size_t tokens = 32 * (size_t)(c->n_embd > c->n_inner ? c->n_embd : c->n_inner);
    tokens = tokens < SELF_TOKENS ? tokens : SELF_TOKENS;
    size_t wanted = (tokens + cal->window - 1) / cal->window;
    size_t kv = 2 * cal->window * (size_t)c->n_embd * (size_t)c->n_layer * sizeof(float);
    size_t streams = MEMORY / 2 / kv;
    streams = streams < 1 ? 1 : streams > SELF_STREAMS ? SELF_STREAMS : streams;
    uint64_t state = 1;
    cal->ids = malloc(wanted * cal->window * sizeof *cal->ids);
    if (!cal->ids)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for calibration text");
    int rc = 0;
    for (size_t done = 0; rc == 0 && done < wanted; done += streams)
        rc = sample_streams(cal, (int)(wanted - done < streams ? wanted - done : streams), start,
                            cal->ids + done * cal->window, &state, err);
    cal->count = wanted * cal->window;
    return rc;
}

static int read_text(struct mr_calibration *cal, struct mr_tokenizer *tokenizer, const char *path,
                     struct mr_error *err)
{
    struct mr_file file;
    struct mr_tokens tokens = {0};
    if (!tokenizer)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: a calibration text needs the checkpoint's tokenizer; use \"self\"",
                       path);
    int rc = mr_file_map(&file, path, err);
    if (rc < 0)
        return rc;
    rc = mr_text_look_plain(path, file.data, file.size, err);
    if (rc == 0)
        rc = mr_tokenizer_encode(tokenizer, file.data, file.size, MR_SPECIAL_PARSE, &tokens, err);
    mr_file_unmap(&file);
    if (rc == 0 && tokens.count == 0)
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: the calibration text is empty", path);
    for (size_t i = 0; rc == 0 && i < tokens.count; i++)
        if (tokens.ids[i] >= cal->config->vocab_size)
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: token %d is outside the vocabulary of %d", path,
                         tokens.ids[i], cal->config->vocab_size);
    if (rc < 0) {
        mr_tokens_free(&tokens);
        return rc;
    }
    cal->ids = tokens.ids;
    cal->window = (size_t)cal->config->n_positions;
    cal->count = tokens.count < MR_CALIBRATE_MOST ? tokens.count : MR_CALIBRATE_MOST;
    return 0;
}

// A line as the encoder reads it: [CLS] tokens [SEP].
static int add_line(struct mr_calibration *cal, struct mr_tokenizer *tokenizer, const char *line,
                    size_t size, struct mr_error *err)
{
    const struct mr_frame *frame = mr_tokenizer_frame(tokenizer);
    size_t most = (size_t)cal->config->n_positions;
    struct mr_tokens tokens = {0};
    int rc = mr_tokenizer_encode(tokenizer, line, size, MR_SPECIAL_PARSE, &tokens, err);
    size_t n = tokens.count < most - 2 ? tokens.count : most - 2;
    if (rc == 0 && cal->count + n + 2 <= MR_CALIBRATE_MOST) {
        int32_t *to = cal->ids + cal->count;
        to[0] = frame->cls;
        if (n > 0)
            memcpy(to + 1, tokens.ids, n * sizeof *to);
        to[n + 1] = frame->sep;
        cal->count += n + 2;
        cal->lengths[cal->n_texts++] = (int)n + 2;
    }
    mr_tokens_free(&tokens);
    return rc;
}

static int read_lines(struct mr_calibration *cal, struct mr_tokenizer *tokenizer, const char *path,
                      struct mr_error *err)
{
    struct mr_file file;
    if (strcmp(path, "self") == 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "an encoder writes no text to calibrate with; name a file of texts");
    if (!tokenizer || !mr_tokenizer_frame(tokenizer) || cal->config->n_positions < 3)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: an encoder's calibration needs its WordPiece tokenizer and three "
                       "positions",
                       path);
    cal->ids = malloc(MR_CALIBRATE_MOST * sizeof *cal->ids);
    cal->lengths = malloc(MR_CALIBRATE_MOST * sizeof *cal->lengths);
    if (!cal->ids || !cal->lengths)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for calibration text");
    int rc = mr_file_map(&file, path, err);
    if (rc < 0)
        return rc;
    rc = mr_text_look_plain(path, file.data, file.size, err);
    const char *at = (const char *)file.data;
    for (size_t left = file.size; rc == 0 && left > 0;) {
        const char *end = memchr(at, '\n', left);
        size_t size = end ? (size_t)(end - at) : left;
        if (size > 0)
            rc = add_line(cal, tokenizer, at, size, err);
        at += size + (end != NULL);
        left -= size + (end != NULL);
    }
    mr_file_unmap(&file);
    if (rc == 0 && cal->n_texts == 0)
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: the calibration text is empty", path);
    for (size_t i = 0; rc == 0 && i < cal->count; i++)
        if (cal->ids[i] >= cal->config->vocab_size)
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: token %d is outside the vocabulary of %d", path,
                         cal->ids[i], cal->config->vocab_size);
    return rc;
}

// ---- moments ----

static bool is_input(const struct mr_item *item)
{
    return item->to == MR_X || item->to == MR_ATTENTION || item->to == MR_HIDDEN;
}

// The inputs of matrices that a list's items write, before item i.
static int input_of(const struct mr_list *list, int i)
{
    int n = 0;
    while (i-- > 0)
        n += is_input(&list->items[i]);
    return n;
}

// What the last norm of an encoder's block has written, or the norm in front of the first, is an
// input of the block behind it, and is kept as that one's last.
static bool belongs_to_next(const struct mr_config *c, int layer, int item)
{
    return mr_arch_of(c)->encoder && (layer < 0 || item == mr_items_of(c, layer)->count - 1);
}

static struct mr_moments *slot(struct mr_calibration *cal, int layer, int writer)
{
    int input = writer < 0 ? cal->inputs - 1 : input_of(mr_items_of(cal->config, layer), writer);
    return &cal->moments[(layer - cal->first) * cal->inputs + input];
}

static void add(void *arg, enum mr_cpu_seen what, int layer, int item, int rows, int width,
                const float *data)
{
    struct mr_calibration *cal = arg;
    if (what != MR_CPU_WRITTEN || !is_input(&mr_items_of(cal->config, layer)->items[item]))
        return;
    if (belongs_to_next(cal->config, layer, item)) {
        layer++;
        item = -1;
    }
    if (layer < cal->first || layer >= cal->first + cal->layers)
        return;
    struct mr_moments *m = slot(cal, layer, item);
    m->rows += rows;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < width; i++)
            m->sum[i] += data[(size_t)r * (size_t)width + (size_t)i];
    mr_blas.ssyrk(CblasRowMajor, CblasLower, CblasTrans, width, rows, 1.0F, data, width, 1.0F,
                  m->outer, m->n);
}

// An encoder's texts, as many at a time as the reference takes together.
static int collect_texts(struct mr_calibration *cal, struct mr_error *err)
{
    struct mr_cpu_text texts[CHUNK];
    const int32_t *ids = cal->ids;
    int rc = 0, room = cal->config->n_positions > CHUNK ? cal->config->n_positions : CHUNK;
    for (int i = 0, n; rc == 0 && i < cal->n_texts; i += n) {
        int rows = 0;
        for (n = 0; n < CHUNK && i + n < cal->n_texts && rows + cal->lengths[i + n] <= room; n++) {
            texts[n] = (struct mr_cpu_text){ids, NULL, cal->lengths[i + n]};
            ids += cal->lengths[i + n];
            rows += cal->lengths[i + n];
        }
        rc = mr_cpu_encode(cal->cpu, n, texts, cal->logits, err);
        if (rc == 0)
            rc = stopped(cal, err);
    }
    return rc;
}

// Runs the tokens window by window, and collects from layer `first` on.
static int collect(struct mr_calibration *cal, int first, struct mr_error *err)
{
    const struct mr_config *c = cal->config;
    cal->first = first;
    cal->layers = c->n_layer + 1 - first < cal->room ? c->n_layer + 1 - first : cal->room;
    bool final = first + cal->layers > c->n_layer;
    for (int i = 0; i < cal->room * cal->inputs; i++) {
        struct mr_moments *m = &cal->moments[i];
        m->rows = 0;
        memset(m->sum, 0, (size_t)m->n * sizeof *m->sum);
        memset(m->outer, 0, (size_t)m->n * (size_t)m->n * sizeof *m->outer);
    }
    struct mr_cpu_row rows[CHUNK];
    int rc = 0;
    mr_cpu_observe(cal->cpu, add, cal);
    if (cal->lengths)
        rc = collect_texts(cal, err);
    for (size_t at = 0; rc == 0 && !cal->lengths && at < cal->count; at += cal->window) {
        size_t n = cal->count - at < cal->window ? cal->count - at : cal->window;
        int seq;
        rc = mr_cpu_seq_new(cal->cpu, &seq, err);
        if (rc < 0)
            break;
        for (size_t k = 0; rc == 0 && k < n; k += CHUNK) {
            int some = n - k < CHUNK ? (int)(n - k) : CHUNK;
            for (int i = 0; i < some; i++)
                rows[i] = (struct mr_cpu_row){seq, cal->ids[at + k + (size_t)i], final};
            rc = mr_cpu_step(cal->cpu, some, rows, cal->logits, err);
            if (rc == 0)
                rc = stopped(cal, err);
        }
        mr_cpu_seq_free(cal->cpu, seq);
    }
    mr_cpu_observe(cal->cpu, NULL, NULL);
    if (rc < 0)
        cal->layers = 0;
    return rc;
}

int mr_calibration_moments(struct mr_calibration *cal, const struct mr_stream_item *item,
                           const struct mr_moments **m, struct mr_error *err)
{
    if (item->layer < cal->first || item->layer >= cal->first + cal->layers) {
        int rc = collect(cal, item->layer, err);
        if (rc < 0)
            return rc;
    }
    const struct mr_list *list = mr_items_of(cal->config, item->layer);
    *m = slot(cal, item->layer, mr_item_writer(list, item->index, item->item->from));
    return 0;
}

// Of input k: that of the block, or of the tail if only the tail has so many or a wider one.
static int width_of(const struct mr_config *c, int k)
{
    int width = 0;
    for (int layer = c->n_layer - 1; layer <= c->n_layer; layer++) {
        const struct mr_list *list = mr_items_of(c, layer);
        for (int i = 0; i < list->count; i++) {
            int n = mr_axis_length(c, mr_place_axis(list->items[i].to));
            if (is_input(&list->items[i]) && input_of(list, i) == k && n > width)
                width = n;
        }
    }
    return width;
}

static int allocate(struct mr_calibration *cal, struct mr_error *err)
{
    const struct mr_config *c = cal->config;
    const struct mr_list *block = &mr_arch_of(c)->block, *tail = &mr_arch_of(c)->tail;
    int in_block = input_of(block, block->count), in_tail = input_of(tail, tail->count);
    cal->inputs = in_block > in_tail ? in_block : in_tail;
    size_t layer = 0;
    for (int k = 0; k < cal->inputs; k++) {
        size_t n = (size_t)width_of(c, k);
        layer += n * (n + 1) * sizeof(float);
    }
    size_t room = MEMORY / layer;
    cal->room = room<1 ? 1 : room>(size_t) c->n_layer + 1 ? c->n_layer + 1 : (int)room;
    cal->moments = calloc((size_t)cal->room * (size_t)cal->inputs, sizeof *cal->moments);
    size_t rows = (size_t)(c->n_positions > CHUNK ? c->n_positions : CHUNK) * (size_t)c->n_embd;
    bool encoder = mr_arch_of(c)->encoder;
    cal->logits =
        malloc((encoder ? rows : (size_t)CHUNK * (size_t)c->vocab_size) * sizeof *cal->logits);
    bool all = cal->moments && cal->logits;
    for (int k = 0; all && k < cal->room * cal->inputs; k++) {
        struct mr_moments *m = &cal->moments[k];
        m->n = width_of(c, k % cal->inputs);
        m->sum = malloc((size_t)m->n * sizeof *m->sum);
        m->outer = malloc((size_t)m->n * (size_t)m->n * sizeof *m->outer);
        all = m->sum && m->outer;
    }
    return all ? 0
               : mr_fail(err, MR_ERR_MEMORY, "no memory for calibration: %zu bytes a layer", layer);
}

int mr_calibration_open(struct mr_calibration **out, const struct mr_checkpoint *ck,
                        struct mr_tokenizer *tokenizer, const char *text, int (*stop)(void *arg),
                        void *arg, struct mr_error *err)
{
    *out = NULL;
    struct mr_calibration *cal = calloc(1, sizeof *cal);
    if (!cal)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for calibration");
    cal->config = mr_checkpoint_config(ck);
    cal->stop = stop;
    cal->arg = arg;
    int rc = mr_cpu_open(&cal->cpu, ck, err);
    if (rc == 0)
        rc = allocate(cal, err);
    if (rc == 0)
        rc = mr_arch_of(cal->config)->encoder ? read_lines(cal, tokenizer, text, err)
             : strcmp(text, "self") == 0      ? sample_text(cal, err)
                                              : read_text(cal, tokenizer, text, err);
    if (rc < 0) {
        mr_calibration_close(cal);
        return rc;
    }
    *out = cal;
    return 0;
}

const struct mr_config *mr_calibration_config(const struct mr_calibration *cal)
{
    return cal->config;
}

void mr_calibration_close(struct mr_calibration *cal)
{
    if (!cal)
        return;
    for (int i = 0; cal->moments && i < cal->room * cal->inputs; i++) {
        free(cal->moments[i].sum);
        free(cal->moments[i].outer);
    }
    free(cal->moments);
    free(cal->logits);
    free(cal->ids);
    free(cal->lengths);
    mr_cpu_close(cal->cpu);
    free(cal);
}
