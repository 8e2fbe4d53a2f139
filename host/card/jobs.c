// SPDX-License-Identifier: Apache-2.0
#include "card/jobs.h"

#include <stdlib.h>

#include "card/places.h"
#include "store/turned.h"

enum { BLOCK = 32, MOST_CHANNELS = 16 };

struct making {
    struct mr_update_jobs *jobs;
    const struct mr_store_layout *layout;
    int channels;
};

static struct mr_update_job *put(const struct making *m, size_t tensor)
{
    m->jobs->tensor[m->jobs->count] = tensor;
    return &m->jobs->job[m->jobs->count++];
}

static void put_headers(const struct making *m, size_t tensor, const struct mr_stream_place *p,
                        bool turned, int segment, int cols)
{
    struct mr_update_job *job = put(m, tensor);
    *job = (struct mr_update_job){.kind = MR_UPDATE_HEADERS, .cols = (uint32_t)cols};
    job->down = mr_stream_side_of(m->layout->config, m->channels, p, turned, segment, 0);
}

static void put_patch(const struct making *m, const struct mr_store_patch *patch,
                      const struct mr_stream_place *p, struct mr_update_job job)
{
    const struct mr_store_tensor *t = &m->layout->tensor[patch->tensor];
    const struct mr_config *c = m->layout->config;
    bool bias = mr_tensor_spec(c, patch->tensor).part == MR_BIAS;
    job.rows = (uint32_t)patch->rows;
    job.cols = (uint32_t)patch->cols;
    job.from += patch->at / MR_BEAT;
    job.to += patch->at / MR_BEAT;
    job.gradients = patch->first * sizeof(int32_t) / MR_BEAT;
    job.kind = !p->known ? MR_UPDATE_TABLE : t->vector ? MR_UPDATE_VECTOR : MR_UPDATE_PATCH;
    if (job.kind == MR_UPDATE_VECTOR)
        job.down = mr_stream_vector(c, m->channels, p, bias);
    if (job.kind == MR_UPDATE_PATCH) {
        job.down =
            mr_stream_side_at(c, m->channels, p, !t->inputs_resident, patch->row, patch->col);
        job.along =
            mr_stream_side_at(c, m->channels, p, t->inputs_resident, patch->col, patch->row);
    }
    *put(m, patch->tensor) = job;
}

static int put_tensor(const struct making *m, size_t i, const struct mr_stream_place *p,
                      struct mr_update_job job, struct mr_error *err)
{
    const struct mr_store_tensor *t = &m->layout->tensor[i];
    int outputs = t->inputs_resident ? t->cols : t->rows;
    int inputs = t->inputs_resident ? t->rows : t->cols;
    int segments = p->known && !t->vector ? mr_segments(outputs / BLOCK) : 0;
    if (segments * (int64_t)inputs > MR_STREAM_TOPS || (segments && outputs > MR_STREAM_TOPS))
        return mr_fail(err, MR_ERR_FIT,
                       "a matrix of %d x %d has more columns than the kernel has room for, %d",
                       outputs, inputs, MR_STREAM_TOPS);
    for (size_t k = 0; k < t->patches; k++)
        put_patch(m, &m->layout->patch[t->patch + k], p, job);
    if (segments)
        put_headers(m, i, p, false, 0, outputs);
    for (int k = 0; k < segments; k++)
        put_headers(m, i, p, true, k, inputs);
    return 0;
}

static size_t most_jobs(const struct mr_store_layout *l)
{
    size_t n = l->patches;
    for (size_t i = 0; i < l->tensors; i++)
        n +=
            1 + (size_t)mr_segments(
                    (l->tensor[i].inputs_resident ? l->tensor[i].cols : l->tensor[i].rows) / BLOCK);
    return n;
}

int mr_update_jobs_make(struct mr_update_jobs *jobs, const struct mr_store_layout *layout,
                        const struct mr_update_options *options, const int32_t *unit, int channels,
                        uint64_t old_at, uint64_t new_at, struct mr_error *err)
{
    struct making m = {jobs, layout, channels};
    const struct mr_arch *arch = mr_arch_of(layout->config);
    int rc = 0;
    *jobs = (struct mr_update_jobs){.room = most_jobs(layout)};
    if (options->kind != MR_ADAMW)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "the kernel has AdamW's update, not %s's",
                       mr_update_name(options->kind));
    if (channels < 1 || MOST_CHANNELS % channels != 0)
        return mr_fail(err, MR_ERR_USAGE, "streams of %d channels; 1, 2, 4, 8 or 16", channels);
    jobs->job = calloc(jobs->room, sizeof *jobs->job);
    jobs->tensor = calloc(jobs->room, sizeof *jobs->tensor);
    struct mr_stream_place *place = calloc(layout->tensors, sizeof *place);
    if (!jobs->job || !jobs->tensor || !place)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu patches", jobs->room);
    if (rc == 0)
        mr_stream_places(layout->config, channels, place, jobs->beats);
    for (size_t i = 0; i < layout->tensors && rc == 0; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(layout->config, i);
        struct mr_update_job job = {.unit = unit[i],
                                    .from = old_at / MR_BEAT,
                                    .to = new_at / MR_BEAT,
                                    .decays = mr_update_decays(options, arch, t.item, t.part)};
        rc = put_tensor(&m, i, &place[i], job, err);
    }
    free(place);
    if (rc < 0)
        mr_update_jobs_free(jobs);
    return rc;
}

void mr_update_jobs_choose(struct mr_update_jobs *jobs, const uint8_t *choice)
{
    size_t n = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        int own = choice[jobs->tensor[i]];
        if (own & MR_CHOICE_FROZEN)
            continue;
        jobs->job[n] = jobs->job[i];
        jobs->job[n].decays &= !(own & MR_CHOICE_NO_DECAY);
        jobs->tensor[n++] = jobs->tensor[i];
    }
    jobs->count = n;
}

static uint64_t placed(const struct mr_update_piece *piece, size_t pieces, uint64_t beats)
{
    size_t k = pieces;
    while (k > 1 && beats * MR_BEAT < piece[k - 1].from)
        k--;
    return beats + (piece[k - 1].addr - piece[k - 1].from) / MR_BEAT;
}

void mr_update_jobs_place(struct mr_update_jobs *jobs, const struct mr_update_places *places)
{
    for (size_t i = 0; i < jobs->count; i++) {
        struct mr_update_job *job = &jobs->job[i];
        job->from = job->to = placed(places->state, places->pieces, job->from);
        job->gradients = placed(places->gradients, places->pieces, job->gradients);
        job->down.at += places->stream[job->down.turned] / MR_BEAT;
        job->along.at += places->stream[job->along.turned] / MR_BEAT;
    }
}

void mr_update_jobs_free(struct mr_update_jobs *jobs)
{
    free(jobs->job);
    free(jobs->tensor);
    *jobs = (struct mr_update_jobs){0};
}
