// SPDX-License-Identifier: Apache-2.0
#include "data/examples.h"

size_t mr_windows_cut(const struct mr_cut *cut, size_t from, size_t learnt, size_t to,
                      struct mr_window *out)
{
    size_t sequence = (size_t)cut->sequence, overlap = (size_t)cut->overlap, n = 0;
    // `known`: positions below have had their target in a window before, or need none.
    size_t known = learnt > from + 1 ? learnt - 1 : from;
    for (size_t at = from; known + 1 < to; at += sequence - overlap) {
        size_t count = to - 1 - at < sequence ? to - 1 - at : sequence;
        if (at + count <= known)
            continue;
        if (out)
            out[n] = (struct mr_window){at, (int)count, known > at ? (int)(known - at) : 0};
        n++;
        known = at + count;
    }
    return n;
}
