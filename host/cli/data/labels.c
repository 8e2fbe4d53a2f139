// SPDX-License-Identifier: Apache-2.0
// `millrace data` for an encoder: texts with labels become rows of tokens.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/data/args.h"
#include "common/clock.h"
#include "common/error.h"
#include "data/examples.h"

void data_show(struct cli_line *line, const struct mr_source *s, const char *what, uint64_t read,
               uint64_t tokens, double start)
{
    char text[160];
    double passed = mr_seconds() - start, share = (double)s->taken / (double)s->size;
    int n = snprintf(text, sizeof text, "%llu %s%s, %llu tokens, %.0f tokens/s",
                     (unsigned long long)read, what, read == 1 ? "" : "s",
                     (unsigned long long)tokens, (double)tokens / passed);
    if (s->size > 0 && share > 0)
        (void)snprintf(text + n, sizeof text - (size_t)n, ", %.0f %%, %.0f s left", 100 * share,
                       passed * (1 - share) / share);
    cli_line_show(line, text);
}

struct run {
    const struct data_args *a;
    struct mr_encoder *encoder;
    struct mr_encoder_info info;
    struct mr_records records;
    struct mr_labels labels;
    struct mr_examples_writer writer;
    int sequence;
    uint64_t texts, tokens, cut, empty; // empty: passed over
    struct cli_line line;
    double start;
};

// Those of --labels, or the model's; else whatever the input has.
static int name_labels(struct run *r, struct mr_error *err)
{
    int rc = 0, own = r->info.by_token ? 0 : r->info.n_labels;
    if (r->a->labels)
        return mr_labels_list(&r->labels, r->a->labels, err);
    for (int i = 0; i < own && rc == 0; i++) {
        const char *name = mr_encoder_label(r->encoder, i);
        rc = mr_labels_add(&r->labels, name, strlen(name), err);
    }
    r->labels.closed = own > 0;
    return rc < 0 ? mr_fail_in(err, "%.300s", r->a->c.model) : 0;
}

static bool blank(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && isspace((unsigned char)text[n]))
        n++;
    return n == size;
}

static int take(struct run *r, const struct mr_record *record, struct mr_error *err)
{
    const struct mr_encoder_text text = {.text = record->text,
                                         .size = record->size,
                                         .pair = record->pair,
                                         .pair_size = record->pair_size,
                                         .cut = true,
                                         .most = r->sequence};
    struct mr_encoder_tokens tokens = {0};
    if (blank(record->text, record->size) ||
        (record->pair && blank(record->pair, record->pair_size))) {
        r->empty++;
        return 0;
    }
    int label = mr_labels_find(&r->labels, record->label, record->label_size, err);
    int rc = label < 0 ? label : mr_encoder_encode(r->encoder, &text, &tokens, err);
    if (rc < 0)
        return mr_fail_in(err, "%.300s: line %llu", r->records.source.name,
                          (unsigned long long)r->records.number);
    rc = mr_examples_add_text(&r->writer, tokens.ids, tokens.types, tokens.count, 0, label, err);
    r->texts++;
    r->tokens += (uint64_t)tokens.count;
    r->cut += tokens.cut;
    free(tokens.ids);
    free(tokens.types);
    return rc;
}

static int convert(struct run *r, struct mr_error *err)
{
    enum { SHOWN = 256 }; // texts between two looks at the clock
    struct mr_record record;
    int more = 1, rc = 0;
    while (more > 0 && rc == 0 && !cli_interrupted()) {
        more = mr_records_next(&r->records, &record, err);
        rc = more > 0 ? take(r, &record, err) : more;
        if (r->texts % SHOWN == 0)
            data_show(&r->line, &r->records.source, "text", r->texts, r->tokens, r->start);
    }
    cli_line_wipe(&r->line);
    if (rc == 0 && cli_interrupted())
        rc = MR_ERR_INTERRUPTED;
    if (rc == 0 && r->texts == 0)
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: has no text that is not empty", r->a->input);
    if (rc == 0 && r->labels.count < 2)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%s: all texts have the label '%s'; --labels names the others, if there are "
                     "any",
                     r->a->input, r->labels.names[0]);
    return rc;
}

static int print(const struct run *r)
{
    const struct data_args *a = r->a;
    json_t *names = json_array();
    for (int i = 0; i < r->labels.count; i++)
        json_array_append_new(names, json_string(r->labels.names[i]));
    if (a->c.json)
        return cli_print_json(json_pack("{s:s, s:I, s:i, s:I, s:I, s:I, s:o}", "file", a->output,
                                        "texts", (json_int_t)r->texts, "sequence", r->sequence,
                                        "tokens", (json_int_t)r->tokens, "cut", (json_int_t)r->cut,
                                        "empty", (json_int_t)r->empty, "labels", names));
    json_decref(names);
    if (a->c.quiet)
        return EXIT_OK;
    printf("%s: %llu text%s of at most %d tokens, %llu tokens", a->output,
           (unsigned long long)r->texts, r->texts == 1 ? "" : "s", r->sequence,
           (unsigned long long)r->tokens);
    if (r->cut > 0)
        printf("; %llu cut", (unsigned long long)r->cut);
    if (r->empty > 0)
        printf("; %llu empty, passed over", (unsigned long long)r->empty);
    printf("; labels:");
    for (int i = 0; i < r->labels.count; i++)
        printf("%s %s", i ? "," : "", r->labels.names[i]);
    printf("\n");
    return EXIT_OK;
}

static int make(struct run *r, struct mr_error *err)
{
    const struct data_args *a = r->a;
    struct mr_data_fields fields = a->fields;
    struct mr_examples_notes notes = {mr_encoder_vocabulary_hash(r->encoder, r->info.vocab_size),
                                      r->info.vocab_size, 0, &r->labels};
    fields.label = fields.label ? fields.label : "label";
    int rc = mr_source_open(&r->records.source, a->input, err);
    if (rc < 0)
        return rc;
    rc = mr_records_open(&r->records, (enum mr_data_format)a->format, &fields, "", 0, err);
    if (rc == 0 && r->records.format == MR_DATA_TEXT)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%.300s: is a plain text by its name, which has no labels; --from jsonl, csv "
                     "or tsv says what it is",
                     r->records.source.name);
    if (rc == 0)
        rc = mr_examples_create(&r->writer, a->output, r->sequence, err);
    if (rc == 0) {
        rc = convert(r, err);
        rc = mr_examples_end(&r->writer, &notes, rc, err);
    }
    if (rc < 0 && cli_interrupted()) // whatever it was that gave up first
        rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted; %s is not written", a->output);
    mr_records_close(&r->records);
    return rc;
}

int data_of_labels(const struct data_args *a)
{
    enum { USUAL = 128 };
    struct mr_error err = {0};
    struct run r = {.a = a, .start = mr_seconds()};
    int rc = mr_encoder_open(&r.encoder, a->c.model, NULL, NULL, &err);
    if (rc == 0) {
        mr_encoder_get_info(r.encoder, &r.info);
        int most = r.info.max_tokens;
        r.sequence = a->sequence ? a->sequence : most < USUAL ? most : USUAL;
        if (r.sequence > most)
            rc = mr_fail(&err, MR_ERR_FIT, "--sequence %d: the model reads %d tokens", r.sequence,
                         most);
        else if (a->overlap > 0 || a->positions > 0)
            rc = mr_fail(&err, MR_ERR_USAGE,
                         "%s is for windows of a text; texts with labels are cut",
                         a->overlap > 0 ? "--overlap" : "--n-positions");
    }
    if (rc == 0)
        rc = name_labels(&r, &err);
    cli_line_open(&r.line, a->c.quiet, false);
    if (rc == 0)
        rc = make(&r, &err);
    int status = rc < 0 ? cli_fail(&err) : print(&r);
    mr_labels_free(&r.labels);
    mr_encoder_close(r.encoder);
    return status;
}
