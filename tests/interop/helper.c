// SPDX-License-Identifier: Apache-2.0
// What interop.py asks of Millrace and the command line does not say.
//   helper logits MODEL DEVICE FORMAT ID...   fp32 logits of every position on standard output
//   helper tokens MODEL                       standard input: 8 digits of hex for the length, the
//   bytes, and so on;
//                                             a line of ids for each
//   helper decode MODEL DEVICE FORMAT HEAD ID...  a line for each id: the seconds of its step; HEAD
//                                             0: without logits
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "millrace.h"

static int fail(const struct mr_error *err)
{
    fprintf(stderr, "helper: %s\n", err->text);
    return 1;
}

static int logits(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_load_options load = {.format = strcmp(argv[4], "mxfp4") == 0 ? MR_WEIGHTS_MXFP4
                                                                           : MR_WEIGHTS_MXINT8};
    struct mr_model *model;
    struct mr_session *session = NULL;
    struct mr_model_info info;
    int seq, count = argc - 5;
    struct mr_row *rows = calloc((size_t)count + 1, sizeof *rows);
    float *out = NULL;
    int rc = mr_model_load(&model, argv[2], &load, &err);
    if (rc == 0)
        rc = mr_session_open(&session, model, argv[3], NULL, &err);
    if (rc == 0)
        rc = mr_session_seq_new(session, &seq, &err);
    if (rc == 0 && rows) {
        mr_model_get_info(model, &info);
        for (int i = 0; i < count; i++)
            rows[i] = (struct mr_row){seq, atoi(argv[5 + i]), true};
        size_t n = (size_t)count * (size_t)info.vocab_size;
        out = malloc(n * sizeof *out);
        rc = out ? mr_session_step(session, rows, count, out, &err) : -1;
        if (rc == 0 && fwrite(out, sizeof *out, n, stdout) != n)
            rc = -1;
    }
    free(out);
    free(rows);
    mr_session_close(session);
    mr_model_close(model);
    return rc == 0 ? 0 : fail(&err);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int decode(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_load_options load = {.format = strcmp(argv[4], "mxfp4") == 0 ? MR_WEIGHTS_MXFP4
                                                                           : MR_WEIGHTS_MXINT8};
    struct mr_model *model;
    struct mr_session *session = NULL;
    struct mr_model_info info;
    int seq, rc = mr_model_load(&model, argv[2], &load, &err);
    if (rc == 0)
        rc = mr_session_open(&session, model, argv[3], NULL, &err);
    if (rc == 0)
        rc = mr_session_seq_new(session, &seq, &err);
    mr_model_get_info(model, &info);
    float *out = malloc((size_t)info.vocab_size * sizeof *out);
    for (int i = 6; rc == 0 && out && i < argc; i++) {
        struct mr_row row = {seq, atoi(argv[i]), atoi(argv[5]) != 0};
        double begin = seconds();
        rc = mr_session_step(session, &row, 1, out, &err);
        printf("%.9f\n", seconds() - begin);
    }
    free(out);
    mr_session_close(session);
    mr_model_close(model);
    return rc == 0 ? 0 : fail(&err);
}

static int tokens(char **argv)
{
    struct mr_error err = {0};
    struct mr_model *model;
    char length[9] = {0};
    if (mr_model_load(&model, argv[2], NULL, &err) < 0)
        return fail(&err);
    int status = 0;
    while (status == 0 && fread(length, 1, 8, stdin) == 8) {
        size_t size = strtoul(length, NULL, 16), count;
        char *text = malloc(size + 1);
        int32_t *ids = NULL;
        if (!text || fread(text, 1, size, stdin) != size)
            status = 1;
        else if (mr_model_encode(model, text, size, true, &ids, &count, &err) < 0)
            status = fail(&err);
        for (size_t i = 0; status == 0 && i < count; i++)
            printf("%s%d", i ? " " : "", (int)ids[i]);
        if (status == 0)
            printf("\n");
        free(ids);
        free(text);
    }
    mr_model_close(model);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "logits") == 0)
        return logits(argc, argv);
    if (argc > 6 && strcmp(argv[1], "decode") == 0)
        return decode(argc, argv);
    if (argc == 3 && strcmp(argv[1], "tokens") == 0)
        return tokens(argv);
    fprintf(stderr, "usage: helper logits MODEL DEVICE FORMAT ID... | helper tokens MODEL | "
                    "helper decode MODEL DEVICE FORMAT HEAD ID...\n");
    return 2;
}
