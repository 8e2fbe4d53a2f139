// SPDX-License-Identifier: Apache-2.0
// An architecture that the library does not have (toy_model.h), from checkpoint to devices.
// docs/inside/adding-a-model.md shows its description, and is held to it here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "checkpoint/synthetic.h"
#include "cpu/cpu.h"
#include "engine/cpu_backend.h"
#include "model/tensors.h"
#include "pack/packed.h"
#include "pack/smooth.h"
#include "unit/files.h"
#include "unit/fixtures.h"
#include "unit/toy_model.h"

#define PAGE   "docs/inside/adding-a-model.md"
#define SOURCE "tests/unit/toy_model.h"

// Sizes that are no multiples of anything.
static const struct mr_config shape = {.arch = &toy,
                                       .vocab_size = 83,
                                       .n_positions = 40,
                                       .n_embd = 40,
                                       .n_layer = 2,
                                       .n_head = 2,
                                       .head_dim = 20,
                                       .n_inner = 72,
                                       .layer_norm_epsilon = 1e-5F,
                                       .bos_token_id = -1,
                                       .eos_token_id = -1};

enum { SEQS = 3, TOKENS = 37, D = 40, F = 72, V = 83, HEADS = 2, HEAD = 20, LAYERS = 2 };

// Multiplies element i of each tensor with `end` in its name by 2^(i % period - shift); by 0 where
// the period is 0.
static void unbalance(const char *end, int period, int shift)
{
    size_t size;
    uint64_t header;
    const char *path = files_path("model.safetensors"), *name;
    char *file = files_read(path, &size);
    json_t *entry;
    memcpy(&header, file, sizeof header);
    json_t *root = json_loadb(file + 8, header, 0, NULL);
    assert_non_null(root);
    json_object_foreach(root, name, entry)
    {
        json_t *offsets = json_object_get(entry, "data_offsets");
        size_t from = (size_t)json_integer_value(json_array_get(offsets, 0));
        size_t to = (size_t)json_integer_value(json_array_get(offsets, 1));
        for (size_t i = 0; strstr(name, end) && from + 2 * i < to; i++) {
            char *at = file + 8 + header + from + 2 * i;
            uint16_t bits;
            memcpy(&bits, at, sizeof bits); // bf16: the exponent begins at bit 7
            if (period == 0)
                bits = 0;
            else if (bits & 0x7F80)
                bits = (uint16_t)(bits + 128 * ((int)(i % (size_t)period) - shift));
            memcpy(at, &bits, sizeof bits);
        }
    }
    json_decref(root);
    (void)files_write("model.safetensors", file, size);
    free(file);
}

static int make_checkpoint(void **state)
{
    struct mr_error err = {0};
    if (files_setup(state) < 0)
        return -1;
    if (toy_register(&err) < 0)
        return -1;
    return mr_synthetic_write(files_dir, &shape, 5, &err);
}

static void pack(struct mr_packed *p, enum mr_format format)
{
    struct mr_error err = {0};
    const struct mr_pack_options opt = {.format = format, .smooth = true};
    check(mr_pack_directory(p, files_dir, &opt, &err), &err);
}

static int token(int seq, int i)
{
    return (int)((unsigned)(seq * 7919 + i * 31 + i * i * 5 + 11) % V);
}

// ---- the model once more, in double, from nothing but the file ---------------------------------

static double *tensor(const struct mr_checkpoint *ck, const char *name, int layer)
{
    char full[64];
    (void)snprintf(full, sizeof full, "toy.%.40s", name);
    const struct mr_tensor *t =
        layer < 0 ? mr_checkpoint_tensor(ck, full) : layer_tensor(ck, layer, name);
    if (!t)
        fail_msg("there is no tensor %s", name);
    float *f = allocate(t->count, sizeof *f);
    double *d = allocate(t->count, sizeof *d);
    assert_int_equal(mr_tensor_read_f32(t, 0, t->count, f), 0);
    for (size_t i = 0; i < t->count; i++)
        d[i] = (double)f[i];
    free(f);
    return d;
}

static void layer_norm(const struct mr_checkpoint *ck, const char *name, int layer,
                       const double x[D], double y[D])
{
    char part[64];
    (void)snprintf(part, sizeof part, "%.20s.weight", name);
    double *gain = tensor(ck, part, layer), mean = 0, square = 0;
    (void)snprintf(part, sizeof part, "%.20s.bias", name);
    double *bias = tensor(ck, part, layer);
    for (int i = 0; i < D; i++)
        mean += x[i] / D;
    for (int i = 0; i < D; i++)
        square += (x[i] - mean) * (x[i] - mean) / D;
    for (int i = 0; i < D; i++)
        y[i] = (x[i] - mean) / sqrt(square + 1e-5) * gain[i] + bias[i];
    free(gain);
    free(bias);
}

// y[n] = x[m] w[m][n] + b, added to y or in its place.
static void linear(const struct mr_checkpoint *ck, const char *name, int layer, const double *x,
                   int m, int n, double *y, bool add)
{
    char part[64];
    (void)snprintf(part, sizeof part, "%.20s.weight", name);
    double *w = tensor(ck, part, layer);
    (void)snprintf(part, sizeof part, "%.20s.bias", name);
    double *b = tensor(ck, part, layer);
    for (int j = 0; j < n; j++) {
        double sum = b[j];
        for (int i = 0; i < m; i++)
            sum += x[i] * w[i * n + j];
        y[j] = add ? y[j] + sum : sum;
    }
    free(w);
    free(b);
}

// One sequence; logits[TOKENS][V].
static void by_hand(const struct mr_checkpoint *ck, int seq, double *logits)
{
    static double x[TOKENS][D], y[D], q[D], k[LAYERS][TOKENS][D], v[LAYERS][TOKENS][D];
    double *wte = tensor(ck, "wte.weight", -1), *wpe = tensor(ck, "wpe.weight", -1);
    for (int t = 0; t < TOKENS; t++) {
        for (int i = 0; i < D; i++)
            x[t][i] = wte[token(seq, t) * D + i] + wpe[t * D + i];
        for (int l = 0; l < LAYERS; l++) {
            double mixed[D] = {0}, hidden[F];
            layer_norm(ck, "ln_1", l, x[t], y);
            linear(ck, "attn.q", l, y, D, D, q, false);
            linear(ck, "attn.k", l, y, D, D, k[l][t], false);
            linear(ck, "attn.v", l, y, D, D, v[l][t], false);
            for (int h = 0; h < HEADS; h++) {
                double p[TOKENS], sum = 0;
                for (int s = 0; s <= t; s++) {
                    double score = 0;
                    for (int i = h * HEAD; i < (h + 1) * HEAD; i++)
                        score += q[i] * k[l][s][i];
                    sum += p[s] = exp(score / sqrt(HEAD));
                }
                for (int s = 0; s <= t; s++)
                    for (int i = h * HEAD; i < (h + 1) * HEAD; i++)
                        mixed[i] += p[s] / sum * v[l][s][i];
            }
            linear(ck, "attn.proj", l, mixed, D, D, x[t], true);
            layer_norm(ck, "ln_2", l, x[t], y);
            linear(ck, "mlp.up", l, y, D, F, hidden, false);
            for (int i = 0; i < F; i++) {
                double g = hidden[i];
                hidden[i] = 0.5 * g * (1 + tanh(sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g)));
            }
            linear(ck, "mlp.down", l, hidden, F, D, x[t], true);
        }
        layer_norm(ck, "ln_f", -1, x[t], y);
        for (int j = 0; j < V; j++) {
            double sum = 0;
            for (int i = 0; i < D; i++)
                sum += y[i] * wte[j * D + i];
            logits[t * V + j] = sum;
        }
    }
    free(wte);
    free(wpe);
}

// ---- the reference -----------------------------------------------------------------------------

// Of all sequences, by the library's reference; of the checkpoint, or of a packed file.
static float *by_reference(const struct mr_packed *p)
{
    struct mr_error err = {0};
    struct mr_backend *b;
    float *logits = allocate((size_t)SEQS * TOKENS * V, sizeof *logits);
    check(mr_cpu_backend_open(&b, p, &err), &err);
    for (int s = 0; s < SEQS; s++) {
        struct mr_row rows[TOKENS];
        int seq;
        check(mr_backend_seq_new(b, &seq, &err), &err);
        for (int t = 0; t < TOKENS; t++)
            rows[t] = (struct mr_row){seq, token(s, t), true};
        // In two steps: the second goes on behind the first, at its positions.
        float *out = logits + (size_t)s * TOKENS * V;
        check(mr_backend_step(b, rows, 9, out, &err), &err);
        check(mr_backend_step(b, rows + 9, TOKENS - 9, out + (size_t)9 * V, &err), &err);
    }
    mr_backend_close(b);
    return logits;
}

static void reference_computes_the_model(void **state)
{
    (void)state;
    struct mr_packed p;
    pack(&p, MR_FORMAT_MXINT8);
    float *got = by_reference(&p);
    double *want = allocate((size_t)TOKENS * V, sizeof *want), worst = 0, size = 0;
    for (int s = 0; s < SEQS; s++) {
        by_hand(p.checkpoint, s, want);
        for (int i = 0; i < TOKENS * V; i++) {
            double d = fabs(want[i] - (double)got[s * TOKENS * V + i]);
            size += want[i] * want[i] / (SEQS * TOKENS * V);
            if (!(d <= worst)) // NaN must fail
                worst = d;
        }
    }
    print_message("# largest error %.2e of logits of size %.2f\n", worst, sqrt(size));
    assert_true(worst < 1e-4 && size > 0.1);
    free(want);
    free(got);
    mr_packed_close(&p);
}

// ---- on devices --------------------------------------------------------------------------------

// The toy in the place of a fixture; what is expected is what the reference says.
static void open_toy(struct fixture *f, enum mr_format format)
{
    *f = (struct fixture){.name = "toy", .n_seq = SEQS, .n_tok = TOKENS, .vocab = V};
    pack(&f->packed, format);
    f->ids = allocate((size_t)SEQS * TOKENS, sizeof *f->ids);
    for (int i = 0; i < SEQS * TOKENS; i++)
        f->ids[i] = token(i / TOKENS, i % TOKENS);
    f->expected = by_reference(&f->packed);
}

static double log_sum(const float *x)
{
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < V; i++)
        top = fmax(top, (double)x[i]);
    for (int i = 0; i < V; i++)
        sum += exp((double)x[i] - top);
    return top + log(sum);
}

static double mean_kl(const float *want, const float *got)
{
    double kl = 0;
    for (int r = 0; r < SEQS * TOKENS; r++) {
        const float *p = want + (size_t)r * V, *q = got + (size_t)r * V;
        double zp = log_sum(p), zq = log_sum(q);
        for (int i = 0; i < V; i++)
            kl += exp((double)p[i] - zp) * (((double)p[i] - zp) - ((double)q[i] - zq));
    }
    return kl / (SEQS * TOKENS);
}

// The largest bounds of tests/unit/engine/test_model.c.
static void check_kl(enum mr_format format, bool two_pass, double bound)
{
    struct fixture f;
    struct run_result r;
    const struct run_options o = {"model:sim", 0, two_pass, ALONE};
    open_toy(&f, format);
    assert_int_equal(run_fixture(&f, &o, &r), 0);
    double kl = mean_kl(f.expected, r.rows);
    print_message("# KL %.3e, bound %.3e\n", kl, bound);
    assert_true(kl <= bound);
    free(r.rows);
    close_fixture(&f);
}

static void model_is_close_to_the_reference(void **state)
{
    (void)state;
    check_kl(MR_FORMAT_MXINT8, false, 4.87e-03);
    check_kl(MR_FORMAT_MXINT8, true, 2.53e-03);
    check_kl(MR_FORMAT_MXFP4, false, 3.08e-01);
}

static void every_device_and_grouping_has_the_same_bits(void **state)
{
    (void)state;
    const struct run_options o[] = {{"model:sim", 0, false, ALONE},
                                    {"model:tiny", 0, false, INTERLEAVED},
                                    {"model:wide", 5, false, UNEVEN},
                                    {"sim:tiny", 0, false, ALONE},
                                    {"sim:tiny,stalls=30,seed=3", 3, false, INTERLEAVED},
                                    {"sim:sim,stalls=30,seed=8", 0, false, UNEVEN}};
    for (int fp4 = 0; fp4 < 2; fp4++) {
        struct fixture f;
        struct run_result want = {0};
        open_toy(&f, fp4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8);
        for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
            struct run_result r;
            assert_int_equal(run_fixture(&f, &o[i], &r), 0);
            if (i == 0)
                want = r;
            if (r.logits != want.logits || r.kv != want.kv)
                fail_msg("%s: %s differ", o[i].device, r.kv == want.kv ? "logits" : "keys");
            free(i > 0 ? r.rows : NULL);
        }
        free(want.rows);
        close_fixture(&f);
    }
}

// ---- packed and exported -----------------------------------------------------------------------

static void packed_file_knows_its_architecture(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed made, p;
    struct mr_pack_result result;
    const struct mr_pack_options opt = {.smooth = true};
    const char *path = files_path("toy.mill");
    check(mr_pack_file(files_dir, path, &opt, &result, &err), &err);
    check(mr_packed_open(&p, path, &opt, &err), &err);
    pack(&made, MR_FORMAT_MXINT8);
    assert_ptr_equal(p.config.arch, &toy);
    assert_int_equal(p.list.bytes, made.list.bytes);
    assert_memory_equal(p.stream, made.stream, p.list.bytes);
    assert_int_equal(p.positions.count, 40 * D);
    assert_memory_equal(p.positions.data, made.positions.data, p.positions.bytes);
    // The reference on it is that of the rounded weights, the tied head's among them.
    float *was = by_reference(&made), *now = by_reference(&p);
    double kl = mean_kl(was, now);
    print_message("# KL of rounding the weights %.3e\n", kl);
    assert_true(kl > 0 && kl < 4.87e-03);
    free(was);
    free(now);
    mr_packed_close(&made);
    mr_packed_close(&p);
}

static void exported_directory_is_the_model(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p, again;
    struct mr_pack_result result;
    const struct mr_pack_options opt = {.smooth = true}, plain = {0};
    static const char *const files[] = {"out/config.json", "out/model.safetensors"};
    check(mr_pack_file(files_dir, files_path("toy.mill"), &opt, &result, &err), &err);
    check(mr_packed_open(&p, files_path("toy.mill"), &opt, &err), &err);
    check(mr_export(&p, files_path("out"), NULL, &err), &err);
    check(mr_pack_directory(&again, files_path("out"), &plain, &err), &err);
    assert_memory_equal(again.stream, p.stream, p.list.bytes);
    assert_memory_equal(again.embedding.data, p.embedding.data, p.embedding.bytes);
    assert_memory_equal(again.positions.data, p.positions.data, p.positions.bytes);
    mr_packed_close(&again);
    mr_packed_close(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(remove(files_path(files[i])), 0);
}

// A bias belongs to the output of its matrix and has its factor, exactly.
static void smoothing_scales_biases_with_their_matrices(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_unpacked *u;
    struct mr_smooth s;
    int moved = 0;
    // Rows of these matrices are multiples of the periods: it is outputs that differ in size.
    unbalance("attn.v.", 5, 2);
    unbalance("attn.k.", 4, 2);
    pack(&p, MR_FORMAT_MXINT8);
    check(mr_unpack(&u, &p, &err), &err);
    check(mr_smooth_plan(&s, p.checkpoint, true, &err), &err);
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < toy.block.count; i++) {
            const struct mr_item *item = &block[i];
            const struct mr_tensor *was = mr_checkpoint_item(p.checkpoint, l, item, MR_BIAS),
                                   *is = mr_unpacked_item(u, l, item, MR_BIAS);
            struct mr_scaling scaling = mr_item_scaling(&toy, &toy.block, i);
            for (size_t r = 0; item->kind == MR_LINEAR && r < was->count; r++) {
                float a, b;
                assert_int_equal(mr_tensor_read_f32(was, r, 1, &a), 0);
                assert_int_equal(mr_tensor_read_f32(is, r, 1, &b), 0);
                int e = scaling.rows < 0
                            ? 0
                            : scaling.row_sign * mr_smooth_group(&s, l, scaling.rows)[r];
                assert_true(ldexpf(a, e) == b);
                moved += e != 0;
            }
        }
    print_message("# %d of %d biases have a factor\n", moved, LAYERS * (5 * D + F));
    assert_true(moved > 100);
    mr_smooth_free(&s);
    mr_unpacked_close(u);
    mr_packed_close(&p);
    check(mr_synthetic_write(files_dir, &shape, 5, &err), &err); // as before
}

// Outputs that are far from the others get what there is, and those that are all zero nothing.
static void smoothing_has_a_range(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *ck;
    struct mr_smooth s;
    for (int i = 0; i < 3; i++)
        unbalance("attn.k.", D, D / 2); // from 2^-60 to 2^57
    unbalance("ln_2.", 0, 0);
    check(mr_checkpoint_open(&ck, files_dir, MR_DECODER, NULL, &err), &err);
    check(mr_smooth_plan(&s, ck, true, &err), &err);
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < toy.block.count; i++) {
            const int8_t *group = mr_smooth_group(&s, l, i);
            int least = 0, most = 0;
            for (int k = 0; k < D; k++) {
                least = group[k] < least ? group[k] : least;
                most = group[k] > most ? group[k] : most;
            }
            if (block[i].to == MR_K)
                assert_true(least == -40 && most == 40);
            if (block[i].name && strcmp(block[i].name, "ln_2") == 0)
                assert_true(least == 0 && most == 0);
        }
    mr_smooth_free(&s);
    mr_checkpoint_close(ck);
    check(mr_synthetic_write(files_dir, &shape, 5, &err), &err); // as before
}

// ---- what is refused ---------------------------------------------------------------------------

// The packed file has one type for both. A missing or misshaped tensor is named by its whole name.
static void refuses_tables_of_different_types(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *words;
        int status;
    } faults[] = {
        {"\"BF16\"", "\"F16\" ", "toy.wte.weight is BF16 and toy.wpe.weight is F16",
         MR_ERR_UNSUPPORTED},
        {"[40,40]", "[20,80]", "tensor toy.wpe.weight has shape [20, 80]", MR_ERR_FORMAT},
        {"toy.wpe", "toy.wpx", "toy.wpx.weight is not part of a Toy model", MR_ERR_FORMAT},
    };
    size_t size;
    const char *path = files_path("model.safetensors");
    char *file = files_read(path, &size);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct mr_error err = {0};
        struct mr_packed p;
        const struct mr_pack_options opt = {0};
        char *copy = allocate(size + 1, 1);
        memcpy(copy, file, size);
        char *at = strstr(strstr(copy + 8, "toy.wpe"), faults[i].from);
        assert_non_null(at);
        memcpy(at, faults[i].to, strlen(faults[i].to));
        (void)files_write("model.safetensors", copy, size);
        assert_refused(mr_pack_directory(&p, files_dir, &opt, &err), faults[i].status, &err,
                       faults[i].words);
        free(copy);
    }
    (void)files_write("model.safetensors", file, size);
    free(file);
}

static void refuse(const struct mr_arch *arch, const char *words)
{
    struct mr_error err = {0};
    assert_int_equal(mr_arch_register(arch, &err), MR_ERR_USAGE);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void refuses_descriptions_that_contradict_themselves(void **state)
{
    (void)state;
    static const struct mr_item early[] = {
        {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X},
        {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION},
    };
    static const struct mr_item unread[] = {
        {MR_LINEAR, "up", "up", .from = MR_X, .to = MR_HIDDEN},
    };
    static const struct mr_item unwritten[] = {
        {MR_LINEAR, "down", "down", .from = MR_HIDDEN, .to = MR_RESIDUAL},
    };
    static const struct mr_item rotated[] = {
        {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X},
        {MR_LINEAR, "v", "v", .from = MR_X, .to = MR_V, .epilogue = MR_ROTARY},
    };
    struct mr_arch a = toy;
    refuse(&toy, "known already");
    a.type = "other";
    a.block = (struct mr_list)MR_LIST(early);
    refuse(&a, "item 1 (ATTEND) of the block stands before Q, K and V");
    a.block = (struct mr_list)MR_LIST(unread);
    refuse(&a, "reads what nothing before it wrote");
    a.block = (struct mr_list)MR_LIST(rotated);
    refuse(&a, "rotates what is neither Q nor K");
    a.block = (struct mr_list){block, 4};
    refuse(&a, "0 attentions");
    a.block = toy.block;
    a.function = MR_FUNCTION_NONE;
    refuse(&a, "the architecture names none");
    a.function = toy.function;
    a.tail.count = 1;
    refuse(&a, "no result");
    a.encoder = true;
    refuse(&a, "its tail has a result");
    a.tail.count = 0;
    refuse(&a, "an encoder, and nothing else, has items in front");
    a.front = (struct mr_list)MR_LIST(unread);
    refuse(&a, "item 0 in front is no norm");
    a.front = (struct mr_list){block, 1};
    a.block = (struct mr_list)MR_LIST(unwritten); // X is there from the norm before, nothing else
    refuse(&a, "item 0 (down) of the block reads what nothing before it wrote");
    a.block = toy.block;
    a.front = (struct mr_list)MR_LIST(unread);
    a.encoder = false;
    a.tail = toy.tail;
    refuse(&a, "an encoder, and nothing else, has items in front");
    a.front = toy.front;
    a.tables.items++;
    a.tables.count = 1;
    refuse(&a, "table 0");
    a.tables = toy.tables;
    a.block_prefix = "h.";
    refuse(&a, "must begin with \"toy.\"");
    assert_null(mr_arch_find("other"));
}

// Nothing is asked for by naming what is there, though learned positions cannot be more.
static void positions_may_be_named(void **state)
{
    (void)state;
    struct mr_config c = shape;
    struct mr_error err = {0};
    check(mr_config_set_positions(&c, c.n_positions, &err), &err);
    check(mr_config_set_positions(&c, 0, &err), &err);
    assert_refused(mr_config_set_positions(&c, 41, &err), MR_ERR_USAGE, &err,
                   "n_positions 41: Toy has learned positions (toy.wpe), so the model has 40");
    assert_int_equal(c.n_positions, 40);
    assert_false(mr_config_to_train(&c).learns_labels); // nor are there labels
    c.arch = &mr_arch_bert;                             // whose classifier may be missing
    assert_false(mr_config_to_train(&c).learns_labels);
    c.n_labels = 2;
    assert_true(mr_config_to_train(&c).learns_labels);
}

#define LONG_NAME    "a.name.of.one.and.forty.characters.and.no."
#define LINEAR(a, b) MR_LINEAR, "m", "m", .from = (a), .to = (b)

enum { BLOCK = sizeof block / sizeof *block };

// The toy with a block of its own, which begins as the toy's.
static struct mr_arch with_block(struct mr_item items[BLOCK])
{
    struct mr_arch a = toy;
    a.type = "other";
    a.block = (struct mr_list){items, BLOCK};
    memcpy(items, block, sizeof block);
    return a;
}

// One item of the block in the place of another.
static void refuses_an_item_that_does_not_fit(void **state)
{
    (void)state;
    static const char parts[] = "is no part of a tensor whose parts stand one behind the other",
                      norm[] = "must normalise the residual into X",
                      attend[] = "must be in the block and go from Q to ATTENTION",
                      early[] = "stands before Q, K and V are there";
    static const struct {
        int at;
        struct mr_item item;
        const char *words;
    } rows[] = {
        {0,
         {MR_NORM, "ln", NULL, .from = MR_RESIDUAL, .to = MR_X},
         "item 0 (?) of the block needs a name"},
        {0, {MR_NORM, NULL, "ln", .from = MR_RESIDUAL, .to = MR_X}, "needs a name and a label"},
        {0, {MR_NORM, LONG_NAME, "ln", .from = MR_RESIDUAL, .to = MR_X}, "has too long a name"},
        {0, {MR_NORM, "ln", "ln", .from = MR_X, .to = MR_X}, norm},
        {0, {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_Q}, norm},
        {0, {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X, .transposed = true}, norm},
        {0, {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X, .back = true}, norm},
        {0,
         {MR_EMBED, "e", "e", .from = MR_RESIDUAL, .to = MR_X},
         "is of a kind that belongs elsewhere"},
        {1, {LINEAR(MR_X, MR_K)}, "item 2 (k) of the block writes what an item before it wrote"},
        {2, {LINEAR(MR_X, MR_HIDDEN)}, early},
        {3, {LINEAR(MR_X, MR_HIDDEN)}, early},
        {4, {MR_ATTEND, NULL, "a", .from = MR_K, .to = MR_ATTENTION}, attend},
        {4, {MR_ATTEND, NULL, "a", .from = MR_Q, .to = MR_X}, attend},
        {5, {LINEAR(MR_RESIDUAL, MR_RESIDUAL)}, "must read X, ATTENTION or HIDDEN"},
        {5, {LINEAR(MR_ATTENTION, MR_X)}, "cannot write there"},
        {5, {LINEAR(MR_ATTENTION, MR_ATTENTION)}, "cannot write there"},
        {5, {LINEAR(MR_ATTENTION, MR_RESULT)}, "writes the result, which only the last item"},
        {8, {LINEAR(MR_HIDDEN, MR_RESIDUAL), .epilogue = MR_FUNCTION}, "does not write HIDDEN"},
        {0, {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X, .share = 1}, parts},
        {0, {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X, .shares = 1}, parts},
        {0, {LINEAR(MR_X, MR_Q), .shares = 2, .share = 1}, parts},
        {1, {LINEAR(MR_X, MR_Q), .shares = 2, .share = 1}, parts},
        {1, {LINEAR(MR_X, MR_Q), .shares = 1, .share = -1}, parts},
        {1, {LINEAR(MR_X, MR_Q), .shares = 1, .share = 1}, parts},
        {5, {LINEAR(MR_ATTENTION, MR_RESULT), .shares = 1}, parts},
        {8, {LINEAR(MR_HIDDEN, MR_RESIDUAL), .shares = 2}, parts},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_item items[BLOCK];
        const struct mr_arch a = with_block(items);
        items[rows[i].at] = rows[i].item;
        refuse(&a, rows[i].words);
    }
}

// The second of two parts differs from the first in what they must share.
static void refuses_parts_that_do_not_match(void **state)
{
    (void)state;
#define PART(name) MR_LINEAR, name, "k", .from = MR_X
    static const struct mr_item seconds[] = {
        {MR_NORM, "qk", "k", .from = MR_RESIDUAL, .to = MR_X, CONV1D, .shares = 2, .share = 1},
        {PART(NULL), .to = MR_K, CONV1D, .shares = 2, .share = 1},
        {PART("kq"), .to = MR_K, CONV1D, .shares = 2, .share = 1},
        {PART("qk"), .to = MR_K, CONV1D, .shares = 3, .share = 1},
        {PART("qk"), .to = MR_K, CONV1D, .shares = 2, .share = 0},
        {PART("qk"), .to = MR_K, .transposed = true, .shares = 2, .share = 1},
        {PART("qk"), .to = MR_K, .bias = true, .shares = 2, .share = 1},
        {PART("qk"), .to = MR_HIDDEN, CONV1D, .shares = 2, .share = 1},
        {MR_LINEAR, "qk", "k", .from = MR_HIDDEN, .to = MR_K, CONV1D, .shares = 2, .share = 1},
    };
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct mr_item items[BLOCK];
        const struct mr_arch a = with_block(items);
        items[1].name = "qk";
        items[1].shares = 2;
        items[2] = seconds[i];
        refuse(&a, "item 1 (q) of the block is no part of a tensor");
    }
}

static void refuses_tables_and_ends_that_do_not_fit(void **state)
{
    (void)state;
    static const struct mr_item wrong_tables[][2] = {
        {{MR_NORM, "t", .to = MR_RESIDUAL}},
        {{MR_EMBED, NULL, .to = MR_RESIDUAL}},
        {{MR_EMBED, LONG_NAME, .to = MR_RESIDUAL}},
        {{MR_EMBED, "t", .to = MR_X}},
        {{MR_EMBED, "t", .to = MR_RESIDUAL, .by = MR_BY_POSITION}},
    };
    static const struct mr_item three[] = {
        {MR_EMBED, "t", .to = MR_RESIDUAL, .by = MR_BY_TOKEN},
        {MR_EMBED, "p", .to = MR_RESIDUAL, .by = MR_BY_POSITION},
        {MR_EMBED, "y", .to = MR_RESIDUAL, .by = MR_BY_TYPE},
    };
    static const struct {
        struct mr_item item;
        const char *words;
    } tails[] = {
        {{MR_ATTEND, NULL, "a", .from = MR_Q, .to = MR_ATTENTION}, "must be in the block"},
        {{LINEAR(MR_X, MR_RESULT)}, "writes the result, which only the last item"},
        {{LINEAR(MR_X, MR_V)}, "belongs into the block"},
        {{LINEAR(MR_X, MR_HIDDEN)}, "belongs into the block"},
        {{LINEAR(MR_X, MR_RESIDUAL)}, "belongs into the block"},
    };
    struct mr_arch a = toy;
    a.type = "other";
    for (size_t i = 0; i < sizeof wrong_tables / sizeof *wrong_tables; i++) {
        a.tables = (struct mr_list){wrong_tables[i], 1};
        refuse(&a, "table 0; expected the one by token");
    }
    a.tables = (struct mr_list)MR_LIST(three); // by type: only an encoder has it
    refuse(&a, "table 2; expected the one by token");
    a.tables.count = 0;
    refuse(&a, "has no table of tokens");
    a.tables = toy.tables;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        struct mr_item items[3] = {tail[0], tails[i].item, tail[1]};
        a.tail = (struct mr_list)MR_LIST(items);
        refuse(&a, tails[i].words);
    }
    a.tail.count = 0;
    refuse(&a, "its tail has no result");
    a.tail = toy.tail;
    a.block_prefix = "toy." LONG_NAME;
    refuse(&a, "names of a block must begin");
}

// What the tests above refuse is all that is wrong with it: parts, rotation, an encoder's norms.
static void takes_what_fits_until_there_is_no_room(void **state)
{
    (void)state;
    static const struct mr_item rotated[] = {
        {MR_NORM, "ln", "ln", .from = MR_RESIDUAL, .to = MR_X},
        {MR_LINEAR, "qkv", "q", .from = MR_X, .to = MR_Q, .epilogue = MR_ROTARY, .shares = 3},
        {MR_LINEAR, "qkv", "k", .from = MR_X, .to = MR_K, .epilogue = MR_ROTARY, .shares = 3,
         .share = 1},
        {MR_LINEAR, "qkv", "v", .from = MR_X, .to = MR_V, .shares = 3, .share = 2},
        {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION},
    };
    static const char types[][2] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    static struct mr_arch more[sizeof types / sizeof *types];
    struct mr_arch last = toy;
    struct mr_error err = {0};
    // A bias of K adds the same to all of a row's scores, unless it is turned with its position.
    assert_true(mr_item_gradient_is_zero(&block[2], MR_BIAS));
    assert_false(mr_item_gradient_is_zero(&rotated[2], MR_BIAS));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        more[i] = i == 0 ? mr_arch_bert : toy;
        if (i == 1)
            more[i].block = (struct mr_list)MR_LIST(rotated);
        more[i].type = types[i];
        check(mr_arch_register(&more[i], &err), &err);
        assert_ptr_equal(mr_arch_find(types[i]), &more[i]);
    }
    last.type = "last";
    refuse(&last, "no room for more than 16 architectures");
    assert_null(mr_arch_at(16));
}

// ---- the page ----------------------------------------------------------------------------------

// Its code is this file's, line by line.
static int code_of_page(const char *page, const char *source)
{
    int blocks = 0;
    for (const char *at = page; (at = strstr(at, "\n```c\n")); blocks++) {
        char code[4096];
        at += strlen("\n```c\n");
        const char *end = strstr(at, "```\n");
        assert_non_null(end);
        (void)snprintf(code, sizeof code, "%.*s", (int)(end - at), at);
        if (!strstr(source, code))
            fail_msg(PAGE ": is not in " SOURCE ":\n%s", code);
        at = end;
    }
    return blocks;
}

// What it names in backquotes is there: files, and of C what host/model or the RTL's fields have.
static int names_of_page(char *page, const char *headers)
{
    int names = 0;
    for (char *at = page; (at = strchr(at, '`')); at++) {
        char name[200];
        size_t n = strcspn(++at, "`\n");
        (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n;
        if (strncmp(name, "host/", 5) == 0 || strncmp(name, "tests/", 6) == 0) {
            struct stat st;
            if (stat(name, &st) != 0)
                fail_msg(PAGE ": there is no %s", name);
        } else if (strncmp(name, "mr_", 3) == 0 || strncmp(name, "MR_", 3) == 0 ||
                   strncmp(name, "struct mr_", 10) == 0) {
            name[strcspn(name, "(")] = 0;
            if (!strstr(headers, name))
                fail_msg(PAGE ": host/model has no %s", name);
        } else {
            continue;
        }
        names++;
    }
    return names;
}

static void page_shows_this_description(void **state)
{
    (void)state;
    static const char *const files[] = {"host/model/model.h", "host/model/arch.h"};
    size_t size;
    char *page = files_read(PAGE, &size), *source = files_read(SOURCE, &size), headers[1 << 16];
    int lines = 0, n = 0;
    for (const char *p = page; (p = strchr(p, '\n')); p++)
        lines++;
    assert_true(lines <= 80);
    assert_int_equal(code_of_page(page, source), 1);
    for (int i = 0; i < 2; i++) {
        char *text = files_read(files[i], &size);
        n += snprintf(headers + n, sizeof headers - (size_t)n, "%s", text);
        free(text);
    }
    // Before the fences, whose backquotes would pair with the text's.
    char *fence = strstr(page, "```c"), *behind = strstr(fence + 4, "```");
    *fence = 0;
    n = names_of_page(page, headers) + names_of_page(behind + 3, headers);
    assert_true(n >= 15);
    free(page);
    free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_computes_the_model),
        cmocka_unit_test(model_is_close_to_the_reference),
        cmocka_unit_test(every_device_and_grouping_has_the_same_bits),
        cmocka_unit_test(packed_file_knows_its_architecture),
        cmocka_unit_test(exported_directory_is_the_model),
        cmocka_unit_test(smoothing_scales_biases_with_their_matrices),
        cmocka_unit_test(smoothing_has_a_range),
        cmocka_unit_test(refuses_tables_of_different_types),
        cmocka_unit_test(refuses_descriptions_that_contradict_themselves),
        cmocka_unit_test(positions_may_be_named),
        cmocka_unit_test(refuses_an_item_that_does_not_fit),
        cmocka_unit_test(refuses_parts_that_do_not_match),
        cmocka_unit_test(refuses_tables_and_ends_that_do_not_fit),
        cmocka_unit_test(takes_what_fits_until_there_is_no_room),
        cmocka_unit_test(page_shows_this_description),
    };
    return cmocka_run_group_tests_name("toy model", tests, make_checkpoint, files_teardown);
}
