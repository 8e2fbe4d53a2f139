// SPDX-License-Identifier: Apache-2.0
// A pass without a device: its programs, and the memory that it would take.
#include "train/pass.h"
#include "train/pass_impl.h"

int mr_pass_plan(struct mr_pass **pass, const struct mr_geometry *g, const char *name,
                 const struct mr_config *config, const struct mr_pass_options *options,
                 struct mr_error *err)
{
    return pass_new(pass, g, name, config, options, err);
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
    rc = pass_forward(pass, err);
    return rc == 0 ? pass_backward(pass, err) : rc;
}

struct mr_pass_memory mr_pass_memory(const struct mr_pass *pass)
{
    const struct mr_pass *p = pass;
    uint64_t channels = (uint64_t)p->g.n * MR_BEAT;
    return (struct mr_pass_memory){
        .weights = channels * p->mem.weight_beats,
        .stash = channels * p->mem.stash_beats,
        .kv = channels * p->at.kv_layer,
        .rows = MR_BEAT * p->mem.rows_beats,
        .gradients = MR_BEAT * p->mem.grad_beats,
        .windows =
            MR_BEAT * (p->mem.input_beats + p->mem.result_beats + PASS_DESC_BEATS + PASS_PROGRAM),
    };
}

uint64_t mr_pass_bytes(const struct mr_pass_memory *m)
{
    return m->weights + m->stash + m->kv + m->rows + m->gradients + m->windows;
}
