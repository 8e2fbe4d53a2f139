// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

enum { OPT_OUTPUT = 'o' };

static int save(const struct cli_common *c, const struct mr_model *model, const char *output)
{
    struct mr_error err = {0};
    struct mr_model_info info;
    struct stat st;
    if (mr_model_save(model, output, &err) < 0)
        return cli_fail(&err);
    mr_model_get_info(model, &info);
    long long size = stat(output, &st) == 0 ? (long long)st.st_size : -1;
    const char *format = info.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8";
    if (c->json)
        return cli_print_json(json_pack(
            "{s:s, s:I, s:s, s:b, s:I}", "file", output, "bytes", (json_int_t)size, "format",
            format, "smoothed", info.smoothed, "stream_bytes", (json_int_t)info.stream_bytes));
    if (!c->quiet)
        printf("%s: %lld bytes, weights %s%s, %llu bytes read for each token\n", output, size,
               format, info.smoothed ? ", smoothed" : "", (unsigned long long)info.stream_bytes);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_COMMON_OPTIONS, {"output", required_argument, NULL, OPT_OUTPUT}, {NULL, 0, NULL, 0}};
    struct cli_common c = {0};
    struct mr_model *model = NULL;
    const char *output = NULL;
    struct stat st;
    int opt, status;
    while ((opt = cli_next_option(&cmd_pack, argc, argv, CLI_COMMON_SHORT "o:", options)) != -1) {
        if (opt == OPT_OUTPUT)
            output = optarg;
        else if (cli_common_option(&c, &cmd_pack, opt, &status) < 0)
            return status;
    }
    if (!c.model && optind < argc)
        c.model = argv[optind++];
    if (!output && optind < argc)
        output = argv[optind++];
    if (optind < argc)
        return cli_usage(&cmd_pack, "'%s' is one argument too many", argv[optind]);
    if (!output)
        return cli_usage(&cmd_pack, "the name of the packed file is missing");
    if (stat(output, &st) == 0 && S_ISDIR(st.st_mode)) // said now and not after minutes of work
        return cli_usage(&cmd_pack, "'%s' is a directory; name a file in it", output);
    status = cli_load(&c, &model);
    if (status == EXIT_OK)
        status = save(&c, model, output);
    mr_model_close(model);
    return status;
}

const struct cli_command cmd_pack = {
    "pack",
    "a Hugging Face directory as one file that loads at once",
    "DIRECTORY FILE [OPTIONS]\n\n"
    "Quantises the checkpoint and writes FILE, which appears only when it is complete. The other\n"
    "commands take it wherever they take a model, except for the device cpu:.\n\n"
    "  -o, --output FILE     the same as the second argument\n"
    "      --format F        mxint8 (default) or mxfp4\n"
    "      --no-smoothing    leave out the exact power-of-two channel smoothing\n"
    "      --calibrate T     make up for rounding errors; T is self or a text file\n"
    "      --json            result as JSON\n"
    "  -q, --quiet           no progress, no result\n\n"
    "examples:\n"
    "  millrace pack models/demo demo.mill\n"
    "  millrace pack models/demo demo-fp4.mill --format mxfp4 --calibrate self\n",
    run,
};
