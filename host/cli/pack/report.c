// SPDX-License-Identifier: Apache-2.0
// The report of `millrace pack --report`.
#include <math.h>
#include <stdlib.h>

#include "cli/base/cli.h"

enum { WORST = 10 };

static double relative(const struct mr_quality *q)
{
    return q->rms_weight > 0 ? q->rms_error / q->rms_weight : 0;
}

// Infinite where nothing was lost, which JSON has no number for.
static double snr_db(double relative_error)
{
    return relative_error > 0 ? -20 * log10(relative_error) : INFINITY;
}

static int worse(const void *a, const void *b)
{
    double x = relative(*(const struct mr_quality *const *)a),
           y = relative(*(const struct mr_quality *const *)b);
    return (x < y) - (x > y);
}

static double of_all(const struct mr_quality *list, size_t count)
{
    double weight2 = 0, error2 = 0;
    for (size_t i = 0; i < count; i++) {
        double n = (double)list[i].rows * (double)list[i].cols;
        weight2 += n * list[i].rms_weight * list[i].rms_weight;
        error2 += n * list[i].rms_error * list[i].rms_error;
    }
    return weight2 > 0 ? sqrt(error2 / weight2) : 0;
}

static json_t *number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *entry(const struct mr_quality *q)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:f, s:o, s:f, s:f}", "name", q->name, "format",
                     q->format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8", "rows", q->rows, "cols",
                     q->cols, "relative_error", relative(q), "snr_db",
                     number_or_null(snr_db(relative(q))), "rms_weight", q->rms_weight,
                     "largest_error", q->largest_error);
}

json_t *cli_report_json(const struct mr_quality *list, size_t count)
{
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(all, entry(&list[i]));
    double r = of_all(list, count);
    return json_pack("{s:f, s:o, s:o}", "relative_error", r, "snr_db", number_or_null(snr_db(r)),
                     "matrices", all);
}

int cli_report_print(const struct mr_quality *list, size_t count)
{
    const struct mr_quality **order = calloc(count + 1, sizeof *order);
    if (!order) {
        fprintf(stderr, "millrace: no memory for the report\n");
        return EXIT_INPUT;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &list[i];
    qsort(order, count, sizeof *order, worse);
    double r = of_all(list, count);
    printf("%zu matrices against the checkpoint: relative error %.3e, %.1f dB\n", count, r,
           snr_db(r));
    printf("%-34s %-7s %13s %12s %8s %13s\n", "worst first", "format", "shape", "relative", "dB",
           "largest error");
    for (size_t i = 0; i < count && i < WORST; i++) {
        const struct mr_quality *q = order[i];
        printf("%-34s %-7s %6d x %-5d %11.3e %8.1f %13.3e\n", q->name,
               q->format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8", q->rows, q->cols, relative(q),
               snr_db(relative(q)), q->largest_error);
    }
    free(order);
    return EXIT_OK;
}
