// SPDX-License-Identifier: Apache-2.0
// Packing: smoothing changes nothing in fp32, and the packed file survives damage.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>

#include "checkpoint/synthetic.h"
#include "cmodel/num.h"
#include "cpu/cpu.h"
#include "pack/packed.h"
#include "pack/smooth.h"
#include "unit/bert_model.h"
#include "unit/files.h"
#include "unit/fixtures.h"

// ---- smoothing ----------------------------------------------------------------------------------

struct scaled { // which exponent an element [r][c] of a tensor gets
    const char *name;
    bool layer;
    int row, col; // 0: none, 1: +ln, -1: -ln, 2: +vo, -2: -vo, 3: +kq, -3: -kq
};

static const struct scaled parts[] = {
    {"ln_1.weight", true, -1, 0},
    {"ln_1.bias", true, -1, 0},
    {"attn.q_proj.weight", true, 3, 1},
    {"attn.k_proj.weight", true, -3, 1},
    {"attn.v_proj.weight", true, -2, 1},
    {"attn.out_proj.weight", true, 0, 2},
    {"mlp.fc_in.weight", true, 0, 1},
    {"transformer.ln_f.weight", false, -1, 0},
    {"transformer.ln_f.bias", false, -1, 0},
    {"lm_head.weight", false, 0, 1},
};

// The items of GPT-J's block that have groups of factors; of its tail it is the first, too.
enum { LN = 0, K = 2, V = 3 };

static int exponent(const struct mr_smooth *s, int which, int layer, int n, int i)
{
    static const int owner[] = {-1, LN, V, K};
    int sign = which < 0 ? -1 : 1, item = owner[which * sign];
    (void)n;
    return item < 0 ? 0 : sign * mr_smooth_group(s, layer, item)[i];
}

// The tensors are views of a private mapping: they are replaced by scaled copies in fp32.
static void scale_checkpoint(struct mr_checkpoint *ck, const struct mr_smooth *s, float **copies,
                             int *n_copies)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    for (int l = 0; l <= c->n_layer; l++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            const struct scaled *p = &parts[i];
            if (p->layer != (l < c->n_layer))
                continue;
            struct mr_tensor *t =
                (struct mr_tensor *)(uintptr_t)(p->layer ? layer_tensor(ck, l, p->name)
                                                         : mr_checkpoint_tensor(ck, p->name));
            assert_non_null(t);
            float *w = allocate(t->count, sizeof *w);
            assert_int_equal(mr_tensor_read_f32(t, 0, t->count, w), 0);
            int cols = t->rank == 2 ? (int)t->shape[1] : 1;
            for (size_t k = 0; k < t->count; k++) {
                int r = (int)(k / (size_t)cols), col = (int)(k % (size_t)cols);
                w[k] = ldexpf(w[k], exponent(s, p->row, l, c->n_embd, r) +
                                        exponent(s, p->col, l, c->n_embd, col));
            }
            t->dtype = MR_DTYPE_F32;
            t->data = (const unsigned char *)w;
            t->bytes = t->count * sizeof *w;
            copies[(*n_copies)++] = w;
        }
}

static void cpu_logits(const struct mr_checkpoint *ck, const struct fixture *f, float *logits)
{
    struct mr_error err = {0};
    struct mr_cpu *cpu;
    struct mr_cpu_row *rows = allocate((size_t)f->n_tok, sizeof *rows);
    int seq;
    check(mr_cpu_open(&cpu, ck, &err), &err);
    check(mr_cpu_seq_new(cpu, &seq, &err), &err);
    for (int i = 0; i < f->n_tok; i++)
        rows[i] = (struct mr_cpu_row){seq, (int)f->ids[i], true};
    check(mr_cpu_step(cpu, f->n_tok, rows, logits, &err), &err);
    mr_cpu_close(cpu);
    free(rows);
}

// Exact up to rounding of sums: products are the same, but a score's two factors and the gain's
// place in LayerNorm differ by powers of two only, so even the bits stay.
static void smoothing_changes_no_logit(void **state)
{
    (void)state;
    struct dirent **names;
    int n = names_in(FIXTURES, &names), moved = 0;
    for (int i = 0; i < n; i++) {
        struct mr_error err = {0};
        struct fixture f;
        struct mr_smooth s;
        open_fixture(&f, names[i]->d_name, MR_FORMAT_MXINT8);
        const struct mr_config *c = &f.packed.config;
        size_t floats = (size_t)f.n_tok * (size_t)f.vocab;
        float *before = allocate(floats, 4), *after = allocate(floats, 4), *copies[512];
        int n_copies = 0;
        cpu_logits(f.packed.checkpoint, &f, before);
        check(mr_smooth_plan(&s, f.packed.checkpoint, true, &err), &err);
        for (int k = 0; k < (c->n_layer + 1) * c->n_embd; k++)
            moved += mr_smooth_group(&s, k / c->n_embd, LN)[k % c->n_embd] != 0;
        for (int l = 0; l < c->n_layer; l++)
            for (int k = 0; k < c->n_embd; k++) {
                const int8_t *kq = mr_smooth_group(&s, l, K);
                moved += mr_smooth_group(&s, l, V)[k] != 0 || kq[k] != 0;
                if (k % c->head_dim < c->rotary_dim) // a rotary pair has one exponent
                    assert_int_equal(kq[k],
                                     kq[(k / c->head_dim * c->head_dim) + ((k % c->head_dim) ^ 1)]);
            }
        scale_checkpoint(f.packed.checkpoint, &s, copies, &n_copies);
        cpu_logits(f.packed.checkpoint, &f, after);
        for (size_t k = 0; k < floats; k++)
            if (!(fabsf(before[k] - after[k]) <= 2e-5F * (1 + fabsf(before[k]))))
                fail_msg("%s: logit %zu was %.9g, is %.9g", f.name, k, (double)before[k],
                         (double)after[k]);
        mr_smooth_free(&s);
        while (n_copies > 0)
            free(copies[--n_copies]);
        free(before);
        free(after);
        close_fixture(&f);
        free(names[i]);
    }
    free(names);
    assert_true(moved > 0);
}

// ---- the file -----------------------------------------------------------------------------------

#define MODEL "fp32-d16-r2"

static void round_trip(enum mr_format format, bool smooth, const char *calibrate)
{
    struct mr_error err = {0};
    struct mr_packed a, b;
    struct mr_pack_options opt = {.format = format, .smooth = smooth, .calibrate = calibrate};
    const char *path = files_path("m.mill");
    check(mr_pack_directory(&a, FIXTURES "/" MODEL, &opt, &err), &err);
    check(mr_packed_save(&a, FIXTURES "/" MODEL, path, NULL, &err), &err);
    check(mr_packed_load(&b, path, &opt, &err), &err);
    assert_memory_equal(&a.config, &b.config, sizeof a.config);
    assert_int_equal(a.format, b.format);
    assert_int_equal(a.smooth, b.smooth);
    assert_int_equal(a.calibrated, b.calibrated);
    assert_int_equal(b.calibrated, opt.calibrate != NULL);
    assert_int_equal(a.list.bytes, b.list.bytes);
    assert_memory_equal(a.stream, b.stream, a.list.bytes);
    assert_int_equal((uintptr_t)b.stream % 4096, 0);
    assert_int_equal(a.embedding.dtype, b.embedding.dtype);
    assert_int_equal(a.embedding.bytes, b.embedding.bytes);
    assert_memory_equal(a.embedding.data, b.embedding.data, a.embedding.bytes);
    assert_null(b.checkpoint);
    assert_null(b.tokenizer); // this fixture has none
    mr_packed_close(&a);
    mr_packed_close(&b);
}

static void file_gives_back_what_was_packed(void **state)
{
    (void)state;
    round_trip(MR_FORMAT_MXINT8, true, NULL);
    round_trip(MR_FORMAT_MXINT8, false, NULL);
    round_trip(MR_FORMAT_MXFP4, true, NULL);
    round_trip(MR_FORMAT_MXINT8, false, "self");
}

static void same_tokens(struct mr_tokenizer *a, struct mr_tokenizer *b)
{
    static const char text[] = "In the beginning, God's 17 \xc3\xa4 <|endoftext|>\n\n  x\xff y";
    struct mr_error err = {0};
    struct mr_tokens x = {0}, y = {0};
    check(mr_tokenizer_encode(a, text, sizeof text - 1, MR_SPECIAL_PARSE, &x, &err), &err);
    check(mr_tokenizer_encode(b, text, sizeof text - 1, MR_SPECIAL_PARSE, &y, &err), &err);
    assert_int_equal(x.count, y.count);
    assert_memory_equal(x.ids, y.ids, x.count * sizeof *x.ids);
    mr_tokens_free(&x);
    mr_tokens_free(&y);
}

// models/demo has both forms; the second is copied so that it stands alone.
static void tokenizers_of_both_forms_survive(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_buf text = {0};
    struct mr_tokenizer *two, *one, *parsed;
    static const char *const names[] = {"vocab.json", "merges.txt"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        size_t size;
        (void)snprintf(path, sizeof path, "models/demo/%s", names[i]);
        char *data = files_read(path, &size);
        (void)files_write(names[i], data, size);
        free(data);
    }
    check(mr_tokenizer_open(&two, files_dir, &err), &err);
    check(mr_tokenizer_open(&one, "models/demo", &err), &err);
    check(mr_tokenizer_text(files_dir, &text, &err), &err);
    check(mr_tokenizer_parse(&parsed, text.data, text.size, "text", &err), &err);
    same_tokens(two, parsed);
    same_tokens(one, parsed);
    mr_tokenizer_close(two);
    mr_tokenizer_close(one);
    mr_tokenizer_close(parsed);
    mr_buf_free(&text);
    (void)remove(files_path(names[0]));
    (void)remove(files_path(names[1]));
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(files_dir);
    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

static void failed_writes_leave_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_pack_options opt = {.format = MR_FORMAT_MXINT8};
    volatile sig_atomic_t stop = 1;
    check(mr_pack_directory(&p, FIXTURES "/" MODEL, &opt, &err), &err);
    int before = entries();
    int rc = mr_packed_save(&p, FIXTURES "/" MODEL, files_path("stopped.mill"), &stop, &err);
    assert_refused(rc, MR_ERR_INTERRUPTED, &err, "stopped.mill");
    rc = mr_packed_save(&p, FIXTURES "/" MODEL, files_path("none/x.mill"), NULL, &err);
    assert_refused(rc, MR_ERR_IO, &err, "No such file");
    rc =
        mr_packed_save(&p, FIXTURES "/" MODEL, files_dir, NULL, &err); // cannot replace a directory
    assert_refused(rc, MR_ERR_IO, &err, files_dir);
    rc = mr_packed_save(&p, FIXTURES "/bf16-d32-r6", files_path("other.mill"), NULL, &err);
    assert_refused(rc, MR_ERR_FORMAT, &err, "has changed");
    assert_int_equal(entries(), before);
    mr_packed_close(&p);
}

// By its own name, through a link, and from memory; an older packed file there may be replaced.
static void packing_does_not_replace_the_checkpoint(void **state)
{
    (void)state;
    const struct mr_config c = one_layer(16, 1, 4, 24);
    static const char *const names[] = {"model.safetensors", "config.json", "link", "short"};
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_pack_result result;
    const struct mr_pack_options opt = {0};
    check(mr_synthetic_write(files_dir, &c, 1, &err), &err);
    assert_int_equal(symlink(files_path("model.safetensors"), files_path("link")), 0);
    (void)files_write_text("short", "{}");
    check(mr_pack_directory(&p, files_dir, &opt, &err), &err);
    int before = entries();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = files_path(names[i]);
        assert_refused(mr_pack_file(files_dir, path, &opt, &result, &err), MR_ERR_USAGE, &err,
                       "choose another name");
        assert_refused(mr_packed_save(&p, files_dir, path, NULL, &err), MR_ERR_USAGE, &err, path);
    }
    assert_int_equal(entries(), before);
    for (int i = 0; i < 2; i++)
        check(mr_pack_file(files_dir, files_path("m.mill"), &opt, &result, &err), &err);
    mr_packed_close(&p);
    (void)remove(files_path("link"));
    (void)remove(files_path("short"));
    (void)remove(files_path("m.mill"));
    (void)remove(files_path("config.json"));
    (void)remove(files_path("model.safetensors"));
}

static void packing_does_not_replace_what_is_no_file(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct stat st;
    const struct mr_pack_options opt = {0};
    const char *pipe = files_path("pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    check(mr_pack_directory(&p, FIXTURES "/" MODEL, &opt, &err), &err);
    int before = entries();
    assert_refused(mr_packed_save(&p, FIXTURES "/" MODEL, pipe, NULL, &err), MR_ERR_IO, &err,
                   "no regular file");
    assert_int_equal(stat(pipe, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(entries(), before);
    mr_packed_close(&p);
    (void)remove(pipe);
}

static int stop_at_once(void *arg, size_t done, size_t total)
{
    (void)done;
    (void)total;
    return ++*(int *)arg;
}

static void packing_can_be_stopped(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    int calls = 0;
    struct mr_pack_options opt = {.progress = stop_at_once, .arg = &calls};
    assert_int_equal(mr_pack_directory(&p, FIXTURES "/" MODEL, &opt, &err), MR_ERR_INTERRUPTED);
    assert_int_equal(calls, 1);
    assert_null(p.stream);
}

// The measure of what packing takes: every model that can be packed can be read.
static void a_plain_read_takes_every_model_and_can_be_stopped(void **state)
{
    (void)state;
    static const char bert[] =
        "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\",\"vocab_size\":61,"
        "\"hidden_size\":40,\"num_attention_heads\":2,\"intermediate_size\":72,"
        "\"num_hidden_layers\":2,\"max_position_embeddings\":32}";
    struct mr_error err = {0};
    struct bert_file w = {0};
    volatile sig_atomic_t stop = 0;
    check(mr_pack_plain_read(FIXTURES "/" MODEL, NULL, &err), &err);
    assert_int_equal(bert_write(&w, files_dir, bert), 0);
    check(mr_pack_plain_read(files_dir, &stop, &err), &err);
    stop = 1;
    assert_refused(mr_pack_plain_read(files_dir, &stop, &err), MR_ERR_INTERRUPTED, &err,
                   "interrupted");
    (void)remove(files_path("model.safetensors"));
    (void)remove(files_path("config.json"));
}

// Where a tensor of a safetensors file begins.
static size_t place_of(const char *data, const char *name)
{
    static const char offsets[] = "\"data_offsets\":[";
    uint64_t header;
    char key[80];
    int length = snprintf(key, sizeof key, "\"%s\"", name);
    memcpy(&header, data, sizeof header);
    const char *entry = memmem(data + 8, header, key, (size_t)length);
    assert_non_null(entry);
    entry = strstr(entry, offsets);
    assert_non_null(entry);
    return 8 + header + strtoul(entry + sizeof offsets - 1, NULL, 10);
}

// One weight of a small model is another one, in its bf16.
static void write_with(const char *name, size_t element, uint16_t value)
{
    const struct mr_config c = one_layer(32, 2, 8, 32);
    struct mr_error err = {0};
    size_t size;
    check(mr_synthetic_write(files_dir, &c, 1, &err), &err);
    char *data = files_read(files_path("model.safetensors"), &size);
    memcpy(data + place_of(data, name) + 2 * element, &value, sizeof value);
    (void)files_write("model.safetensors", data, size);
    free(data);
}

// Of a row that is read head by head, whichever head has it.
static void refuses_infinite_weights_of_any_head(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    const struct mr_pack_options opt = {.smooth = true};
    for (size_t at = 0; at < 32; at += 16) {
        write_with("transformer.h.0.attn.out_proj.weight", 3 * 32 + at, 0x7F80);
        assert_refused(mr_pack_directory(&p, files_dir, &opt, &err), MR_ERR_FORMAT, &err,
                       "attn.out_proj.weight: output 3 has an infinite or NaN");
    }
    (void)remove(files_path("model.safetensors"));
    (void)remove(files_path("config.json"));
}

// A gain whose square is beyond fp32 is no measure of its column.
static void an_infinite_ratio_scales_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_smooth s;
    for (int huge = 0; huge < 2; huge++) { // 2^40 and 2^100
        write_with("transformer.h.0.ln_1.weight", 5, huge ? 0x7180 : 0x5380);
        check(mr_checkpoint_open(&checkpoint, files_dir, MR_DECODER, NULL, &err), &err);
        check(mr_smooth_plan(&s, checkpoint, true, &err), &err);
        int shift = mr_smooth_group(&s, 0, LN)[5];
        assert_true(huge ? shift == 0 : shift > 0);
        mr_smooth_free(&s);
        mr_checkpoint_close(checkpoint);
    }
    (void)remove(files_path("model.safetensors"));
    (void)remove(files_path("config.json"));
}

static void refuses_infinite_weights(void **state)
{
    (void)state;
    const struct mr_config c = one_layer(32, 1, 8, 32);
    static const uint16_t bad[] = {0x7F80, 0xFF80, 0x7FC0};
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_pack_options opt = {.smooth = true};
    size_t size;
    check(mr_synthetic_write(files_dir, &c, 1, &err), &err);
    char *data = files_read(files_path("model.safetensors"), &size);
    for (int i = 0; i < 3; i++) {
        // the tail of the file is lm_head.bias, before it lie lm_head.weight and others
        for (size_t back = 2; back < 2 * (64 + 64 * 32); back += 1500) {
            uint16_t was;
            memcpy(&was, data + size - back, 2);
            memcpy(data + size - back, &bad[i], 2);
            (void)files_write("model.safetensors", data, size);
            int rc = mr_pack_directory(&p, files_dir, &opt, &err);
            assert_refused(rc, MR_ERR_FORMAT, &err, "lm_head");
            memcpy(data + size - back, &was, 2);
        }
    }
    free(data);
    (void)remove(files_path("model.safetensors"));
    (void)remove(files_path("config.json"));
}

// In each type, in memory and into a file. The embedding is not quantised but copied.
static void refuses_infinite_embeddings(void **state)
{
    (void)state;
    static const struct {
        const char *fixture;
        size_t bytes;
        uint32_t bad;
    } cases[] = {
        {"fp32-d16-r2", 4, 0x7F800000},      {"fp32-d16-r2", 4, 0xFFC00000},
        {"fp16-d48-r16-buffers", 2, 0xFC00}, {"fp16-d48-r16-buffers", 2, 0x7E00},
        {"bf16-d32-r6", 2, 0x7F80},          {"bf16-d32-r6", 2, 0xFF81},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_packed p;
        struct mr_pack_result result;
        struct mr_pack_options opt = {.smooth = true};
        char path[512];
        size_t size;
        (void)snprintf(path, sizeof path, FIXTURES "/%s/config.json", cases[i].fixture);
        char *text = files_read(path, &size);
        (void)files_write("config.json", text, size);
        const char *width = strstr(text, "\"n_embd\":");
        assert_non_null(width);
        unsigned long n_embd = strtoul(width + 9, NULL, 10);
        free(text);
        (void)snprintf(path, sizeof path, FIXTURES "/%s/model.safetensors", cases[i].fixture);
        char *data = files_read(path, &size);
        size_t at = place_of(data, "transformer.wte.weight");
        memcpy(data + at + (3 * n_embd + 1) * cases[i].bytes, &cases[i].bad, cases[i].bytes);
        (void)files_write("model.safetensors", data, size);
        free(data);
        assert_refused(mr_pack_directory(&p, files_dir, &opt, &err), MR_ERR_FORMAT, &err,
                       "transformer.wte.weight: row 3 has an infinite or NaN");
        err = (struct mr_error){0};
        assert_refused(mr_pack_file(files_dir, files_path("a.mill"), &opt, &result, &err),
                       MR_ERR_FORMAT, &err, "transformer.wte.weight: row 3 has an infinite or NaN");
        assert_int_equal(access(files_path("a.mill"), F_OK), -1);
    }
    (void)remove(files_path("model.safetensors"));
    (void)remove(files_path("config.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smoothing_changes_no_logit),
        cmocka_unit_test(file_gives_back_what_was_packed),
        cmocka_unit_test(tokenizers_of_both_forms_survive),
        cmocka_unit_test(failed_writes_leave_nothing),
        cmocka_unit_test(packing_does_not_replace_the_checkpoint),
        cmocka_unit_test(packing_does_not_replace_what_is_no_file),
        cmocka_unit_test(packing_can_be_stopped),
        cmocka_unit_test(a_plain_read_takes_every_model_and_can_be_stopped),
        cmocka_unit_test(refuses_infinite_weights_of_any_head),
        cmocka_unit_test(an_infinite_ratio_scales_nothing),
        cmocka_unit_test(refuses_infinite_weights),
        cmocka_unit_test(refuses_infinite_embeddings),
    };
    return cmocka_run_group_tests_name("pack", tests, files_setup, files_teardown);
}
