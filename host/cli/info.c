// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "cli/base/shared_options.h"

static const char *kind_name(enum mr_model_kind kind, bool json)
{
    static const char *const shown[] = {"safetensors", "PyTorch", "packed file", "synthetic"};
    static const char *const keys[] = {"safetensors", "pytorch", "packed", "synthetic"};
    return json ? keys[kind] : shown[kind];
}

static int print_json(const struct mr_model_info *i)
{
    json_t *j = json_pack(
        "{s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:b, s:I, s:I}", "kind",
        kind_name(i->kind, true), "architecture", i->architecture, "parameters",
        (json_int_t)i->parameters, "vocab_size", i->vocab_size, "n_positions", i->n_positions,
        "n_embd", i->n_embd, "n_layer", i->n_layer, "n_head", i->n_head, "head_dim", i->head_dim,
        "rotary_dim", i->rotary_dim, "n_inner", i->n_inner, "format",
        i->format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8", "smoothed", i->smoothed, "calibrated",
        i->calibrated, "stream_bytes", (json_int_t)i->stream_bytes, "kv_bytes",
        (json_int_t)i->kv_bytes);
    const struct {
        const char *key;
        uint64_t value;
    } more[] = {{"files", (uint64_t)i->files},  {"f32_bytes", i->f32_bytes},
                {"f16_bytes", i->f16_bytes},    {"bf16_bytes", i->bf16_bytes},
                {"file_bytes", i->file_bytes},  {"embedding_bytes", i->embedding_bytes},
                {"tokenizer", i->has_tokenizer}};
    for (size_t k = 0; j && k < sizeof more / sizeof *more; k++)
        json_object_set_new(j, more[k].key, json_integer((json_int_t)more[k].value));
    return cli_print_json(j);
}

// 12345678 as "12.3 MB (12345678 bytes)"
static void print_bytes(uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB"};
    double shown = (double)bytes / 1e3;
    int u = 0;
    for (; shown >= 1000 && u < 2; u++)
        shown /= 1e3;
    if (bytes >= 1000)
        printf("%.1f %s (%llu bytes)", shown, units[u], (unsigned long long)bytes);
    else
        printf("%llu bytes", (unsigned long long)bytes);
}

static void print_line(const char *name, uint64_t bytes, const char *what)
{
    printf("  %-14s ", name);
    print_bytes(bytes);
    printf("%s\n", what);
}

// What lies on the disk: a checkpoint's tensors by type, or a packed file.
static void print_storage(const struct mr_model_info *i)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"fp32", i->f32_bytes}, {"fp16", i->f16_bytes}, {"bf16", i->bf16_bytes}};
    if (i->kind == MR_KIND_PACKED)
        print_line("file", i->file_bytes, ", version 1");
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].bytes > 0 && i->kind != MR_KIND_SYNTHETIC)
            print_line(types[k].name, types[k].bytes,
                       i->kind == MR_KIND_PACKED ? " of embedding" : " of weights");
}

static void print(const struct cli_common *c, const struct mr_model_info *i)
{
    bool packed = i->kind == MR_KIND_PACKED || i->kind == MR_KIND_SYNTHETIC;
    bool small = i->parameters < 1000000;
    printf("%s: %s, %.1f %s parameters (%s", c->model, i->architecture,
           (double)i->parameters / (small ? 1e3 : 1e6), small ? "thousand" : "million",
           kind_name(i->kind, false));
    printf(i->files > 1 ? ", %d files)\n" : ")\n", i->files);
    printf("  layers %d, n_embd %d, heads %d x %d, ", i->n_layer, i->n_embd, i->n_head,
           i->head_dim);
    if (i->rotary_dim > 0)
        printf("rotary %d, ", i->rotary_dim);
    printf("n_inner %d\n", i->n_inner);
    printf("  vocabulary %d%s, positions %d\n", i->vocab_size,
           i->has_tokenizer ? "" : " (no tokenizer)", i->n_positions);
    print_storage(i);
    printf("%s %s%s%s; a token reads\n", packed ? "  weights" : "  packed as",
           i->format == MR_WEIGHTS_MXFP4 ? "mxfp4 (head mxint8)" : "mxint8",
           i->smoothed ? ", smoothed" : "", i->calibrated ? ", calibrated" : "");
    print_line("  weights", i->stream_bytes, "");
    print_line("  embedding", i->embedding_bytes, "");
    print_line("  KV store", i->kv_bytes, " for each position before it");
}

// ---- encoders -----------------------------------------------------------------------------------

static const char *pooling_name(const struct mr_encoder_info *i)
{
    return i->pooling == MR_POOLING_CLS ? "cls" : "mean";
}

static int encoder_json(const struct mr_encoder *encoder, const struct mr_encoder_info *i)
{
    json_t *labels = json_array();
    for (int k = 0; k < i->n_labels; k++)
        json_array_append_new(labels, json_string(mr_encoder_label(encoder, k)));
    return cli_print_json(json_pack(
        "{s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:o, s:b, s:I}", "kind",
        kind_name(i->kind, true), "architecture", i->architecture, "parameters",
        (json_int_t)i->parameters, "vocab_size", i->vocab_size, "n_positions", i->n_positions,
        "n_embd", i->n_embd, "n_layer", i->n_layer, "n_head", i->n_head, "n_inner", i->n_inner,
        "max_tokens", i->max_tokens, "pooling", pooling_name(i), "masked_words", i->words, "labels",
        labels, "labels_tokens", i->by_token, "stream_bytes", (json_int_t)i->stream_bytes));
}

// A synthetic one: no checkpoint says anything of tokens, labels or how rows become one.
static struct mr_encoder_info drawn_encoder(const struct mr_model_info *i)
{
    return (struct mr_encoder_info){
        .kind = i->kind,
        .architecture = i->architecture,
        .parameters = i->parameters,
        .vocab_size = i->vocab_size,
        .n_positions = i->n_positions,
        .n_embd = i->n_embd,
        .n_layer = i->n_layer,
        .n_head = i->n_head,
        .n_inner = i->n_inner,
        .max_tokens = i->n_positions,
        .pooling = MR_POOLING_MEAN,
        .stream_bytes = i->stream_bytes,
    };
}

static void print_encoder(const char *path, const struct mr_encoder *encoder,
                          const struct mr_encoder_info *i, enum mr_weight_format format)
{
    bool drawn = i->kind == MR_KIND_SYNTHETIC;
    bool small = i->parameters < 1000000;
    printf("%s: %s, an encoder, %.1f %s parameters without heads (%s)\n", path, i->architecture,
           (double)i->parameters / (small ? 1e3 : 1e6), small ? "thousand" : "million",
           kind_name(i->kind, false));
    printf("  layers %d, n_embd %d, heads %d, n_inner %d\n", i->n_layer, i->n_embd, i->n_head,
           i->n_inner);
    printf("  vocabulary %d%s, positions %d, texts of at most %d tokens\n", i->vocab_size,
           drawn ? " (no tokenizer)" : "", i->n_positions, i->max_tokens);
    if (i->kind == MR_KIND_PACKED)
        print_line("file", i->file_bytes,
                   i->calibrated ? ", version 1, calibrated" : ", version 1");
    if (!drawn)
        printf("  embed      pooling %s\n", pooling_name(i));
    if (i->words)
        printf("  fill-mask  there is a head for masked words\n");
    if (i->n_labels > 0)
        printf("  classify   %d label%s a %s:", i->n_labels, i->n_labels == 1 ? "" : "s",
               i->by_token ? "token" : "text");
    for (int k = 0; k < i->n_labels && k < 8; k++)
        printf("%s %s", k ? "," : "", mr_encoder_label(encoder, k));
    if (i->n_labels > 0)
        printf(i->n_labels > 8 ? ", ...\n" : "\n");
    printf("  runs on    %s, in %s; a run reads weights of ",
           drawn || i->kind == MR_KIND_PACKED ? "engines" : "cpu: and engines",
           format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8");
    print_bytes(i->stream_bytes);
    printf("\n");
}

static int show_encoder(const struct cli_common *c, const struct mr_encoder *encoder,
                        const struct mr_encoder_info *i, enum mr_weight_format format)
{
    if (c->json)
        return encoder_json(encoder, i);
    print_encoder(c->model, encoder, i, format);
    return EXIT_OK;
}

static int open_encoder(const struct cli_common *c)
{
    struct mr_error err = {0};
    struct mr_encoder *encoder;
    struct mr_encoder_info i;
    const struct mr_encoder_options opt = {.verify = c->load.verify};
    if (mr_encoder_open(&encoder, c->model, NULL, &opt, &err) < 0)
        return cli_fail(&err);
    mr_encoder_get_info(encoder, &i);
    int status = show_encoder(c, encoder, &i, MR_WEIGHTS_MXINT8);
    mr_encoder_close(encoder);
    return status;
}

struct args {
    struct cli_common c;
};

static int run(void *args)
{
    struct args *a = args;
    struct mr_model *model = NULL;
    struct mr_model_info i;
    if (cli_is_encoder(a->c.model))
        return open_encoder(&a->c);
    a->c.load.describe = true;
    int status = cli_load(&a->c, &model);
    if (status != EXIT_OK)
        return status;
    mr_model_get_info(model, &i);
    struct mr_encoder_info drawn = drawn_encoder(&i);
    if (i.encoder)
        status = show_encoder(&a->c, NULL, &drawn, i.format);
    else if (a->c.json)
        status = print_json(&i);
    else
        print(&a->c, &i);
    mr_model_close(model);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory (or a file of weights in it), or packed file; the same as "
              "the argument"),
    CLI_PACKING,
    CLI_ROW_FLAG("verify", c.load.verify,
                 "compare all checksums of a packed file, which reads it as a whole"),
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET("no progress"),
    {0},
};

const struct cli_command cmd_info = {
    .name = "info",
    .summary = "what a model is and what a token costs",
    .synopsis = "MODEL [OPTIONS]",
    .about =
        "Packs nothing: a directory is shown as it would be packed; of an encoder, what it can "
        "answer.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace info models/demo\n"
                "millrace info gpt-j/pytorch_model.bin --format mxfp4\n"
                "millrace info demo.mill --verify --json",
    .run = run,
};
