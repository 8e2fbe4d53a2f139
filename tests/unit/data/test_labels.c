// SPDX-License-Identifier: Apache-2.0
// Texts with labels: names of labels, files that are written and read back, and those that are
// refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hdf5/serial/hdf5.h>

#include "cli/data/train_data.h"
#include "common/file.h"
#include "data/examples.h"
#include "unit/bert_model.h"
#include "unit/check.h"
#include "unit/data/checksummed.h"
#include "unit/files.h"

enum { LENGTH = 5, VOCAB = 40, ROWS = 7000 };
static char path[512];

static int find(struct mr_labels *l, const char *name, struct mr_error *err)
{
    return mr_labels_find(l, name, strlen(name), err);
}

static void labels_are_sorted(void **unused)
{
    (void)unused;
    static const struct {
        const char *names[5], *sorted[5];
        int32_t to[5];
    } rows[] = {
        {{"neutral", "yes", "contra"}, {"contra", "neutral", "yes"}, {1, 2, 0}},
        {{"10", "9", "0", "1"}, {"0", "1", "9", "10"}, {3, 2, 0, 1}},
        {{"10", "9", "01", "a"}, {"01", "10", "9", "a"}, {1, 2, 0, 3}},
        {{"9", "1234567890"}, {"1234567890", "9"}, {1, 0}}, // too long for a number
        {{"9", "10a"}, {"10a", "9"}, {1, 0}},
        {{"b", "c", "d", "e", "a"}, {"a", "b", "c", "d", "e"}, {1, 2, 3, 4, 0}},
    };
    struct mr_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_labels l = {0};
        int32_t to[5];
        int n = 0;
        for (; n < 5 && rows[i].names[n]; n++)
            assert_int_equal(find(&l, rows[i].names[n], &err), n);
        assert_int_equal(find(&l, rows[i].names[0], &err), 0);
        mr_labels_sort(&l, to);
        for (int k = 0; k < n; k++) {
            assert_string_equal(l.names[k], rows[i].sorted[k]);
            assert_int_equal(to[k], rows[i].to[k]);
        }
        mr_labels_free(&l);
    }
}

static void labels_may_be_given(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_labels l = {0};
    check(mr_labels_list(&l, "no,yes,2", &err), &err);
    assert_int_equal(find(&l, "yes", &err), 1);
    assert_int_equal(find(&l, "1", &err), 1);
    assert_int_equal(find(&l, "2", &err), 2); // as a name, and as a number
    assert_refused(find(&l, "3", &err), MR_ERR_FORMAT, &err, "label '3' is none of the 3: no, yes");
    assert_refused(find(&l, "01", &err), MR_ERR_FORMAT, &err, "label '01' is none of");
    assert_refused(find(&l, "", &err), MR_ERR_FORMAT, &err, "label '' is none of");
    mr_labels_free(&l);
    assert_refused(mr_labels_list(&l, "a,,b", &err), MR_ERR_FORMAT, &err,
                   "label '' is not of 1 to");
    mr_labels_free(&l);
    assert_refused(mr_labels_list(&l, "a,b,a", &err), MR_ERR_FORMAT, &err, "'a' is there twice");
    mr_labels_free(&l);
    char name[80];
    memset(name, 'x', sizeof name);
    assert_refused(mr_labels_find(&l, name, 64, &err), MR_ERR_FORMAT, &err, "1 to 63 bytes");
    assert_refused(mr_labels_find(&l, "a\nb", 3, &err), MR_ERR_FORMAT, &err, "control characters");
    int rc = 0;
    for (int i = 0; i < 5000 && rc >= 0; i++) {
        (void)snprintf(name, sizeof name, "%d.5", i);
        rc = find(&l, name, &err);
    }
    assert_refused(rc, MR_ERR_FIT, &err, "more than 4096 labels");
    mr_labels_free(&l);
}

// ---- files --------------------------------------------------------------------------------------

static uint64_t tokenizer = 1; // a hash that no tokenizer has

static int count_lines(const struct mr_file *file)
{
    int n = 0;
    for (size_t i = 0; i < file->size; i++)
        n += file->data[i] == '\n';
    return n;
}

static int count_of(int i)
{
    return 1 + i % LENGTH;
}

// Row i has label "abc"[i * i % 3], which is 1 where i is no multiple of 3.
static void write_file(const char *names, int rows)
{
    struct mr_examples_writer w;
    struct mr_labels l = {0};
    struct mr_error err = {0};
    if (names)
        check(mr_labels_list(&l, names, &err), &err);
    check(mr_examples_create(&w, path, LENGTH, &err), &err);
    for (int i = 0; i < rows; i++) {
        int32_t ids[LENGTH], types[LENGTH];
        for (int k = 0; k < LENGTH; k++) {
            ids[k] = (i * 7 + k * 3) % VOCAB;
            types[k] = k > i % 3;
        }
        int label = find(&l, i % 3 ? "a" : "b", &err);
        check(mr_examples_add_text(&w, ids, types, count_of(i), 0, label, &err), &err);
    }
    const struct mr_examples_notes notes = {tokenizer, VOCAB, 0, &l};
    check(mr_examples_end(&w, &notes, 0, &err), &err);
    mr_labels_free(&l);
}

static int open_it(struct mr_examples *e, int vocab, int types, struct mr_error *err)
{
    const char *const paths[] = {path};
    return mr_examples_open_labelled(e, paths, 1, vocab, types, err);
}

static void refuse(int vocab, int types, int status, const char *words)
{
    struct mr_examples e;
    struct mr_error err = {0};
    int rc = open_it(&e, vocab, types, &err);
    assert_refused(rc, status, &err, words);
}

static void texts_are_read_back(void **unused)
{
    (void)unused;
    struct mr_examples e;
    struct mr_error err = {0};
    int32_t tokens[LENGTH], types[LENGTH];
    uint64_t hash[2];
    for (int given = 0; given < 2; given++) {
        write_file(given ? "z,b,a" : NULL, ROWS);
        check(open_it(&e, VOCAB, 2, &err), &err);
        assert_true(e.count == ROWS && e.targets == ROWS && e.labels.count == 2 + given);
        assert_string_equal(e.labels.names[0], given ? "z" : "a");
        for (int n = 0; n < ROWS; n++) {
            int i = (int)((unsigned)n * 7919U % ROWS);
            check(mr_examples_read(&e, (size_t)i, tokens, types, &err), &err);
            assert_int_equal(e.list[i].count, count_of(i));
            assert_string_equal(e.labels.names[e.list[i].label], i % 3 ? "a" : "b");
            for (int k = 0; k < e.list[i].count; k++) {
                assert_int_equal(tokens[k], (i * 7 + k * 3) % VOCAB);
                assert_int_equal(types[k], k > i % 3);
            }
        }
        hash[given] = e.hash;
        mr_examples_close(&e);
    }
    assert_true(hash[0] != hash[1]); // other numbers of the same labels are other data
}

static void what_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    write_file(NULL, 30);
    refuse(VOCAB - 1, 2, MR_ERR_FORMAT, "an id below 39");
    refuse(VOCAB, 1, MR_ERR_FORMAT, "a type below 1");
    refuse(VOCAB, 0, MR_ERR_FIT, "has texts with labels, which an encoder's classifier learns");
    write_file("a,b", 30);
    char other[sizeof path];
    (void)snprintf(other, sizeof other, "%s", path);
    (void)snprintf(path, sizeof path, "%s", files_path("y.h5"));
    struct mr_examples e;
    struct mr_error err = {0};
    const char *const both[] = {other, path}, *const others[] = {"b,a", "a,b,c"};
    for (int i = 0; i < 2; i++) {
        write_file(others[i], 30);
        assert_refused(mr_examples_open_labelled(&e, both, 2, VOCAB, 2, &err), MR_ERR_FIT, &err,
                       "has other labels than");
    }
    write_file("a,b", 20);
    check(mr_examples_open_labelled(&e, both, 2, VOCAB, 2, &err), &err);
    assert_true(e.count == 50 && e.labels.count == 2);
    mr_examples_close(&e);
    (void)snprintf(path, sizeof path, "%s", other);
}

// A file of other software; what is NULL or 0 is not there.
static void write_foreign(const int32_t *data, const int32_t *labels, int n_labels,
                          const char *names, size_t bytes, int n_names)
{
    const hsize_t shape[] = {2, 3, 3}, list[] = {(hsize_t)n_labels}, called[] = {(hsize_t)n_names};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, shape, NULL);
    hid_t d = H5Dcreate2(file, "data", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    assert_true(H5Dclose(d) >= 0 && H5Sclose(space) >= 0);
    if (labels) {
        space = H5Screate_simple(1, list, NULL);
        d = H5Dcreate2(file, "labels", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels) >= 0);
        assert_true(H5Dclose(d) >= 0 && H5Sclose(space) >= 0);
    }
    if (names) {
        hid_t type = H5Tcopy(H5T_C_S1);
        space = H5Screate_simple(1, called, NULL);
        assert_true(H5Tset_size(type, bytes) >= 0);
        hid_t a = H5Acreate2(file, "label_names", type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(a, type, names) >= 0);
        assert_true(H5Aclose(a) >= 0 && H5Sclose(space) >= 0 && H5Tclose(type) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
}

static void other_files_are_read_or_refused(void **unused)
{
    (void)unused;
    int32_t data[2][3][3] = {{{4, 5, 6}, {1, 1, 0}, {0, 1, 9}}, {{1, 2, 3}, {1, 1, 1}, {0, 0, 1}}},
            labels[3] = {1, 0, 0};
    char names[3][MR_LABEL] = {"no", "yes", "no"};
    struct mr_examples e;
    struct mr_error err = {0};
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 2);
    check(open_it(&e, VOCAB, 2, &err), &err);
    assert_true(e.count == 2 && e.list[0].count == 2 && e.list[0].label == 1 && e.targets == 2);
    mr_examples_close(&e);
    write_foreign(&data[0][0][0], NULL, 0, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "has no 'labels', which a classifier learns");
    write_foreign(&data[0][0][0], labels, 2, NULL, 0, 0);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "has no 'label_names'");
    write_foreign(&data[0][0][0], labels, 3, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "'labels' is not a whole number for each row");
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL / 2, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "'label_names' is no list");
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 3);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "label 'no' is there twice");
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 1);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "row 0: label 1 is none of its 1");
    labels[1] = -1;
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "row 1: label -1 is none");
    labels[1] = 0;
    data[1][1][0] = 0; // a text has no holes
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "row 1: token 0 has mask 0");
    data[1][1][0] = 1;
    data[1][0][2] = -1;
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "row 1: token 2 has mask 1, type 1 and id -1");
    data[1][0][2] = 3;
    data[1][2][2] = -1;
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "row 1: token 2 has mask 1, type -1 and id 3");
    data[1][2][2] = 1;
    memset(names[1], 'x', MR_LABEL); // does not end
    write_foreign(&data[0][0][0], labels, 2, names[0], MR_LABEL, 2);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "1 to 63 bytes");
}

// Names that are none, and numbers that are none, of rows of two numbers, or of no rows.
static void labels_of_other_types_are_refused(void **unused)
{
    (void)unused;
    static const int32_t data[2][3][3] = {{{4, 5, 6}, {1, 1, 0}, {0, 1, 9}},
                                          {{1, 2, 3}, {1, 1, 1}, {0, 0, 1}}};
    static const char name[MR_LABEL] = "no";
    const hsize_t wide[] = {2, 1}, two[] = {2};
    hid_t longer = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(longer, H5T_VARIABLE) >= 0);
    for (int i = 0; i < 3; i++) {
        write_foreign(&data[0][0][0], &data[0][1][1], 2, NULL, 0, 0);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t space = i < 2 ? H5Screate_simple(1, two, NULL) : H5Screate(H5S_NULL);
        hid_t a = H5Acreate2(file, "label_names", i ? longer : H5T_STD_I32LE, space, H5P_DEFAULT,
                             H5P_DEFAULT);
        assert_true(H5Aclose(a) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
        refuse(VOCAB, 2, MR_ERR_FORMAT, "'label_names' is no list of 1 to 4096 strings");
    }
    assert_true(H5Tclose(longer) >= 0);
    for (int i = 0; i < 2; i++) {
        write_foreign(&data[0][0][0], NULL, 0, name, MR_LABEL, 1);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t space = H5Screate_simple(1 + i, i ? wide : two, NULL);
        hid_t d = H5Dcreate2(file, "labels", i ? H5T_STD_I32LE : H5T_IEEE_F32LE, space, H5P_DEFAULT,
                             H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dclose(d) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
        refuse(VOCAB, 2, MR_ERR_FORMAT, "'labels' is not a whole number for each row");
    }
}

// `labels` that are no data set, and some with a byte that their checksum does not fit.
static void damaged_labels_are_refused(void **unused)
{
    (void)unused;
    const int32_t data[2][3][3] = {{{4, 5, 6}, {1, 1, 0}, {0, 1, 9}},
                                   {{1, 2, 3}, {1, 1, 1}, {0, 0, 1}}},
                  labels[] = {1, 0};
    const char names[2][MR_LABEL] = {"no", "yes"};
    const hsize_t two[] = {2};
    write_foreign(&data[0][0][0], NULL, 0, names[0], MR_LABEL, 2);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "labels", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "'labels' cannot be read");
    write_foreign(&data[0][0][0], NULL, 0, names[0], MR_LABEL, 2);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    long at = write_checksummed(file, "labels", 1, two, labels);
    struct mr_examples e;
    struct mr_error err = {0};
    check(open_it(&e, VOCAB, 2, &err), &err);
    mr_examples_close(&e);
    damage(path, at);
    refuse(VOCAB, 2, MR_ERR_FORMAT, "'labels' cannot be read: it is damaged or cut off");
}

static void damaged_files_are_refused(void **unused)
{
    (void)unused;
    write_file(NULL, 3);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    for (long at = 0; at < size; at += 1 + at % 13) {
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        int byte = fgetc(f);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(fseek(f, at, SEEK_SET), 0);
            assert_true(fputc(again ? byte : byte ^ 1 << at % 8, f) != EOF && fflush(f) == 0);
            if (!again)
                refuse(VOCAB, 2, MR_ERR_FORMAT, "; make it again with millrace data");
        }
    }
    assert_int_equal(fclose(f), 0);
}

// ---- micro-batches ------------------------------------------------------------------------------

// Types and labels follow their texts through an epoch's order.
static void batches_have_types_and_labels(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct bert_file w = {0};
    struct mr_encoder *encoder = NULL;
    struct train_data d;
    struct train_batch b;
    struct mr_file vocab;
    char config[400], dir[512];
    const char *const paths[] = {path};
    int seen[12] = {0};
    check(mr_file_map(&vocab, "tests/fixtures/wordpiece/vocab.txt", &err), &err);
    (void)snprintf(dir, sizeof dir, "%s", files_dir);
    (void)snprintf(config, sizeof config,
                   "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\",\"hidden_size\":20,"
                   "\"num_attention_heads\":4,\"intermediate_size\":36,\"num_hidden_layers\":1,"
                   "\"vocab_size\":%d,\"max_position_embeddings\":16}",
                   count_lines(&vocab));
    assert_int_equal(bert_file(dir, "vocab.txt", vocab.data, vocab.size), 0);
    assert_int_equal(bert_write(&w, dir, config), 0);
    mr_file_unmap(&vocab);
    check(mr_encoder_open(&encoder, dir, NULL, NULL, &err), &err);
    assert_null(mr_encoder_label(encoder, -1));
    assert_string_equal(mr_encoder_label(encoder, 1), "LABEL_1"); // as transformers calls it
    assert_null(mr_encoder_label(encoder, 2));
    write_file(NULL, 12);
    assert_refused(train_data_open_texts(&d, encoder, 2, paths, 1, 0.25, 5, &err), MR_ERR_FIT, &err,
                   "another tokenizer");
    train_data_free(&d);
    tokenizer = 0;
    write_file(NULL, 12);
    check(train_data_open_texts(&d, encoder, 2, paths, 1, 0.25, 5, &err), &err);
    assert_true(d.learnt == 9 && d.held_out == 3 && !d.full);
    check(train_batch_new(&b, 3, LENGTH, true, &err), &err);
    assert_true(!b.batch.targets && b.batch.types && b.batch.labels);
    for (uint64_t n = 0; n < 9; n += 3) {
        check(train_batch_learn(&b, &d, n, &err), &err);
        const int32_t *ids = b.batch.tokens, *types = b.batch.types;
        for (int k = 0; k < b.batch.sequences; k++) {
            int i = 0;
            while (i < 12 && (i * 7 % VOCAB != ids[0] || count_of(i) != b.batch.lengths[k]))
                i++;
            assert_true(i < 9);
            seen[i]++;
            assert_int_equal(b.batch.labels[k], i % 3 ? 0 : 1);
            for (int t = 0; t < b.batch.lengths[k]; t++)
                assert_int_equal(types[t], t > i % 3);
            ids += b.batch.lengths[k];
            types += b.batch.lengths[k];
        }
    }
    for (int i = 0; i < 9; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(train_batch_hold(&b, &d, 0, 3, &err), 3);
    assert_true(b.batch.labels[0] == 1 && b.batch.labels[1] == 0);
    train_batch_free(&b);
    train_data_free(&d);
    mr_encoder_close(encoder);
}

static int setup(void **state)
{
    int rc = files_setup(state);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    (void)snprintf(path, sizeof path, "%s", files_path("x.h5"));
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_sorted),
        cmocka_unit_test(labels_may_be_given),
        cmocka_unit_test(texts_are_read_back),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(other_files_are_read_or_refused),
        cmocka_unit_test(labels_of_other_types_are_refused),
        cmocka_unit_test(damaged_labels_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(batches_have_types_and_labels),
    };
    return cmocka_run_group_tests_name("labels", tests, setup, files_teardown);
}
