// SPDX-License-Identifier: Apache-2.0
// A pass without a device: its programs, and the memory that it would take.
#include "model/arch.h"
#include "train/pass.h"
#include "train/pass_impl.h"

int mr_pass_plan(struct mr_pass **pass, const struct mr_geometry *g, const char *name,
                 const struct mr_config *config, const struct mr_pass_options *options,
                 struct mr_error *err)
{
    *pass = NULL;
    if (mr_arch_of(config)->encoder)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s is an encoder, whose training cannot be planned or traced yet",
                       mr_arch_of(config)->title);
    int rc = pass_new(pass, g, name, options->capacity / (uint64_t)g->n, config, options, err);
    if (rc == 0)
        rc = pass_stream_open(*pass, options->clock_khz, err);
    if (rc == 0)
        return 0;
    mr_pass_close(*pass);
    *pass = NULL;
    return rc;
}

const char *mr_pass_part_name(enum mr_pass_part part)
{
    static const char *const names[MR_PASS_PARTS] = {
        [MR_PASS_FORWARD] = "forward",     [MR_PASS_AGAIN] = "again",
        [MR_PASS_INPUTS] = "dX",           [MR_PASS_WEIGHTS] = "dW",
        [MR_PASS_ATTENTION] = "attention", [MR_PASS_NORMS] = "LayerNorm",
    };
    return names[part];
}

void mr_pass_watch(struct mr_pass *pass, mr_pass_show *begin, mr_pass_show *show, void *arg)
{
    pass->begin = begin;
    pass->show = show;
    pass->show_arg = arg;
}

int mr_pass_programs(struct mr_pass *pass, const int *lengths, int n_sequences, mr_pass_show *show,
                     void *arg, struct mr_error *err)
{
    size_t rows = 0;
    for (int i = 0; i < n_sequences; i++)
        rows += (size_t)lengths[i];
    int rc = pass_holds(pass, rows, err);
    if (rc < 0)
        return rc;
    mr_pass_watch(pass, NULL, show, arg);
    pass_place_rows(pass, lengths, n_sequences);
    pass_stream_begin(pass, true);
    rc = pass_forward(pass, err);
    if (rc == 0)
        rc = pass_backward(pass, err);
    pass_stream_end(pass);
    return rc;
}

struct mr_pass_streaming mr_pass_streaming(const struct mr_pass *pass)
{
    struct mr_pass_streaming s = {.units = pass_units(pass), .streamed = pass->at.streamed};
    if (!pass->stream.mover)
        return s;
    const struct mr_mover_stats moved = mr_mover_stats(pass->stream.mover);
    s.up = moved.up;
    s.down = moved.down;
    s.sums = pass->stream.sums;
    for (int i = 0; i < MR_LINKS; i++)
        s.waited[i] = moved.waited[i];
    return s;
}
