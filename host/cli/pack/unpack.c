// SPDX-License-Identifier: Apache-2.0
#include "cli/base/shared_options.h"

struct args {
    struct cli_common c;
    const char *output;
};

static int unpack(const struct args *a)
{
    struct mr_model *model = NULL;
    struct mr_error err = {0};
    if (mr_model_load(&model, a->c.model, &a->c.load, &err) < 0 ||
        mr_model_unpack(model, a->output, &err) < 0) {
        mr_model_close(model);
        return cli_fail(&err);
    }
    struct mr_model_info info;
    mr_model_get_info(model, &info);
    mr_model_close(model);
    if (a->c.json)
        return cli_print_json(json_pack("{s:s, s:s, s:b}", "directory", a->output, "format",
                                        info.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8",
                                        "smoothed", info.smoothed));
    if (!a->c.quiet)
        printf("%s: bf16, %s%s\n", a->output,
               info.format == MR_WEIGHTS_MXFP4 ? "values of mxfp4" : "values of mxint8",
               info.smoothed ? ", smoothed" : "");
    return EXIT_OK;
}

static int run(void *args)
{
    const struct args *a = args;
    if (cli_is_encoder(a->c.model))
        return cli_usage(&cmd_unpack,
                         "'%s' is an encoder, which is not unpacked; its directory has what "
                         "training and cpu: need",
                         a->c.model);
    cli_catch_hangup();
    return unpack(a);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL_OR("the packed file; the same as the first argument",
                 "the name of the packed file is missing"),
    CLI_ROW(CLI_OUTPUT, "output", "DIR", output, "the same as the second argument", .letter = 'o',
            .missing = "the name of the directory is missing"),
    CLI_ROW_FLAG("verify", c.load.verify,
                 "changes nothing: the packed file's checksums are always compared"),
    CLI_JSON,
    CLI_QUIET("no result"),
    {0},
};

const struct cli_command cmd_unpack = {
    .name = "unpack",
    .summary = "a packed file as a Hugging Face directory",
    .synopsis = "FILE DIRECTORY [OPTIONS]",
    .about = "Writes the values that the device multiplies with, matrices in bf16 and vectors in "
             "fp32: both hold them exactly. DIRECTORY must not exist or be empty, and appears only "
             "when it is complete. What was smoothed stays smoothed: pack such a directory with "
             "--no-smoothing.",
    .arguments = "model output",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace unpack demo.mill demo-again\n"
                "millrace pack demo-again again.mill --no-smoothing    # the same weight stream",
    .run = run,
};
