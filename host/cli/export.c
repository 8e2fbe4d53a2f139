// SPDX-License-Identifier: Apache-2.0
// `millrace export`: the weights of a training's state as a Hugging Face directory.
#include "cli/base/shared_options.h"
#include "device/device.h"
#include "store/store.h"

struct args {
    struct cli_common c;
    const char *state, *output, *base;
    bool merge;
    int format; // enum mr_save_format
};

static int export(const struct args *a)
{
    static const enum mr_dtype dtypes[] = {MR_DTYPE_F32, MR_DTYPE_BF16, MR_DTYPE_F16};
    static const char *const names[] = {"f32", "bf16", "f16"};
    const struct mr_store_options options = {
        .stop = &mr_device_stop, .base = a->base, .alone = !a->merge};
    struct mr_error err = {0};
    struct mr_store *store;
    int rc = mr_store_open(&store, a->state, &options, &err);
    if (rc < 0)
        return cli_fail(&err);
    uint64_t step = mr_store_step(store);
    bool adapter = mr_store_lora(store) && !a->merge;
    if (a->merge && !mr_store_lora(store))
        rc =
            mr_fail(&err, MR_ERR_USAGE, "%s: --merge is for the state of a LoRA adapter", a->state);
    else if (adapter)
        rc = mr_store_export_adapter(store, a->output, &mr_device_stop, &err);
    else
        rc = mr_store_export(store, a->output, dtypes[a->format], &mr_device_stop, &err);
    mr_store_close(store);
    if (rc < 0)
        return cli_fail(&err);
    if (a->c.json)
        return cli_print_json(json_pack("{s:s, s:I, s:s}", "directory", a->output, "step",
                                        (json_int_t)step, "format",
                                        names[adapter ? 0 : a->format]));
    if (!a->c.quiet)
        printf("%s: the %s of step %llu, %s\n", a->output, adapter ? "adapter" : "weights",
               (unsigned long long)step, names[adapter ? 0 : a->format]);
    return EXIT_OK;
}

static int run(void *args)
{
    const struct args *a = args;
    cli_catch_hangup();
    return export(a);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ROW(CLI_PATH, "state", "STATE", state,
            "what train -o names; the same as the first argument",
            .missing = "the state of a training is missing"),
    CLI_ROW(CLI_OUTPUT, "output", "DIR", output, "the same as the second argument", .letter = 'o',
            .missing = "the directory to write is missing"),
    CLI_ROW(CLI_CHOICE, "format", "F", format, "of the weights", .choices = "f32|bf16|f16",
            .def = "f32"),
    CLI_ROW_FLAG("merge", merge,
                 "of a LoRA adapter's state: the model with the adapter, not the adapter"),
    CLI_ROW(CLI_PATH, "model", "DIR", base, "for --merge: the adapter's model, where it lies now",
            .letter = 'm', .needs = "merge"),
    CLI_JSON,
    CLI_QUIET("no result"),
    {0},
};

const struct cli_command cmd_export = {
    .name = "export",
    .summary = "the weights of a training as a Hugging Face directory",
    .synopsis = "STATE DIR [OPTIONS]",
    .about =
        "Writes the weights that a training's state has now, as train --export does at its end. It "
        "needs neither the data nor the options of the training. DIR must not exist or be empty, "
        "and appears only when it is complete. A training that runs keeps its state to itself.",
    .arguments = "state output",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace export state tuned\n"
                "millrace export state tuned --format bf16",
    .run = run,
};
