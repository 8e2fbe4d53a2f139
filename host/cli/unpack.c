// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"verify", no_argument, NULL, OPT_VERIFY},
        {"json", no_argument, NULL, OPT_JSON},    {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct cli_common c = {0};
    struct mr_model *model = NULL;
    struct mr_error err = {0};
    const char *output = NULL;
    int opt, status;
    while ((opt = cli_next_option(&cmd_unpack, argc, argv, "o:qh", options)) != -1) {
        if (opt == 'o')
            output = optarg;
        else if (cli_common_option(&c, &cmd_unpack, opt, &status) < 0)
            return status;
    }
    if (optind < argc)
        c.model = argv[optind++];
    if (!output && optind < argc)
        output = argv[optind++];
    if (optind < argc)
        return cli_usage(&cmd_unpack, "'%s' is one argument too many", argv[optind]);
    if (!c.model || !output)
        return cli_usage(&cmd_unpack, "the name of the %s is missing",
                         c.model ? "directory" : "packed file");
    cli_catch_hangup();
    if (mr_model_load(&model, c.model, &c.load, &err) < 0 ||
        mr_model_unpack(model, output, &err) < 0) {
        mr_model_close(model);
        return cli_fail(&err);
    }
    struct mr_model_info info;
    mr_model_get_info(model, &info);
    mr_model_close(model);
    if (c.json)
        return cli_print_json(json_pack("{s:s, s:s, s:b}", "directory", output, "format",
                                        info.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8",
                                        "smoothed", info.smoothed));
    if (!c.quiet)
        printf("%s: bf16, %s%s\n", output,
               info.format == MR_WEIGHTS_MXFP4 ? "values of mxfp4" : "values of mxint8",
               info.smoothed ? ", smoothed" : "");
    return EXIT_OK;
}

const struct cli_command cmd_unpack = {
    "unpack",
    "a packed file as a Hugging Face directory",
    "FILE DIRECTORY [OPTIONS]\n\n"
    "Writes the values that the device multiplies with, matrices in bf16 and vectors in fp32: "
    "both\n"
    "hold them exactly. DIRECTORY must not exist or be empty, and appears only when it is\n"
    "complete. What was smoothed stays smoothed: pack such a directory with --no-smoothing.\n\n"
    "  -o, --output DIR      the same as the second argument\n"
    "      --verify          changes nothing: the packed file's checksums are always compared\n"
    "      --json            result as JSON\n"
    "  -q, --quiet           no result\n\n"
    "examples:\n"
    "  millrace unpack demo.mill demo-again\n"
    "  millrace pack demo-again again.mill --no-smoothing    # the same weight stream\n",
    run,
};
