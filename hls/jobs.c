// SPDX-License-Identifier: Apache-2.0
#include "hls/jobs.h"

#include <stdlib.h>

#include "pack/layout.h"
#include "store/params.h"
#include "store/turned.h"

enum { BLOCK = 32, SECTION = 16 };

// Where a tensor's item of the streams begins in each channel, in beats.
struct place {
    bool known; // no: of a table that is only looked up
    int item;
    uint64_t at[2]; // in W; its first segment in Wt
};

struct making {
    struct mr_update_jobs *jobs;
    const struct mr_store_layout *layout;
    int channels;
};

static void find_places(const struct making *m, struct place *place)
{
    const struct mr_config *c = m->layout->config;
    uint64_t *at = m->jobs->beats;
    for (int i = 0; i < mr_stream_items(c); i++) {
        struct mr_stream_item it = mr_stream_item(c, MR_FORMAT_MXINT8, i);
        for (int part = 0; part < MR_PARTS; part++)
            if (mr_item_has(it.item, (enum mr_part)part))
                place[mr_params_index(c, it.layer, it.item, (enum mr_part)part)] =
                    (struct place){true, i, {at[0], at[1]}};
        at[0] += (uint64_t)mr_item_beats(&it, m->channels);
        for (int k = 0; k < mr_store_segments(c, i); k++) {
            struct mr_stream_item segment = mr_store_turned_item(c, i, k);
            at[1] += (uint64_t)mr_item_beats(&segment, m->channels);
        }
    }
}

// A matrix in W, or segment `segment` of it in Wt, its columns from `first` on.
static struct mr_update_side side_of(const struct making *m, const struct place *p, bool turned,
                                     int segment, int first)
{
    const struct mr_config *c = m->layout->config;
    struct mr_stream_item it = turned ? mr_store_turned_item(c, p->item, segment)
                                      : mr_stream_item(c, MR_FORMAT_MXINT8, p->item);
    struct mr_update_side s = {.at = p->at[turned], .turned = turned, .first = (uint32_t)first / 4};
    for (int k = 0; turned && k < segment; k++) {
        struct mr_stream_item before = mr_store_turned_item(c, p->item, k);
        s.at += (uint64_t)mr_item_beats(&before, m->channels);
    }
    s.header = (uint32_t)mr_header_beats(&it);
    s.group = (uint32_t)mr_group_beats(&it);
    s.piece = s.header + 16 * s.group;
    s.top = (uint32_t)(segment * it.cols);
    return s;
}

// The same at element `k` of the contraction.
static struct mr_update_side side_at(const struct making *m, const struct place *p, bool turned,
                                     int k, int first)
{
    int block = k / BLOCK, segment = turned ? block / MR_SEGMENT_KBLOCKS : 0;
    struct mr_update_side s = side_of(m, p, turned, segment, first);
    s.section = (uint32_t)((block - segment * MR_SEGMENT_KBLOCKS) / SECTION);
    return s;
}

static void put_headers(const struct making *m, const struct place *p, bool turned, int segment,
                        int cols)
{
    struct mr_update_job *job = &m->jobs->job[m->jobs->count++];
    *job = (struct mr_update_job){.kind = MR_UPDATE_HEADERS, .cols = (uint32_t)cols};
    job->down = side_of(m, p, turned, segment, 0);
}

// A bias stands behind the largest codes; LayerNorm's vectors stand one behind the other.
static struct mr_update_side vector_side(const struct making *m, const struct place *p, bool bias)
{
    struct mr_stream_item it = mr_stream_item(m->layout->config, MR_FORMAT_MXINT8, p->item);
    struct mr_update_side s = {.at = p->at[0], .piece = 4};
    if (it.cols > 0)
        s = side_of(m, p, false, 0, 0);
    if (it.cols > 0)
        s.at++;
    else if (bias)
        s.at += (uint64_t)mr_item_beats(&it, m->channels) / 2;
    return s;
}

static void put_patch(const struct making *m, const struct mr_store_patch *patch,
                      const struct place *p, struct mr_update_job job)
{
    const struct mr_store_tensor *t = &m->layout->tensor[patch->tensor];
    bool bias = mr_tensor_spec(m->layout->config, patch->tensor).part == MR_BIAS;
    job.rows = (uint32_t)patch->rows;
    job.cols = (uint32_t)patch->cols;
    job.from += patch->at / MR_BEAT;
    job.to += patch->at / MR_BEAT;
    job.gradients = patch->first * sizeof(int32_t) / MR_BEAT;
    job.kind = !p->known ? MR_UPDATE_TABLE : t->vector ? MR_UPDATE_VECTOR : MR_UPDATE_PATCH;
    if (job.kind == MR_UPDATE_VECTOR)
        job.down = vector_side(m, p, bias);
    if (job.kind == MR_UPDATE_PATCH) {
        job.down = side_at(m, p, !t->inputs_resident, patch->row, patch->col);
        job.along = side_at(m, p, t->inputs_resident, patch->col, patch->row);
    }
    m->jobs->job[m->jobs->count++] = job;
}

static int put_tensor(const struct making *m, size_t i, const struct place *p,
                      struct mr_update_job job, struct mr_error *err)
{
    const struct mr_store_tensor *t = &m->layout->tensor[i];
    int outputs = t->inputs_resident ? t->cols : t->rows;
    int inputs = t->inputs_resident ? t->rows : t->cols;
    int segments = p->known && !t->vector ? mr_segments(outputs / BLOCK) : 0;
    if (segments * (int64_t)inputs > MR_UPDATE_TOPS || (segments && outputs > MR_UPDATE_TOPS))
        return mr_fail(err, MR_ERR_FIT,
                       "a matrix of %d x %d has more columns than the kernel has room for, %d",
                       outputs, inputs, MR_UPDATE_TOPS);
    for (size_t k = 0; k < t->patches; k++)
        put_patch(m, &m->layout->patch[t->patch + k], p, job);
    if (segments)
        put_headers(m, p, false, 0, outputs);
    for (int k = 0; k < segments; k++)
        put_headers(m, p, true, k, inputs);
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
                        const struct mr_adamw_options *options, const int32_t *unit, int channels,
                        uint64_t old_at, uint64_t new_at, struct mr_error *err)
{
    struct making m = {jobs, layout, channels};
    const struct mr_arch *arch = mr_arch_of(layout->config);
    int rc = 0;
    *jobs = (struct mr_update_jobs){.room = most_jobs(layout)};
    if (channels < 1 || SECTION % channels != 0)
        return mr_fail(err, MR_ERR_USAGE, "streams of %d channels; 1, 2, 4, 8 or 16", channels);
    jobs->job = calloc(jobs->room, sizeof *jobs->job);
    struct place *place = calloc(layout->tensors, sizeof *place);
    if (!jobs->job || !place)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu patches", jobs->room);
    if (rc == 0)
        find_places(&m, place);
    for (size_t i = 0; i < layout->tensors && rc == 0; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(layout->config, i);
        struct mr_update_job job = {.unit = unit[i],
                                    .from = old_at / MR_BEAT,
                                    .to = new_at / MR_BEAT,
                                    .decays = mr_adamw_decays(options, arch, t.item, t.part)};
        rc = put_tensor(&m, i, &place[i], job, err);
    }
    free(place);
    if (rc < 0)
        mr_update_jobs_free(jobs);
    return rc;
}

void mr_update_jobs_free(struct mr_update_jobs *jobs)
{
    free(jobs->job);
    *jobs = (struct mr_update_jobs){0};
}
