// SPDX-License-Identifier: Apache-2.0
// `millrace data`: texts, JSON lines or comma-separated values become windows of tokens in one
// file, which `millrace train` and Cerebras' Model Zoo read.
#include <stdlib.h>

#include "cli/data/args.h"
#include "cli/base/shared_options.h"
#include "cli/base/status_line.h"
#include "cli/data/train_data.h"
#include "common/clock.h"
#include "common/error.h"
#include "data/documents.h"

struct run {
    const struct data_args *a;
    struct mr_cut cut;
    struct mr_records records;
    struct mr_documents documents;
    struct mr_examples_writer writer;
    struct mr_window *windows; // of a document
    size_t capacity;
    int32_t pad, vocab;
    uint64_t read, windows_written, tokens, learnt; // documents; of all windows
    struct cli_line line;
    double start;
};

// ---- documents to windows -----------------------------------------------------------------------

// A tokenizer may have added tokens that its model lacks.
static int check_ids(const struct run *r, size_t document, struct mr_error *err)
{
    const struct mr_document *d = &r->documents.documents[document];
    for (size_t i = 0; i < d->count; i++)
        if (d->ids[i] >= r->vocab)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%.300s: document %llu: token %d is outside the model's vocabulary of "
                           "%d; leave it out of the text",
                           r->a->input, (unsigned long long)(r->read + document + 1), d->ids[i],
                           r->vocab);
    return 0;
}

static int write_document(struct run *r, const struct mr_document *d, struct mr_error *err)
{
    size_t n = mr_windows_cut(&r->cut, 0, d->learnt, d->count, NULL);
    if (n > r->capacity) {
        struct mr_window *more = realloc(r->windows, 2 * n * sizeof *more);
        if (!more)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu windows", n);
        r->windows = more;
        r->capacity = 2 * n;
    }
    (void)mr_windows_cut(&r->cut, 0, d->learnt, d->count, r->windows);
    for (size_t i = 0; i < n; i++) {
        const struct mr_window *w = &r->windows[i];
        int rc = mr_examples_add(&r->writer, d->ids, w, r->pad, err);
        if (rc < 0)
            return rc;
        r->tokens += (uint64_t)w->count;
        r->learnt += (uint64_t)(w->count - w->skip);
    }
    r->windows_written += n;
    return 0;
}

static int write_batch(struct run *r, struct mr_error *err)
{
    int rc = mr_documents_encode(&r->documents, err);
    for (size_t i = 0; i < r->documents.count && rc == 0; i++) {
        rc = check_ids(r, i, err);
        if (rc == 0)
            rc = write_document(r, &r->documents.documents[i], err);
    }
    r->read += r->documents.count;
    mr_documents_clear(&r->documents);
    if (rc == 0)
        data_show(&r->line, &r->records.source, "document", r->read, r->tokens, r->start);
    return rc;
}

static int convert(struct run *r, struct mr_error *err)
{
    struct mr_record record;
    int more = 1, rc = 0;
    while (more > 0 && rc == 0 && !cli_interrupted()) {
        more = mr_records_next(&r->records, &record, err);
        rc = more > 0 ? mr_documents_add(&r->documents, &record, err) : more;
        if (rc == 0 && (more == 0 || mr_documents_full(&r->documents)))
            rc = write_batch(r, err);
    }
    cli_line_wipe(&r->line);
    if (rc == 0 && cli_interrupted())
        rc = MR_ERR_INTERRUPTED;
    if (rc == 0 && r->windows_written == 0)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%s: has nothing to learn: %llu documents, none of two tokens", r->a->input,
                     (unsigned long long)r->read);
    return rc;
}

// ---- the command --------------------------------------------------------------------------------

static int print(const struct run *r)
{
    double all = (double)r->windows_written * r->cut.sequence;
    if (r->a->c.json)
        return cli_print_json(
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "file", r->a->output, "documents",
                      (json_int_t)r->read, "windows", (json_int_t)r->windows_written, "sequence",
                      (json_int_t)r->cut.sequence, "overlap", (json_int_t)r->cut.overlap, "tokens",
                      (json_int_t)r->tokens, "learnt", (json_int_t)r->learnt));
    if (!r->a->c.quiet)
        printf(
            "%s: %llu document%s in %llu window%s of %d; %llu tokens, %llu of them learnt; %.1f %% "
            "padding\n",
            r->a->output, (unsigned long long)r->read, r->read == 1 ? "" : "s",
            (unsigned long long)r->windows_written, r->windows_written == 1 ? "" : "s",
            r->cut.sequence, (unsigned long long)r->tokens, (unsigned long long)r->learnt,
            100 * (all - (double)r->tokens) / all);
    return EXIT_OK;
}

static int make(struct run *r, const struct mr_model *model, const char *end, size_t end_size,
                struct mr_error *err)
{
    const struct data_args *a = r->a;
    struct mr_model_info info;
    mr_model_get_info(model, &info);
    const struct mr_examples_notes notes = {mr_vocabulary_hash(model, info.vocab_size),
                                            info.vocab_size, a->overlap, NULL};
    r->vocab = info.vocab_size;
    r->pad = info.eos_token_id >= 0 ? info.eos_token_id : 0;
    int rc = mr_source_open(&r->records.source, a->input, err);
    if (rc < 0)
        return rc;
    rc = mr_records_open(&r->records, (enum mr_data_format)a->format, &a->fields, end, end_size,
                         err);
    if (rc == 0)
        rc = mr_documents_open(&r->documents, a->c.model, err);
    if (rc == 0)
        rc = mr_examples_create(&r->writer, a->output, r->cut.sequence, err);
    if (rc == 0) {
        rc = convert(r, err);
        rc = mr_examples_end(&r->writer, &notes, rc, err);
    }
    if (rc < 0 && cli_interrupted()) // whatever it was that gave up first
        rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted; %s is not written", a->output);
    mr_documents_close(&r->documents);
    mr_records_close(&r->records);
    free(r->windows);
    return rc;
}

static int with_model(const struct data_args *a, const struct mr_model *model)
{
    struct mr_error err = {0};
    struct mr_model_info info;
    char *end = NULL;
    size_t end_size = 0;
    mr_model_get_info(model, &info);
    int rc = train_data_positions(&info, a->c.model, a->positions, &err);
    struct run r = {.a = a,
                    .cut = {a->sequence ? a->sequence : train_data_sequence(&info), a->overlap},
                    .start = mr_seconds()};
    if (rc == 0 && r.cut.sequence > info.n_positions)
        rc = mr_fail(&err, MR_ERR_FIT, "--sequence %d: the model has %d positions", r.cut.sequence,
                     info.n_positions);
    else if (rc == 0 && r.cut.overlap >= r.cut.sequence)
        rc = mr_fail(&err, MR_ERR_USAGE, "--overlap %d: windows have %d tokens; give less",
                     r.cut.overlap, r.cut.sequence);
    else if (rc == 0 && info.eos_token_id >= 0)
        rc = mr_model_decode(model, &info.eos_token_id, 1, &end, &end_size, &err);
    cli_line_open(&r.line, a->c.quiet, false);
    if (rc == 0)
        rc = make(&r, model, end ? end : "", end_size, &err);
    free(end);
    return rc < 0 ? cli_fail(&err) : print(&r);
}

static int run(void *args)
{
    struct data_args *a = args;
    struct mr_model *model;
    cli_catch_hangup();
    if (cli_is_encoder(a->c.model))
        return data_of_labels(a);
    if (a->fields.pair || a->fields.label || a->labels)
        return cli_usage(&cmd_data, "%s is for the texts of an encoder, which %s is not",
                         a->fields.pair    ? "--pair-field"
                         : a->fields.label ? "--label-field"
                                           : "--labels",
                         a->c.model);
    a->c.load.text = a->c.load.describe = true;
    int status = cli_load(&a->c, &model);
    if (status != EXIT_OK)
        return status;
    status = with_model(a, model);
    mr_model_close(model);
    return status;
}

#define ARGS struct data_args
#define FIELD(NAME, MEMBER, DEFAULT, HELP)                                                         \
    CLI_ROW(CLI_TEXT, NAME, "NAME", fields.MEMBER, HELP, .def = DEFAULT)

static const struct cli_option options[] = {
    CLI_MODEL("whose tokenizer it is; the same as the first argument"),
    CLI_ROW(CLI_PATH, "input", "INPUT", input,
            "the same as the second argument; '-' for standard input",
            .missing = "the input is missing"),
    CLI_ROW(CLI_OUTPUT, "output", "FILE", output, "the file to write, HDF5", .letter = 'o',
            .missing = "-o FILE is missing"),
    CLI_ROW(CLI_CHOICE, "from", "F", format,
            "what the input is; auto: by its name; text takes any bytes",
            .choices = "auto|text|jsonl|csv|tsv", .def = "auto"),
    FIELD("text-field", text, "text", "the field or column that is learnt as a whole"),
    FIELD("pair-field", pair, NULL, "of an encoder: the text that belongs to the first one"),
    FIELD("label-field", label, NULL, "of an encoder: the label; without this option 'label'"),
    CLI_ROW(CLI_TEXT, "labels", "A,B", labels,
            "of an encoder: what labels 0, 1, ... are called; without this option the model's "
            "names, or those in the input, sorted"),
    FIELD("prompt-field", prompt, "prompt", "the one in front of a completion, not learnt"),
    FIELD("completion-field", completion, "completion", "the one that is learnt after it"),
    CLI_ROW_NUMBER(CLI_INT, "sequence", "N", sequence, 0, MR_EXAMPLES_LONGEST,
                   "tokens of a window, at most, or of a text with a label; 0: 128, or the model's",
                   .def = "0"),
    CLI_N_POSITIONS(positions),
    CLI_ROW_NUMBER(
        CLI_INT, "overlap", "N", overlap, 0, MR_EXAMPLES_LONGEST,
        "tokens that a window of a long document begins with again, to be read and not learnt",
        .def = "0"),
    CLI_JSON,
    CLI_QUIET("no progress, no result"),
    {0},
};

const struct cli_command cmd_data = {
    .name = "data",
    .summary = "makes training data of texts, JSON lines, CSV or TSV",
    .synopsis = "MODEL INPUT -o FILE [OPTIONS]",
    .about =
        "Tokenises documents and cuts them into windows. A text is cut where documents end "
        "(<|endoftext|>). A line of JSON, or a row of CSV or TSV, is a document: its text, or a "
        "prompt "
        "and a completion, of which the completion alone is learnt. Of an encoder (BERT) it is a "
        "text with a label, or two texts; one that is too long is cut. What zstd has compressed is "
        "read as it is. What is no text by its first bytes is refused, unless --from text takes "
        "it; "
        "several texts are one input as 'cat *.txt | millrace data MODEL -'. FILE appears only "
        "when it is complete, in the place of one that is there; train --data takes it, and so "
        "does Cerebras' Model Zoo. docs/train/data.md describes it.",
    .arguments = "model input",
    .too_many = "several texts are one input as 'cat FILE... | millrace data MODEL - -o FILE'",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace data models/demo models/demo/heldout.txt -o psalms.h5 --sequence 64\n"
                "millrace data models/demo pairs.jsonl.zst -o pairs.h5\n"
                "millrace data MiniLM train.tsv -o train.h5 --text-field sentence --labels no,yes\n"
                "millrace train models/demo --data psalms.h5 -o state --steps 20",
    .run = run,
};
