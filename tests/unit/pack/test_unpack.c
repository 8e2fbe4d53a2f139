// SPDX-License-Identifier: Apache-2.0
// Packed weights turned back into fp32, and the reference on them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "cpu/cpu.h"
#include "engine/cpu_backend.h"
#include "pack/packed.h"
#include "unit/fixtures.h"
#include "unit/pack/unpacked.h"

static float *read_all(const struct mr_tensor *t)
{
    assert_non_null(t);
    float *v = allocate(t->count, sizeof *v);
    assert_int_equal(mr_tensor_read_f32(t, 0, t->count, v), 0);
    return v;
}

// Every block is within its format's rounding of the checkpoint: `bound` of the block's largest.
static void compare(const struct mr_tensor *got, const struct mr_tensor *want, double bound)
{
    float *a = read_all(got), *b = read_all(want);
    assert_int_equal(got->count, want->count);
    size_t cols = want->rank == 2 ? (size_t)want->shape[1] : want->count;
    for (size_t row = 0; row < want->count / cols; row++)
        for (size_t first = 0; first < cols; first += 32) {
            size_t n = cols - first < 32 ? cols - first : 32, at = row * cols + first;
            double most = 0, error = 0;
            for (size_t i = at; i < at + n; i++) {
                most = fmax(most, fabs(b[i]));
                error = fmax(error, fabs((double)a[i] - b[i]));
            }
            if (error > bound * most)
                fail_msg("%s: row %zu, from column %zu: off by %g of %g", want->name, row, first,
                         error, most);
        }
    free(a);
    free(b);
}

// MXINT8 rounds to 1/128 of the block's power of two and clamps at 127/64 of it; E2M1's steps
// reach a third of the largest, and its scale may be one less than that of the block.
static void compare_model(const char *name, enum mr_format format, double bound)
{
    static const char *const of_layer[] = {
        "ln_1.weight",        "ln_1.bias",           "attn.q_proj.weight", "attn.k_proj.weight",
        "attn.v_proj.weight", "mlp.fc_in.weight",    "mlp.fc_in.bias",     "mlp.fc_out.weight",
        "mlp.fc_out.bias",    "attn.out_proj.weight"};
    static const char *const of_model[] = {"transformer.wte.weight", "transformer.ln_f.weight",
                                           "transformer.ln_f.bias", "lm_head.weight",
                                           "lm_head.bias"};
    struct mr_packed packed;
    struct mr_unpacked *u;
    struct mr_error err = {0};
    struct mr_pack_options opt = {.format = format};
    char path[300];
    (void)snprintf(path, sizeof path, FIXTURES "/%.200s", name);
    check(mr_pack_directory(&packed, path, &opt, &err), &err);
    check(mr_unpack(&u, &packed, &err), &err);
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
        compare(unpacked_named(u, &packed.config, -1, of_model[i]),
                mr_checkpoint_tensor(packed.checkpoint, of_model[i]), 1.0 / 64);
    for (int l = 0; l < packed.config.n_layer; l++)
        for (size_t i = 0; i < sizeof of_layer / sizeof *of_layer; i++) {
            const struct mr_tensor *t = layer_tensor(packed.checkpoint, l, of_layer[i]);
            compare(unpacked_named(u, &packed.config, l, of_layer[i]), t,
                    t->rank == 2 ? bound : 0); // biases and gains stay fp32
        }
    const struct mr_item *norm = &mr_arch_of(&packed.config)->block.items[0];
    assert_non_null(mr_unpacked_item(u, 0, norm, MR_BIAS));
    assert_null(mr_unpacked_item(u, packed.config.n_layer, norm, MR_BIAS));
    assert_null(mr_unpacked_item(u, 0, &mr_arch_of(&packed.config)->tail.items[0], MR_BIAS));
    const struct mr_item *table = &mr_arch_of(&packed.config)->tables.items[0];
    assert_non_null(mr_unpacked_item(u, packed.config.n_layer, table, MR_WEIGHT));
    assert_null(mr_unpacked_item(u, packed.config.n_layer, table, MR_BIAS));
    mr_unpacked_close(u);
    mr_packed_close(&packed);
}

static void weights_are_those_of_the_checkpoint(void **state)
{
    struct dirent **entries;
    (void)state;
    int n = names_in(FIXTURES, &entries);
    for (int i = 0; i < n; i++) {
        compare_model(entries[i]->d_name, MR_FORMAT_MXINT8, 1.0 / 64);
        compare_model(entries[i]->d_name, MR_FORMAT_MXFP4, 0.34);
        free(entries[i]);
    }
    free(entries);
}

// Skipped positions have zeros for values: the context changes the logits, and refuses to shrink.
static void the_reference_skips_positions(void **state)
{
    struct fixture f;
    struct mr_backend *b;
    struct mr_error err = {0};
    int seq[2];
    (void)state;
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    float *logits = allocate((size_t)f.vocab * 2, sizeof *logits);
    check(mr_cpu_backend_open(&b, &f.packed, &err), &err);
    for (int i = 0; i < 2; i++)
        check(mr_backend_seq_new(b, &seq[i], &err), &err);
    check(mr_cpu_backend_seq_set_length(b, seq[1], 5, &err), &err);
    struct mr_row rows[2] = {{seq[0], 1, true}, {seq[1], 1, true}};
    check(mr_backend_step(b, rows, 2, logits, &err), &err);
    assert_memory_not_equal(logits, logits + f.vocab, (size_t)f.vocab * sizeof *logits);
    assert_int_equal(mr_cpu_backend_seq_set_length(b, seq[1], -1, &err), MR_ERR_USAGE);
    assert_int_equal(
        mr_cpu_backend_seq_set_length(b, seq[1], f.packed.config.n_positions + 1, &err),
        MR_ERR_USAGE);
    free(logits);
    mr_backend_close(b);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_checkpoint),
        cmocka_unit_test(the_reference_skips_positions),
    };
    return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
