// SPDX-License-Identifier: Apache-2.0
#include "cmodel/row_work.h"

#include "cmodel/backward.h"
#include "mr_device.h"

unsigned mr_row_work_reads(unsigned work)
{
    return work == MR_MOVE_SOFTMAX ? 1 : 3;
}

unsigned mr_row_work_writes(unsigned work)
{
    return work == MR_MOVE_NORM_BACK || work == MR_MOVE_SOFTMAX_BACK ? 2 : 1;
}

void mr_row_work(const struct mr_row_work *w, int i, int pos, const float *first,
                 const float *second, const struct mr_row_room *room, float *out)
{
    int own = w->own_col + i;
    const struct mr_softmax_row row = {
        first, pos > own ? 0 : own - pos, own, w->scale, room->scaled, room->shares};
    switch (w->work) {
    case MR_MOVE_NORM_BACK:
        w->kernels->norm_back(&w->norm, first, second, w->gain, w->cols, out);
        break;
    case MR_MOVE_NORM_GAIN:
        w->kernels->norm_gain(&w->norm, first, second, w->cols, out);
        break;
    case MR_MOVE_SOFTMAX:
        w->kernels->softmax(&row, w->cols, out);
        break;
    default:
        w->kernels->softmax_back(&row, second, w->grad_scale, w->cols, out);
        break;
    }
}
