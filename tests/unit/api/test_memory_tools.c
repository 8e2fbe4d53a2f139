// SPDX-License-Identifier: Apache-2.0
// What commands use beside the library's calls, where memory runs out (memory_calls.h): data in
// HDF5 and its texts, the settings of a training, a micro-batch whose state is not in files, a
// timeline, and a template.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "config/read.h"
#include "data/documents.h"
#include "data/examples.h"
#include "text/turns.h"
#include "trace/run.h"
#include "train/trial.h"
#include "unit/api/memory_calls.h"

enum { LENGTH = 8, ROWS = 20, VOCAB = 96 };

// Rows of windows, or of texts with two labels.
static int write_rows(struct mr_examples_writer *w, bool labelled, struct mr_error *err)
{
    static const int32_t ids[LENGTH + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, types[LENGTH] = {0};
    const struct mr_window window = {0, LENGTH, 0};
    int rc = 0;
    for (int i = 0; i < ROWS && rc == 0; i++)
        rc = labelled ? mr_examples_add_text(w, ids, types, 1 + i % LENGTH, 0, i % 2, err)
                      : mr_examples_add(w, ids, &window, 0, err);
    return rc;
}

static int write_data(bool labelled, struct mr_error *err)
{
    struct mr_examples_writer w;
    struct mr_labels labels = {0};
    const struct mr_examples_notes notes = {7, VOCAB, 0, labelled ? &labels : NULL};
    int rc = labelled ? mr_labels_list(&labels, "no,yes", err) : 0;
    if (rc == 0)
        rc = mr_examples_create(&w, out, LENGTH, err);
    if (rc == 0)
        rc = mr_examples_end(&w, &notes, write_rows(&w, labelled, err), err);
    mr_labels_free(&labels);
    return rc;
}

static int data(bool labelled, struct mr_error *err)
{
    const char *const files[] = {out};
    struct mr_examples e;
    int32_t tokens[LENGTH], others[LENGTH];
    int rc = write_data(labelled, err);
    if (rc == 0)
        rc = labelled ? mr_examples_open_labelled(&e, files, 1, VOCAB, 2, err)
                      : mr_examples_open_all(&e, files, 1, VOCAB, err);
    if (rc < 0)
        return rc;
    assert_int_equal(e.count, ROWS);
    rc = mr_examples_read(&e, ROWS - 1, tokens, others, err);
    mr_examples_close(&e);
    return rc;
}

static int data_of_windows(struct mr_error *err)
{
    return data(false, err);
}

static int data_of_texts(struct mr_error *err)
{
    return data(true, err);
}

// Records of a file, as tokens.
static int documents(struct mr_error *err)
{
    static const struct mr_data_fields fields = {
        .text = "text", .completion = "completion", .prompt = "prompt"};
    struct mr_records r = {0};
    struct mr_documents d;
    struct mr_record record;
    int more, rc = mr_source_open(&r.source, "examples/train/instructions.jsonl", err);
    if (rc < 0)
        return rc;
    rc = mr_records_open(&r, MR_DATA_AUTO, &fields, "", 0, err);
    if (rc == 0) {
        rc = mr_documents_open(&d, "models/demo", err);
        while (rc == 0 && (more = mr_records_next(&r, &record, err)) != 0)
            rc = more < 0 ? more : mr_documents_add(&d, &record, err);
        if (rc == 0)
            rc = mr_documents_encode(&d, err);
        mr_documents_close(&d);
    }
    mr_records_close(&r);
    return rc;
}

static int settings(struct mr_error *err)
{
    static const char *const set[] = {"runconfig.max_steps=3"};
    struct mr_training t;
    int rc = mr_training_load(&t, MR_TRAIN, "tests/e2e/train/config/first.yaml", set, 1, err);
    mr_training_free(&t);
    return rc;
}

static struct mr_config config; // of the model

static int setup(void **unused)
{
    struct mr_checkpoint *c;
    struct mr_error err = {0};
    if (memory_setup(unused) != 0 || mr_checkpoint_open(&c, model, MR_DECODER, NULL, &err) < 0)
        return -1;
    config = *mr_checkpoint_config(c);
    mr_checkpoint_close(c);
    return 0;
}

static int trial(const char *weights, struct mr_error *err)
{
    static const int lengths[] = {9, 5};
    struct mr_trial t;
    const struct mr_trial_options o = {.weights = weights,
                                       .config = &config,
                                       .device = "model:tinyt",
                                       .lengths = lengths,
                                       .n_sequences = 2};
    int rc = mr_trial_open(&t, &o, err);
    if (rc == 0)
        rc = mr_trial_run(&t, err);
    mr_trial_close(&t);
    return rc;
}

static int state_in_memory(struct mr_error *err)
{
    return trial(model, err);
}

static int mirror_of_a_state(struct mr_error *err)
{
    return trial(NULL, err);
}

static int timeline(struct mr_error *err)
{
    const struct mr_trace_options o = {.device = "sim:tiny", .tokens = 1, .max_slices = 1000};
    struct mr_trace t;
    struct mr_model *m;
    int rc = mr_model_load(&m, packed, NULL, err);
    if (rc < 0)
        return rc;
    rc = mr_trace_run(&t, m, &o, err);
    mr_trace_free(&t);
    mr_model_close(m);
    return rc;
}

static int template(struct mr_error *err)
{
    struct mr_turns turns;
    int rc = mr_turns_open(&turns, "You: {} Me:", err);
    mr_turns_close(&turns);
    return rc;
}

static struct memory_call calls[] = {
    CALL(data_of_windows, 1),  CALL(data_of_texts, 1),      CALL(documents, 7), CALL(settings, 7),
    CALL(state_in_memory, 23), CALL(mirror_of_a_state, 23), CALL(timeline, 23), CALL(template, 1),
};

int main(void)
{
    return memory_run("memory_tools", setup, calls, sizeof calls / sizeof *calls);
}
