// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

enum { OPT_OUTPUT = 'o', OPT_REPORT = 512 };

// Compares the file, as it lies on the disk now, with the checkpoint.
static int report(const struct cli_common *c, const char *output, json_t **json)
{
    struct mr_error err = {0};
    struct mr_model *packed = NULL;
    struct mr_quality *list = NULL;
    size_t count = 0;
    int rc = mr_model_load(&packed, output, NULL, &err);
    if (rc == 0)
        rc = mr_model_compare_weights(packed, c->model, &list, &count, &err);
    int status = rc < 0 ? cli_fail(&err) : EXIT_OK;
    if (status == EXIT_OK && c->json)
        *json = cli_report_json(list, count);
    else if (status == EXIT_OK)
        status = cli_report_print(list, count);
    free(list);
    mr_model_close(packed);
    return status;
}

static int save(const struct cli_common *c, const struct mr_model *model, const char *output,
                bool want_report)
{
    struct mr_error err = {0};
    struct mr_model_info info;
    struct stat st;
    if (mr_model_save(model, output, &err) < 0)
        return cli_fail(&err);
    mr_model_get_info(model, &info);
    long long size = stat(output, &st) == 0 ? (long long)st.st_size : -1;
    const char *format = info.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8";
    if (!c->quiet && !c->json)
        printf("%s: %lld bytes, weights %s%s%s, %llu bytes read for each token\n", output, size,
               format, info.smoothed ? ", smoothed" : "", info.calibrated ? ", calibrated" : "",
               (unsigned long long)info.stream_bytes);
    json_t *matrices = NULL;
    int status = want_report ? report(c, output, &matrices) : EXIT_OK;
    if (status != EXIT_OK || !c->json)
        return status;
    return cli_print_json(json_pack("{s:s, s:I, s:s, s:b, s:b, s:I, s:o*}", "file", output, "bytes",
                                    (json_int_t)size, "format", format, "smoothed", info.smoothed,
                                    "calibrated", info.calibrated, "stream_bytes",
                                    (json_int_t)info.stream_bytes, "report", matrices));
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {CLI_COMMON_OPTIONS,
                                            {"output", required_argument, NULL, OPT_OUTPUT},
                                            {"report", no_argument, NULL, OPT_REPORT},
                                            {NULL, 0, NULL, 0}};
    struct cli_common c = {0};
    struct mr_model *model = NULL;
    const char *output = NULL;
    bool want_report = false;
    struct mr_model_info info;
    struct stat st;
    int opt, status;
    while ((opt = cli_next_option(&cmd_pack, argc, argv, CLI_COMMON_SHORT "o:", options)) != -1) {
        if (opt == OPT_OUTPUT)
            output = optarg;
        else if (opt == OPT_REPORT)
            want_report = true;
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
        mr_model_get_info(model, &info);
    if (status == EXIT_OK && info.packed_file)
        status = cli_usage(&cmd_pack, "'%s' is packed already; give the Hugging Face directory",
                           c.model);
    if (status == EXIT_OK)
        status = save(&c, model, output, want_report);
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
    "      --report          how far each matrix is from the checkpoint; the worst ones first\n"
    "      --json            result as JSON\n"
    "  -q, --quiet           no progress, no result\n\n"
    "examples:\n"
    "  millrace pack models/demo demo.mill\n"
    "  millrace pack models/demo demo-fp4.mill --format mxfp4 --calibrate self\n"
    "  millrace pack models/demo demo.mill --report --json\n",
    run,
};
