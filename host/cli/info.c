// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    struct cli_common c = {0};
    struct mr_model *model = NULL;
    struct mr_model_info i;
    int opt, status;
    while ((opt = cli_next_option(&cmd_info, argc, argv, CLI_COMMON_SHORT, options)) != -1)
        if (cli_common_option(&c, &cmd_info, opt, &status) < 0)
            return status;
    status = cli_take_model(&c, &cmd_info, argc, argv);
    if (status == EXIT_OK)
        status = cli_load(&c, &model);
    if (status != EXIT_OK)
        return status;
    mr_model_get_info(model, &i);
    const char *format = i.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8";
    if (c.json) {
        status = cli_print_json(json_pack(
            "{s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:b, s:I, s:I}", "kind",
            i.packed_file ? "packed" : "huggingface", "parameters", (json_int_t)i.parameters,
            "vocab_size", i.vocab_size, "n_positions", i.n_positions, "n_embd", i.n_embd, "n_layer",
            i.n_layer, "n_head", i.n_head, "head_dim", i.head_dim, "rotary_dim", i.rotary_dim,
            "n_inner", i.n_inner, "format", format, "smoothed", i.smoothed, "calibrated",
            i.calibrated, "stream_bytes", (json_int_t)i.stream_bytes, "kv_bytes",
            (json_int_t)i.kv_bytes));
    } else {
        printf("%s: GPT-J, %.1f million parameters (%s)\n", c.model, (double)i.parameters / 1e6,
               i.packed_file ? "packed file" : "Hugging Face directory");
        printf("  layers %d, n_embd %d, heads %d x %d, rotary %d, n_inner %d\n", i.n_layer,
               i.n_embd, i.n_head, i.head_dim, i.rotary_dim, i.n_inner);
        printf("  vocabulary %d%s, positions %d\n", i.vocab_size,
               i.has_tokenizer ? "" : " (no tokenizer)", i.n_positions);
        printf("  weights %s%s%s: %llu bytes read for each token\n", format,
               i.smoothed ? ", smoothed" : "", i.calibrated ? ", calibrated" : "",
               (unsigned long long)i.stream_bytes);
        printf("  KV store: %llu bytes a position\n", (unsigned long long)i.kv_bytes);
    }
    mr_model_close(model);
    return status;
}

const struct cli_command cmd_info = {
    "info",
    "what a model is and what a token costs",
    "MODEL [OPTIONS]\n\n"
    "  MODEL                 Hugging Face directory or packed file\n"
    "      --format F        mxint8 (default) or mxfp4, for directories\n"
    "      --no-smoothing    leave out channel smoothing, for directories\n"
    "      --calibrate T     make up for rounding errors; T is self or a text file\n"
    "      --verify          check a packed file's checksums, however large it is\n"
    "      --json            as JSON\n\n"
    "examples:\n  millrace info models/demo\n  millrace info demo.mill --verify --json\n",
    run,
};
