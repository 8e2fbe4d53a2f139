// SPDX-License-Identifier: Apache-2.0
// The streams of a store: W is what `pack` writes of the exported weights, byte for byte; Wt is
// each matrix turned, block by block as num.h rounds it; after an import, after steps, and once
// more after an open.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "checkpoint/synthetic.h"
#include "cmodel/num.h"
#include "pack/packed.h"
#include "store/tile_kernels.h"
#include "store/turned.h"
#include "unit/simd_sets.h"
#include "unit/store/store_steps.h"

// ---- blocks -------------------------------------------------------------------------------------

// Tiles of all sizes: usual ones, subnormals, zeros, infinities, ties, a single large one.
static void fill_tile(float *tile, uint64_t r)
{
    for (size_t e = 0; e < MR_TILE; e++) {
        uint64_t x = mix(r * MR_TILE + e);
        int power = r % 5 == 0 ? (int)(x >> 40 & 7) - 3 : (int)(x >> 40 & 255) - 149 + (int)(r % 7);
        tile[e] = ldexpf((float)(int32_t)x, power - 31);
        if (r % 3 == 1)
            tile[e] = (float)((int)(x & 255) - 127) * 0.5F; // ties
        if (r % 11 == 2)
            tile[e] = ldexpf(tile[e], -125);
        if (x % 5 == 0 && r % 2)
            tile[e] = x % 2 ? -0.0F : 0.0F;
        if (r % 13 == 4 && x % 400 == 0)
            tile[e] = x % 800 ? INFINITY : NAN;
    }
    for (size_t e = 0; e < MR_TILE && r % 17 == 3; e++)
        tile[e] = 0;
}

static void check_block(const float *from, size_t stride, const int8_t *q, uint8_t code,
                        const char *what, uint64_t r)
{
    float in[MR_BLOCK];
    int8_t want[MR_BLOCK];
    for (size_t i = 0; i < MR_BLOCK; i++)
        in[i] = from[i * stride];
    uint8_t c = mr_mxint8_quantise(in, want);
    if (c != code || memcmp(want, q, sizeof want) != 0)
        fail_msg("%s, tile %d: a block differs (scale code %d, expected %d)", what, (int)r, code,
                 c);
}

static void every_instruction_set_has_the_same_blocks(void **state)
{
    (void)state;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    static float tile[MR_TILE];
    struct mr_tile_blocks b;
    for (int n = 0; n < 3; n++) {
        const struct mr_tile_kernels *k = SIMD_NAMED(mr_tile_kernels, names[n]);
        for (uint64_t r = 0; k && r < 600; r++) {
            fill_tile(tile, r);
            k->blocks(tile, &b);
            for (size_t c = 0; c < 64; c++) {
                const float *row = tile + c % 32 * 64 + c / 32 * 32;
                check_block(tile + c, 64, b.down[c], b.down_code[c], names[n], r);
                check_block(row, 1, b.along[c], b.along_code[c], names[n], r);
            }
        }
    }
}

// ---- streams ------------------------------------------------------------------------------------

// One element of a matrix of a stream, and its block's scale code.
static int8_t element(const struct mr_stream_item *it, const uint8_t *base, int k, int col,
                      uint8_t *code)
{
    int64_t group = mr_group_beats(it) * 64, header = mr_header_beats(it) * 64;
    const uint8_t *g = base + col / 64 * (header + 16 * group) + header + col % 64 / 4 * group;
    const uint8_t *section = g + k / 512 * 33 * 64;
    *code = section[k % 512 / 32 * 4 + col % 4];
    return (int8_t)section[64 + k % 512 / 32 * 128 + col % 4 * 32 + k % 32];
}

// Wt of a matrix, segment by segment, against its master weights; returns its bytes.
static uint64_t check_turned(const struct mr_store *s, int i, const uint8_t *base)
{
    const struct mr_config *c = mr_store_config(s);
    uint64_t bytes = 0;
    for (int segment = 0; segment < mr_store_segments(c, i); segment++) {
        struct mr_stream_item it = mr_store_turned_item(c, i, segment);
        struct mr_matrix_shape m =
            mr_matrix_shape(c, &(struct mr_stream_item){.item = it.item, .cols = 1});
        size_t index = mr_params_index(c, it.layer, it.item, MR_WEIGHT);
        float *w = allocate((size_t)m.rows * (size_t)m.cols, sizeof *w);
        mr_store_read(s, index, MR_MASTER, w);
        const uint8_t *at = base + bytes;
        for (int col = 0; col < it.cols; col++) {
            uint8_t top = 0, code;
            int input = mr_unpad(col, m.col_head, m.cols);
            for (int b = 0; b < it.k / 32; b++) {
                float in[32] = {0};
                int8_t q[32];
                for (int e = 0; e < 32; e++) {
                    int output = mr_unpad(segment * MR_SEGMENT + b * 32 + e, m.row_head, m.rows);
                    if (output >= 0 && input >= 0)
                        in[e] = w[(size_t)output * (size_t)m.cols + (size_t)input];
                }
                uint8_t want = mr_mxint8_quantise(in, q);
                for (int e = 0; e < 32; e++)
                    assert_int_equal(element(&it, at, b * 32 + e, col, &code), q[e]);
                assert_int_equal(code, want);
                top = want > top ? want : top;
            }
            int64_t piece = (mr_header_beats(&it) + 16 * mr_group_beats(&it)) * 64;
            assert_int_equal(at[col / 64 * piece + col % 64], top);
        }
        free(w);
        bytes += (uint64_t)mr_item_beats(&it, 1) * MR_BEAT;
    }
    return bytes;
}

static void check_streams(const struct mr_store *s)
{
    struct mr_error err = {0};
    struct mr_packed packed;
    struct mr_pack_options options = {.format = MR_FORMAT_MXINT8};
    uint64_t bytes, at = 0;
    const char *out = files_path("out");
    check(mr_store_export(s, out, MR_DTYPE_F32, NULL, &err), &err);
    check(mr_pack_directory(&packed, out, &options, &err), &err);
    const uint8_t *w = mr_store_stream(s, &bytes);
    assert_int_equal(bytes, packed.list.bytes);
    for (uint64_t k = 0; k < bytes; k++)
        if (w[k] != packed.stream[k])
            fail_msg("byte %llu of W is %d; pack writes %d", (unsigned long long)k, w[k],
                     packed.stream[k]);
    mr_packed_close(&packed);
    remove_dir(out);
    const uint8_t *turned = mr_store_turned(s, &bytes);
    for (int i = 0; i < mr_stream_items(mr_store_config(s)); i++)
        at += check_turned(s, i, turned + at);
    assert_int_equal(at, bytes);
}

static void steps_of(const char *from)
{
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = 3};
    struct mr_store_done done;
    struct mr_store *s;
    char dir[512];
    (void)snprintf(dir, sizeof dir, "%s", files_path("state"));
    check(mr_store_create(dir, from, &options, &err), &err);
    check(mr_store_open(&s, dir, &options, &err), &err);
    check_streams(s);
    for (int k = 0; k < 2; k++) {
        check(one_step(s, k, &done, &err), &err);
        check_streams(s);
    }
    mr_store_close(s);
    check(mr_store_open(&s, dir, &options, &err), &err);
    check_streams(s);
    mr_store_close(s);
    forget_regions();
    remove_dir(dir);
}

static void streams_are_those_of_pack(void **state)
{
    (void)state;
    struct mr_error err = {0};
    check(toy_register(&err), &err);
    steps_of(TRAIN_FIXTURES "/gptj-d12-r4");
    steps_of(TRAIN_FIXTURES "/toy-d10");
}

// More than a patch either way, and a head of more outputs than a segment has. Of 2000 weights the
// largest is near a power of two, so that patches of a column differ in their largest codes.
static void streams_of_large_matrices(void **state)
{
    (void)state;
    static const struct mr_config c = {.vocab_size = 16500,
                                       .n_positions = 8,
                                       .n_embd = 48,
                                       .n_layer = 1,
                                       .n_head = 2,
                                       .rotary_dim = 4,
                                       .n_inner = 2000,
                                       .eos_token_id = -1};
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = 2};
    struct mr_store *s;
    char model[512];
    (void)snprintf(model, sizeof model, "%s", files_path("model"));
    assert_int_equal(mkdir(model, 0700), 0);
    check(mr_synthetic_write(model, &c, 7, &err), &err);
    check(mr_store_create(files_path("state"), model, &options, &err), &err);
    check(mr_store_open(&s, files_path("state"), &options, &err), &err);
    check_streams(s);
    mr_store_close(s);
    remove_dir(model);
    remove_dir(files_path("state"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_has_the_same_blocks),
        cmocka_unit_test(streams_are_those_of_pack),
        cmocka_unit_test(streams_of_large_matrices),
    };
    return cmocka_run_group_tests_name("store_streams", tests, files_setup, files_teardown);
}
