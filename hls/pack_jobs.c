// SPDX-License-Identifier: Apache-2.0
#include "hls/pack_jobs.h"

#include <stdlib.h>

#include "hls/places_of.h"
#include "pack/layout.h"
#include "store/params.h"

struct making {
    struct mr_pack_jobs *jobs;
    const struct mr_checkpoint *checkpoint;
    const struct mr_config *config;
    struct mr_stream_place *place;
    int channels;
    struct mr_error *err;
};

// A tensor on the card: `at` is its first element. Distances of outputs and of inputs, in bytes.
struct tensor {
    uint64_t at, output, input;
    uint32_t type, size;
};

// ---- lists --------------------------------------------------------------------------------------

static int no_memory(const struct making *m)
{
    return mr_fail(m->err, MR_ERR_MEMORY, "no memory for a list of %zu jobs", m->jobs->count);
}

static int put_job(const struct making *m, struct mr_pack_job job)
{
    struct mr_pack_jobs *j = m->jobs;
    if (j->count == j->job_room) {
        size_t room = j->job_room ? 2 * j->job_room : 256;
        struct mr_pack_job *more = realloc(j->job, room * sizeof *more);
        if (!more)
            return no_memory(m);
        j->job = more;
        j->job_room = room;
    }
    j->job[j->count++] = job;
    return 0;
}

// Where a part of a file is on the card. Tensors may be parts of one that is there already, as the
// queries, keys and values of GPT-2 are: the last part grows.
static int put_copy(const struct making *m, const unsigned char *from, uint64_t bytes, uint64_t *at)
{
    struct mr_pack_jobs *j = m->jobs;
    struct mr_pack_copy *last = j->copies ? &j->copy[j->copies - 1] : NULL;
    uintptr_t place = (uintptr_t)from, begin = last ? (uintptr_t)last->from : 0;
    if (last && place >= begin && place < begin + last->bytes) {
        uint64_t end = (uint64_t)(from - last->from) + bytes;
        last->bytes = end > last->bytes ? end : last->bytes;
    } else {
        if (j->copies == j->copy_room) {
            size_t room = j->copy_room ? 2 * j->copy_room : 64;
            struct mr_pack_copy *more = realloc(j->copy, room * sizeof *more);
            if (!more)
                return no_memory(m);
            j->copy = more;
            j->copy_room = room;
        }
        last = &j->copy[j->copies++];
        *last = (struct mr_pack_copy){from, bytes, j->tensor_bytes};
    }
    *at = last->to + (uint64_t)(from - last->from);
    j->tensor_bytes = (last->to + last->bytes + MR_BEAT - 1) / MR_BEAT * MR_BEAT;
    return 0;
}

// ---- tensors ------------------------------------------------------------------------------------

static int put_tensor(const struct making *m, const struct mr_tensor *t, struct tensor *on)
{
    static const uint32_t types[] = {
        [MR_DTYPE_F32] = MR_PACK_F32, [MR_DTYPE_BF16] = MR_PACK_BF16, [MR_DTYPE_F16] = MR_PACK_F16};
    bool known = t->dtype == MR_DTYPE_F32 || t->dtype == MR_DTYPE_BF16 || t->dtype == MR_DTYPE_F16;
    if (!known || t->rank < 1 || t->rank > 2)
        return mr_fail(m->err, MR_ERR_UNSUPPORTED,
                       "%s has type %s and rank %d; the kernel takes vectors and matrices of F32, "
                       "BF16 and F16",
                       t->name, mr_dtype_name(t->dtype), t->rank);
    int64_t last = t->rank == 2 ? t->shape[1] : 1;
    int64_t outer = t->strided ? t->stride[0] : last;
    int64_t inner = t->strided && t->rank == 2 ? t->stride[1] : 1;
    if (outer < 1 || inner < 1 || (outer != 1 && inner != 1))
        return mr_fail(m->err, MR_ERR_UNSUPPORTED,
                       "%s: neither the elements of a row nor those of a column lie in a row",
                       t->name);
    uint64_t span = (uint64_t)((t->shape[0] - 1) * outer + (last - 1) * inner + 1);
    on->type = types[t->dtype];
    on->size = on->type == MR_PACK_F32 ? 4 : 2;
    on->output = (uint64_t)outer * on->size;
    on->input = (uint64_t)inner * on->size;
    int rc = put_copy(m, t->data, span * on->size, &on->at);
    return rc < 0 || on->at % on->size == 0
               ? rc
               : mr_fail(m->err, MR_ERR_UNSUPPORTED,
                         "%s does not lie at a multiple of its elements' size", t->name);
}

// ---- rectangles ---------------------------------------------------------------------------------

// One axis of a tensor: n elements, in heads of `head` that are padded each for itself, or none.
struct axis {
    int n, head;
};
// Elements `from` .. of the axis stand from `to` on.
struct span {
    int from, to, count;
};

// The first elements at or behind `to` and before `end`, both with padding; false: only padding.
static bool next_span(struct axis a, int to, int end, struct span *s)
{
    int from = -1;
    while (to < end && (from = mr_unpad(to, a.head, a.n)) < 0)
        to++;
    *s = (struct span){from, to, 0};
    while (to + s->count < end && mr_unpad(to + s->count, a.head, a.n) == from + s->count)
        s->count++;
    return s->count > 0;
}

static int put_rectangle(const struct making *m, const struct tensor *t, struct span output,
                         struct span input, int output0, int input0)
{
    bool outputs_run = t->output == t->size && t->input != t->size;
    struct mr_pack_job job = {.kind = MR_PACK_LOAD, .type = t->type, .outputs_run = outputs_run};
    job.runs = (uint32_t)(outputs_run ? input.count : output.count);
    job.length = (uint32_t)(outputs_run ? output.count : input.count);
    job.output = (uint32_t)(output.to - output0);
    job.input = (uint32_t)(input.to - input0);
    job.from = t->at + (uint64_t)output.from * t->output + (uint64_t)input.from * t->input;
    job.pitch = outputs_run ? t->input : t->output;
    return put_job(m, job);
}

// All of the tensor that is in the patch at `output`, `input`.
static int put_rectangles(const struct making *m, const struct tensor *t, struct axis outputs,
                          struct axis inputs, struct mr_pack_job patch, int output, int input)
{
    struct span o, i;
    int last_output = output + (int)patch.outputs, last_input = input + (int)patch.inputs, rc = 0;
    for (int to = output; rc == 0 && next_span(outputs, to, last_output, &o); to = o.to + o.count)
        for (int at = input; rc == 0 && next_span(inputs, at, last_input, &i); at = i.to + i.count)
            rc = put_rectangle(m, t, o, i, output, input);
    return rc == 0 ? put_job(m, patch) : rc;
}

// ---- items of the stream ------------------------------------------------------------------------

static uint32_t least(int a, int b)
{
    return (uint32_t)(a < b ? a : b);
}

static int put_matrix(const struct making *m, const struct mr_stream_item *it,
                      const struct mr_tensor *weight, const struct mr_stream_place *place)
{
    struct tensor t;
    struct mr_matrix_shape shape = mr_matrix_shape(m->config, it);
    int rc =
        it->cols <= MR_STREAM_TOPS
            ? put_tensor(m, weight, &t)
            : mr_fail(m->err, MR_ERR_FIT, "%s has more outputs than the kernel has room for, %d",
                      weight->name, MR_STREAM_TOPS);
    for (int o = 0; rc == 0 && o < it->cols; o += MR_PACK_OUTPUTS)
        for (int k = 0; rc == 0 && k < it->k; k += MR_PACK_INPUTS) {
            struct mr_pack_job patch = {.kind = MR_PACK_PATCH,
                                        .inputs = least(it->k - k, MR_PACK_INPUTS),
                                        .outputs = least(it->cols - o, MR_PACK_OUTPUTS)};
            patch.to = mr_stream_side_at(m->config, m->channels, place, false, k, o);
            rc = put_rectangles(m, &t, (struct axis){shape.rows, shape.row_head},
                                (struct axis){shape.cols, shape.col_head}, patch, o, k);
        }
    struct mr_pack_job headers = {.kind = MR_PACK_HEADERS, .outputs = (uint32_t)it->cols};
    headers.to = mr_stream_side_of(m->config, m->channels, place, false, 0, 0);
    return rc == 0 ? put_job(m, headers) : rc;
}

// `padded` elements, of which the axis has those that are no padding.
static int put_vector(const struct making *m, const struct mr_tensor *vector, struct axis axis,
                      int padded, struct mr_stream_side to)
{
    struct tensor t;
    int rc = put_tensor(m, vector, &t);
    if (rc == 0 && t.output != t.size)
        rc = mr_fail(m->err, MR_ERR_UNSUPPORTED, "%s: its elements do not lie in a row",
                     vector->name);
    t.input = t.size; // a vector is one output
    for (int k = 0; rc == 0 && k < padded; k += MR_PACK_INPUTS) {
        struct mr_pack_job part = {.kind = MR_PACK_VECTOR,
                                   .inputs = least(padded - k, MR_PACK_INPUTS),
                                   .outputs = 1,
                                   .first = (uint64_t)k,
                                   .to = to};
        rc = put_rectangles(m, &t, (struct axis){1, 0}, axis, part, 0, k);
    }
    return rc;
}

static int put_part(const struct making *m, const struct mr_stream_item *it, enum mr_part part)
{
    const struct mr_tensor *t = mr_checkpoint_item(m->checkpoint, it->layer, it->item, part);
    const struct mr_stream_place *place =
        &m->place[mr_params_index(m->config, it->layer, it->item, part)];
    if (!t)
        return mr_fail(m->err, MR_ERR_FORMAT, "a tensor of layer %d is missing", it->layer);
    if (it->cols > 0 && part == MR_WEIGHT)
        return put_matrix(m, it, t, place);
    struct mr_matrix_shape shape = mr_matrix_shape(m->config, it);
    struct axis axis = it->cols > 0 ? (struct axis){shape.rows, shape.row_head}
                                    : (struct axis){(int)t->shape[0], 0};
    return put_vector(m, t, axis, it->cols > 0 ? it->cols : it->k,
                      mr_stream_vector(m->config, m->channels, place, part == MR_BIAS));
}

int mr_pack_jobs_make(struct mr_pack_jobs *jobs, const struct mr_checkpoint *checkpoint,
                      int channels, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(checkpoint);
    uint64_t beats[2];
    int rc = 0;
    *jobs = (struct mr_pack_jobs){0};
    if (channels < 1 || 16 % channels != 0)
        return mr_fail(err, MR_ERR_USAGE, "streams of %d channels; 1, 2, 4, 8 or 16", channels);
    struct making m = {jobs, checkpoint, c, NULL, channels, err};
    m.place = calloc(mr_tensor_specs(c), sizeof *m.place);
    if (!m.place)
        return no_memory(&m);
    mr_stream_places(c, channels, m.place, beats);
    jobs->beats = beats[0];
    for (int i = 0; i < mr_stream_items(c) && rc == 0; i++) {
        struct mr_stream_item it = mr_stream_item(c, MR_FORMAT_MXINT8, i);
        for (int part = 0; part < MR_PARTS && rc == 0; part++)
            if (mr_item_has(it.item, (enum mr_part)part))
                rc = put_part(&m, &it, (enum mr_part)part);
    }
    free(m.place);
    if (rc < 0)
        mr_pack_jobs_free(jobs);
    return rc;
}

void mr_pack_jobs_free(struct mr_pack_jobs *jobs)
{
    free(jobs->job);
    free(jobs->copy);
    *jobs = (struct mr_pack_jobs){0};
}
