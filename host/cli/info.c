// SPDX-License-Identifier: Apache-2.0
#include "cli/parse.h"
#include "cli/shared_options.h"

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

struct args {
    struct cli_common c;
};

static int run(int argc, char **argv)
{
    struct args a = {.c.load.describe = true};
    struct mr_model *model = NULL;
    struct mr_model_info i;
    int status;
    if (!cli_parse(&cmd_info, argc, argv, &a, &status))
        return status;
    status = cli_load(&a.c, &model);
    if (status != EXIT_OK)
        return status;
    mr_model_get_info(model, &i);
    if (a.c.json)
        status = print_json(&i);
    else
        print(&a.c, &i);
    mr_model_close(model);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL(ARGS,
              "Hugging Face directory (or a file of weights in it), or packed file; the same as "
              "the argument"),
    CLI_PACKING(ARGS),
    {.name = "verify",
     .kind = CLI_FLAG,
     .help = "compare all checksums of a packed file, which reads it as a whole",
     CLI_AT(ARGS, c.load.verify)},
    CLI_JSON(ARGS),
    CLI_VERBOSE(ARGS),
    CLI_QUIET(ARGS, "no progress"),
    {0},
};

const struct cli_command cmd_info = {
    .name = "info",
    .summary = "what a model is and what a token costs",
    .synopsis = "MODEL [OPTIONS]",
    .about = "Packs nothing: a directory is shown as it would be packed.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace info models/demo\n"
                "millrace info gpt-j/pytorch_model.bin --format mxfp4\n"
                "millrace info demo.mill --verify --json",
    .run = run,
};
