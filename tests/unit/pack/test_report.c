// SPDX-License-Identifier: Apache-2.0
// The quality report of `millrace pack`: its figures against sums over the unpacked values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "pack/packed.h"
#include "unit/fixtures.h"
#include "unit/pack/unpacked.h"

#define MODEL FIXTURES "/mixed-d96-r16"

static const char *const parts[] = {"attn.q_proj", "attn.k_proj", "attn.v_proj",
                                    "mlp.fc_in",   "mlp.fc_out",  "attn.out_proj"};
enum { PARTS = sizeof parts / sizeof *parts };

static void pack(struct mr_packed *p, enum mr_format format, bool smooth)
{
    struct mr_error err = {0};
    struct mr_pack_options opt = {.format = format, .smooth = smooth};
    check(mr_pack_directory(p, MODEL, &opt, &err), &err);
}

static struct mr_quality *report(const struct mr_packed *p, size_t *count)
{
    struct mr_error err = {0};
    struct mr_quality *list;
    check(mr_report(p, p->checkpoint, NULL, &list, count, &err), &err);
    assert_int_equal(*count, PARTS * (size_t)p->config.n_layer + 1);
    return list;
}

static void check_entry(const struct mr_quality *q, const struct mr_tensor *a,
                        const struct mr_tensor *b)
{
    double weight2 = 0, error2 = 0, largest = 0, n = (double)a->count;
    float *x = allocate(a->count, sizeof *x), *y = allocate(a->count, sizeof *y);
    assert_int_equal(mr_tensor_read_f32(a, 0, a->count, x), 0);
    assert_int_equal(mr_tensor_read_f32(b, 0, b->count, y), 0);
    for (size_t i = 0; i < a->count; i++) {
        double d = (double)x[i] - (double)y[i];
        weight2 += (double)x[i] * (double)x[i];
        error2 += d * d;
        largest = fmax(largest, fabs(d));
    }
    assert_int_equal(q->rows, a->shape[0]);
    assert_int_equal(q->cols, a->shape[1]);
    assert_true(fabs(q->rms_weight / sqrt(weight2 / n) - 1) < 1e-12);
    assert_true(fabs(q->rms_error / sqrt(error2 / n) - 1) < 1e-12);
    assert_true(q->largest_error == largest && largest > 0);
    free(x);
    free(y);
}

static void figures_are_those_of_the_unpacked_values(void **state)
{
    (void)state;
    for (int fp4 = 0; fp4 < 2; fp4++) {
        struct mr_error err = {0};
        struct mr_packed p;
        struct mr_unpacked *u;
        size_t count;
        char name[64];
        pack(&p, fp4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8, false);
        check(mr_unpack(&u, &p, &err), &err);
        struct mr_quality *list = report(&p, &count);
        for (size_t i = 0; i < count; i++) {
            bool head = i + 1 == count;
            int layer = head ? -1 : (int)(i / PARTS);
            const struct mr_tensor *was;
            if (head) {
                (void)snprintf(name, sizeof name, "lm_head.weight");
                assert_string_equal(list[i].name, "lm_head");
                was = mr_checkpoint_tensor(p.checkpoint, name);
            } else {
                char label[64];
                (void)snprintf(label, sizeof label, "transformer.h.%d.%s", layer, parts[i % PARTS]);
                assert_string_equal(list[i].name, label);
                (void)snprintf(name, sizeof name, "%s.weight", parts[i % PARTS]);
                was = layer_tensor(p.checkpoint, layer, name);
            }
            check_entry(&list[i], was, unpacked_named(u, &p.config, layer, name));
            assert_int_equal(list[i].format, fp4 && !head ? MR_WEIGHTS_MXFP4 : MR_WEIGHTS_MXINT8);
        }
        free(list);
        mr_unpacked_close(u);
        mr_packed_close(&p);
    }
}

// Errors of a smoothed model are measured without the smoothing's factors: else they would be
// larger than the weights.
static void smoothing_is_taken_out(void **state)
{
    (void)state;
    struct mr_packed p;
    size_t count;
    pack(&p, MR_FORMAT_MXINT8, true);
    struct mr_quality *list = report(&p, &count);
    for (size_t i = 0; i < count; i++)
        assert_true(list[i].rms_error > 0 && list[i].rms_error < 0.01 * list[i].rms_weight);
    free(list);
    mr_packed_close(&p);
}

static void a_wrong_element_shows(void **state)
{
    (void)state;
    struct mr_packed p;
    size_t count;
    pack(&p, MR_FORMAT_MXINT8, true);
    struct mr_quality *before = report(&p, &count);
    struct mr_stream_item ln = mr_stream_item(&p.config, p.format, 0);
    uint8_t *stream = p.memory;
    stream[(mr_item_beats(&ln, 1) + 2) * MR_BEAT] ^= 0x80; // q's first element, behind two beats
    struct mr_quality *after = report(&p, &count);
    assert_true(after[0].rms_error > before[0].rms_error);
    for (size_t i = 1; i < count; i++)
        assert_true(after[i].rms_error == before[i].rms_error);
    free(before);
    free(after);
    mr_packed_close(&p);
}

static void refuses_to_compare_with_another_model(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_checkpoint *other;
    struct mr_quality *list;
    size_t count;
    volatile sig_atomic_t stop = 1;
    pack(&p, MR_FORMAT_MXINT8, true);
    check(mr_checkpoint_open(&other, FIXTURES "/fp32-d16-r2", MR_DECODER, NULL, &err), &err);
    assert_int_equal(mr_report(&p, other, NULL, &list, &count, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "another shape"));
    assert_null(list);
    int *const sizes[] = {&p.config.vocab_size, &p.config.n_embd,  &p.config.n_layer,
                          &p.config.n_head,     &p.config.n_inner, &p.config.rotary_dim};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ++*sizes[i];
        err.text[0] = 0;
        assert_int_equal(mr_report(&p, p.checkpoint, NULL, &list, &count, &err), MR_ERR_FORMAT);
        assert_non_null(strstr(err.text, "another shape"));
        --*sizes[i];
    }
    assert_int_equal(mr_report(&p, p.checkpoint, &stop, &list, &count, &err), MR_ERR_INTERRUPTED);
    assert_null(list);
    mr_checkpoint_close(other);
    mr_packed_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_the_unpacked_values),
        cmocka_unit_test(smoothing_is_taken_out),
        cmocka_unit_test(a_wrong_element_shows),
        cmocka_unit_test(refuses_to_compare_with_another_model),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
