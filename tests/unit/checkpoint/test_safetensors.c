// SPDX-License-Identifier: Apache-2.0
// safetensors files: reading good ones, refusing the others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "checkpoint/weights.h"
#include "unit/files.h"

// ---- good files ----

static void reads_tensors_in_order_of_name(void **state)
{
    (void)state;
    const char *path = files_write_safetensors(
        "a",
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"a\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[24,25]},"
        "\"c\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[24,24]}}  ",
        25);
    struct mr_weights file;
    struct mr_error err = {0};
    assert_int_equal(mr_weights_open(&file, false, path, &err), 0);
    assert_int_equal(file.tensors.count, 3);
    assert_string_equal(file.tensors.at[0].name, "a");
    assert_string_equal(file.tensors.at[2].name, "c");
    assert_null(mr_tensors_find(&file.tensors, "d"));
    assert_null(mr_tensors_find(&file.tensors, "__metadata__"));

    const struct mr_tensor *b = mr_tensors_find(&file.tensors, "b");
    assert_non_null(b);
    assert_int_equal(b->dtype, MR_DTYPE_I32);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->count, 6);
    int32_t values[2];
    assert_int_equal(mr_tensor_copy(b, 1, 2, values), 0);
    assert_int_equal(values[0], 0x07060504);
    assert_int_equal(values[1], 0x0b0a0908);

    const struct mr_tensor *a = mr_tensors_find(&file.tensors, "a");
    assert_int_equal(a->dtype, MR_DTYPE_OTHER);
    assert_int_equal(a->rank, 0);
    assert_int_equal(a->count, 1);
    uint8_t byte; // also of a type that no model has
    assert_int_equal(mr_tensor_copy(a, 0, 1, &byte), 0);
    assert_int_equal(byte, 24);
    assert_int_equal(mr_tensors_find(&file.tensors, "c")->count, 0);
    mr_weights_close(&file);
}

static void data_may_be_in_another_order_than_the_header(void **state)
{
    (void)state;
    struct mr_weights file;
    struct mr_error err = {0};
    const char *path =
        files_write_safetensors("a",
                                "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
                                "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                                "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                                3);
    assert_int_equal(mr_weights_open(&file, false, path, &err), 0);
    for (size_t i = 0; i < 3; i++) // a, b, c
        assert_int_equal(file.tensors.at[i].data[0], "\0\2\1"[i]);
    mr_weights_close(&file);
}

static void reads_a_file_without_tensors(void **state)
{
    (void)state;
    struct mr_weights file;
    struct mr_error err = {0};
    assert_int_equal(mr_weights_open(&file, false, files_write_safetensors("a", "{}", 0), &err), 0);
    assert_int_equal(file.tensors.count, 0);
    assert_null(mr_tensors_find(&file.tensors, "a"));
    mr_weights_close(&file);
}

static struct mr_tensor view(enum mr_dtype dtype, const void *data, size_t count,
                             size_t element_bytes)
{
    return (struct mr_tensor){.name = "t",
                              .dtype = dtype,
                              .rank = 1,
                              .shape = {(int64_t)count},
                              .count = count,
                              .data = data,
                              .bytes = count * element_bytes};
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// Every half, against arithmetic on its fields.
static void converts_every_half_exactly(void **state)
{
    (void)state;
    static uint16_t halves[65536];
    static float floats[65536];
    for (unsigned i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    struct mr_tensor t = view(MR_DTYPE_F16, halves, 65536, 2);
    assert_int_equal(mr_tensor_read_f32(&t, 0, 65536, floats), 0);
    for (unsigned i = 0; i < 65536; i++) {
        unsigned exponent = i >> 10 & 31, fraction = i & 1023;
        if (exponent == 31 && fraction) {
            assert_true(isnan(floats[i]));
            continue;
        }
        double magnitude = exponent == 31  ? (double)INFINITY
                           : exponent == 0 ? ldexp(fraction, -24)
                                           : ldexp(1024 + fraction, (int)exponent - 25);
        float expected = (float)(i >> 15 ? -magnitude : magnitude);
        assert_int_equal(bits_of(floats[i]), bits_of(expected));
    }
}

static void converts_every_bfloat_exactly(void **state)
{
    (void)state;
    static uint16_t values[65536];
    static float floats[65536];
    for (unsigned i = 0; i < 65536; i++)
        values[i] = (uint16_t)i;
    struct mr_tensor t = view(MR_DTYPE_BF16, values, 65536, 2);
    assert_int_equal(mr_tensor_read_f32(&t, 0, 65536, floats), 0);
    for (unsigned i = 0; i < 65536; i++)
        assert_int_equal(bits_of(floats[i]), i << 16);
}

// What is infinite or no number was so before and does not end the narrowing.
static void narrows_infinities_and_nans(void **state)
{
    (void)state;
    const float in[] = {NAN, -NAN, INFINITY, -INFINITY, 1};
    for (int half = 0; half < 2; half++) {
        enum mr_dtype dtype = half ? MR_DTYPE_F16 : MR_DTYPE_BF16;
        uint16_t out[5];
        float back[5];
        assert_int_equal(mr_narrow(dtype, in, 5, out), 5);
        struct mr_tensor t = view(dtype, out, 5, sizeof *out);
        assert_int_equal(mr_tensor_read_f32(&t, 0, 5, back), 0);
        for (int i = 0; i < 2; i++)
            assert_true(isnan(back[i]) && !signbit(back[i]) == !signbit(in[i]));
        assert_memory_equal(back + 2, in + 2, 3 * sizeof *in);
    }
}

static void reads_ranges_at_any_alignment(void **state)
{
    (void)state;
    const float expected[4] = {1.5F, -2.0F, 0.0F, 1e-40F};
    unsigned char bytes[1 + sizeof expected];
    memcpy(bytes + 1, expected, sizeof expected);
    struct mr_tensor t = view(MR_DTYPE_F32, bytes + 1, 4, 4);
    float got[3];
    assert_int_equal(mr_tensor_read_f32(&t, 1, 3, got), 0);
    assert_memory_equal(got, expected + 1, sizeof got);
    assert_int_equal(mr_tensor_read_f32(&t, 4, 0, NULL), 0);
}

static void refuses_reads_outside_a_tensor_or_of_another_type(void **state)
{
    (void)state;
    const int64_t data[2] = {-1, INT64_MAX};
    struct mr_tensor t = view(MR_DTYPE_I64, data, 2, 8);
    float f;
    int64_t i[2];
    assert_int_equal(mr_tensor_copy(&t, 0, 2, i), 0);
    assert_memory_equal(i, data, sizeof data);
    assert_int_equal(mr_tensor_copy(&t, 1, 2, i), MR_ERR_USAGE);
    assert_int_equal(mr_tensor_copy(&t, 3, 0, i), MR_ERR_USAGE);
    assert_int_equal(mr_tensor_copy(&t, 1, SIZE_MAX, i), MR_ERR_USAGE);
    assert_int_equal(mr_tensor_read_f32(&t, 0, 1, &f), MR_ERR_USAGE);
    const float floats[2] = {1, 2};
    t = view(MR_DTYPE_F32, floats, 2, 4);
    assert_ptr_equal(mr_tensor_view_f32(&t, 1, 1), floats + 1);
    assert_null(mr_tensor_view_f32(&t, 1, 2));
}

// ---- hostile files ----

static void refuse_file(const char *path, int status, const char *words)
{
    struct mr_weights file;
    struct mr_error err = {0};
    assert_refused(mr_weights_open(&file, false, path, &err), status, &err, words);
    assert_null(file.tensors.at); // there is nothing to close
    if (!strstr(err.text, path))
        fail_msg("\"%s\" does not name %s", err.text, path);
}

static void refuse(const char *header, size_t data_size, int status, const char *words)
{
    refuse_file(files_write_safetensors("a", header, data_size), status, words);
}

// One tensor "t" of dtype F32 unless given otherwise.
#define ENTRY(shape, offsets)                                                                      \
    "{\"t\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void refuses_missing_file(void **state)
{
    (void)state;
    refuse_file(files_path("none"), MR_ERR_IO, "No such file");
}

static void refuses_directory_for_file(void **state)
{
    (void)state;
    refuse_file(files_dir, MR_ERR_IO, "is a directory");
}

static void refuses_pipe_for_file(void **state)
{
    (void)state;
    const char *path = files_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse_file(path, MR_ERR_IO, "not a regular file");
}

static void refuses_empty_file(void **state)
{
    (void)state;
    refuse_file(files_write("a", "", 0), MR_ERR_FORMAT, "too few");
}

static void refuses_truncated_header_length(void **state)
{
    (void)state;
    refuse_file(files_write("a", "\2\0\0\0\0\0\0", 7), MR_ERR_FORMAT, "too few");
}

static void refuses_truncated_header(void **state)
{
    (void)state;
    refuse_file(files_write("a", "\3\0\0\0\0\0\0\0{}", 10), MR_ERR_FORMAT, "header of 3 bytes");
}

static void refuses_header_length_beyond_file(void **state)
{
    (void)state;
    refuse_file(files_write("a", "\377\377\377\377\377\377\377\377{}", 10), MR_ERR_FORMAT,
                "does not fit");
    refuse_file(files_write("a", "\377\377\377\377\377\377\377\177{}", 10), MR_ERR_FORMAT,
                "does not fit");
}

static void refuses_empty_header(void **state)
{
    (void)state;
    refuse("", 0, MR_ERR_FORMAT, "not valid JSON");
}

static void refuses_header_that_is_no_object(void **state)
{
    (void)state;
    refuse("[1]", 0, MR_ERR_FORMAT, "an array where an object");
    refuse("7", 0, MR_ERR_FORMAT, "an integer where an object");
}

static void refuses_invalid_json(void **state)
{
    (void)state;
    refuse("{\"t\":", 0, MR_ERR_FORMAT, "not valid JSON");
    refuse("{} x", 0, MR_ERR_FORMAT, "not valid JSON");
}

static void refuses_invalid_utf8_in_json(void **state)
{
    (void)state;
    refuse("{\"\xff\":{}}", 0, MR_ERR_FORMAT, "not valid JSON");
    refuse("{\"\xed\xa0\x80\":{}}", 0, MR_ERR_FORMAT, "not valid JSON");
}

static void refuses_nul_in_name(void **state)
{
    (void)state;
    refuse("{\"t\\u0000\":{}}", 0, MR_ERR_FORMAT, "has the character");
}

static void refuses_deep_nesting(void **state)
{
    (void)state;
    static char header[200001];
    memset(header, '[', sizeof header - 1);
    memcpy(header, "{\"t\":", 5);
    refuse(header, 0, MR_ERR_FORMAT, "not valid JSON");
}

static void refuses_duplicate_tensor(void **state)
{
    (void)state;
    refuse("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
           "\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
           2, MR_ERR_FORMAT, "duplicate");
}

static void refuses_duplicate_key_in_entry(void **state)
{
    (void)state;
    refuse("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
           MR_ERR_FORMAT, "duplicate");
}

static void refuses_entry_that_is_no_object(void **state)
{
    (void)state;
    refuse("{\"t\":[0,4]}", 4, MR_ERR_FORMAT, "tensor t: its header entry is an array");
}

static void refuses_bad_metadata(void **state)
{
    (void)state;
    refuse("{\"__metadata__\":[]}", 0, MR_ERR_FORMAT, "__metadata__");
    refuse("{\"__metadata__\":{\"k\":1}}", 0, MR_ERR_FORMAT, "metadata \"k\" is an integer");
}

static void refuses_unknown_dtype(void **state)
{
    (void)state;
    refuse("{\"t\":{\"dtype\":\"Q3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, MR_ERR_UNSUPPORTED,
           "unknown dtype \"Q3\"");
}

static void refuses_missing_or_malformed_fields(void **state)
{
    (void)state;
    refuse("{\"t\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, MR_ERR_FORMAT,
           "\"dtype\" is missing");
    refuse("{\"t\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, MR_ERR_FORMAT,
           "\"dtype\" is an integer");
    refuse("{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, MR_ERR_FORMAT, "\"shape\"");
    refuse("{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, MR_ERR_FORMAT, "\"data_offsets\"");
    refuse(ENTRY("1", "[0,4]"), 4, MR_ERR_FORMAT, "\"shape\" is an integer");
    refuse(ENTRY("[1.0]", "[0,4]"), 4, MR_ERR_FORMAT, "dimension 0");
    refuse(ENTRY("[-1]", "[0,4]"), 4, MR_ERR_FORMAT, "dimension 0");
    refuse(ENTRY("[1]", "[0]"), 4, MR_ERR_FORMAT, "pair");
    refuse(ENTRY("[1]", "[0,4,4]"), 4, MR_ERR_FORMAT, "pair");
    refuse(ENTRY("[1]", "[0,\"4\"]"), 4, MR_ERR_FORMAT, "pair");
    refuse(ENTRY("[1]", "[null,4]"), 4, MR_ERR_FORMAT, "pair");
}

static void refuses_too_many_dimensions(void **state)
{
    (void)state;
    refuse(ENTRY("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, MR_ERR_UNSUPPORTED, "9 dimensions");
}

static void refuses_shape_overflow(void **state)
{
    (void)state;
    refuse(ENTRY("[4294967296,4294967296]", "[0,0]"), 0, MR_ERR_FORMAT, "overflows");
    refuse(ENTRY("[4294967296,1073741824]", "[0,0]"), 0, MR_ERR_FORMAT, "do not match");
    refuse(ENTRY("[9223372036854775807,2,1]", "[0,0]"), 0, MR_ERR_FORMAT, "do not match");
}

static void refuses_number_beyond_64_bits(void **state)
{
    (void)state;
    refuse(ENTRY("[9223372036854775808]", "[0,0]"), 0, MR_ERR_FORMAT, "not valid JSON");
    refuse(ENTRY("[1]", "[18446744073709551615,3]"), 4, MR_ERR_FORMAT, "not valid JSON");
}

static void refuses_shape_that_does_not_match_size(void **state)
{
    (void)state;
    refuse(ENTRY("[2]", "[0,4]"), 4, MR_ERR_FORMAT, "4 bytes do not match 2 elements of 4 bytes");
    refuse(ENTRY("[]", "[0,8]"), 8, MR_ERR_FORMAT, "do not match");
    refuse(ENTRY("[0]", "[0,4]"), 4, MR_ERR_FORMAT, "do not match");
}

static void refuses_offsets_out_of_file(void **state)
{
    (void)state;
    refuse(ENTRY("[1]", "[0,4]"), 3, MR_ERR_FORMAT, "truncated?");
    refuse(ENTRY("[1]", "[9223372036854775803,9223372036854775807]"), 4, MR_ERR_FORMAT,
           "not inside");
}

static void refuses_negative_or_reversed_offsets(void **state)
{
    (void)state;
    refuse(ENTRY("[1]", "[-4,0]"), 4, MR_ERR_FORMAT, "not inside");
    refuse(ENTRY("[1]", "[4,0]"), 4, MR_ERR_FORMAT, "not inside");
}

static void refuses_overlapping_tensors(void **state)
{
    (void)state;
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
           6, MR_ERR_FORMAT, "tensor b overlaps");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
           4, MR_ERR_FORMAT, "overlaps");
}

static void refuses_bytes_of_no_tensor(void **state)
{
    (void)state;
    refuse(ENTRY("[1]", "[1,5]"), 5, MR_ERR_FORMAT, "belong to no tensor");
    refuse(ENTRY("[1]", "[0,4]"), 5, MR_ERR_FORMAT, "1 bytes at its end");
    refuse("{}", 1, MR_ERR_FORMAT, "1 bytes at its end");
}

static void shows_hostile_names_on_one_printable_line(void **state)
{
    (void)state;
    refuse("{\"\\u001b[2J\\n\\u009b\\u007f\":1}", 0, MR_ERR_FORMAT, "?[2J?");
    static char header[20000];
    memset(header, 'x', sizeof header - 1);
    memcpy(header, "{\"", 2);
    memcpy(header + sizeof header - 5, "\":1}", 4);
    refuse(header, 0, MR_ERR_FORMAT, "xxx...: its header entry");
}

// No prefix of a good file and no byte changed in its header may crash us; a shortened file is
// always refused.
static void survives_truncation_and_damage_anywhere(void **state)
{
    (void)state;
    const char *path =
        files_write_safetensors("good",
                                "{\"__metadata__\":{\"f\":\"pt\"},"
                                "\"a\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
                                "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                                12);
    size_t size;
    char *file = files_read(path, &size);
    struct mr_weights st;
    struct mr_error err = {0};
    for (size_t n = 0; n < size; n++) {
        assert_int_equal(mr_weights_open(&st, false, files_write("a", file, n), &err),
                         MR_ERR_FORMAT);
        assert_null(st.tensors.at);
    }
    static const char replacements[] = "\0\1\"9-.,]}{ \x80\xff";
    for (size_t at = 0; at < size - 12; at++) {
        for (size_t i = 0; i < sizeof replacements - 1; i++) {
            char saved = file[at];
            file[at] = replacements[i];
            if (mr_weights_open(&st, false, files_write("a", file, size), &err) == 0) {
                float f[4];
                for (size_t t = 0; t < st.tensors.count; t++) {
                    const struct mr_tensor *tensor = &st.tensors.at[t];
                    assert_true(tensor->count <= 12);
                    (void)mr_tensor_read_f32(tensor, 0, tensor->count < 4 ? tensor->count : 4, f);
                }
                mr_weights_close(&st);
            }
            file[at] = saved;
        }
    }
    free(file);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_tensors_in_order_of_name),
        TEST(data_may_be_in_another_order_than_the_header),
        TEST(reads_a_file_without_tensors),
        TEST(converts_every_half_exactly),
        TEST(converts_every_bfloat_exactly),
        TEST(narrows_infinities_and_nans),
        TEST(reads_ranges_at_any_alignment),
        TEST(refuses_reads_outside_a_tensor_or_of_another_type),
        TEST(refuses_missing_file),
        TEST(refuses_directory_for_file),
        TEST(refuses_pipe_for_file),
        TEST(refuses_empty_file),
        TEST(refuses_truncated_header_length),
        TEST(refuses_truncated_header),
        TEST(refuses_header_length_beyond_file),
        TEST(refuses_empty_header),
        TEST(refuses_header_that_is_no_object),
        TEST(refuses_invalid_json),
        TEST(refuses_invalid_utf8_in_json),
        TEST(refuses_nul_in_name),
        TEST(refuses_deep_nesting),
        TEST(refuses_duplicate_tensor),
        TEST(refuses_duplicate_key_in_entry),
        TEST(refuses_entry_that_is_no_object),
        TEST(refuses_bad_metadata),
        TEST(refuses_unknown_dtype),
        TEST(refuses_missing_or_malformed_fields),
        TEST(refuses_too_many_dimensions),
        TEST(refuses_shape_overflow),
        TEST(refuses_number_beyond_64_bits),
        TEST(refuses_shape_that_does_not_match_size),
        TEST(refuses_offsets_out_of_file),
        TEST(refuses_negative_or_reversed_offsets),
        TEST(refuses_overlapping_tensors),
        TEST(refuses_bytes_of_no_tensor),
        TEST(shows_hostile_names_on_one_printable_line),
        TEST(survives_truncation_and_damage_anywhere),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
