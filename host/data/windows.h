// SPDX-License-Identifier: Apache-2.0
// Documents in windows: what `train` learns from a text, and what `data` writes.
#pragma once

#include <stddef.h>

// Tokens `at` .. at + count - 1; the target of each is the token behind it. The first `skip` of
// them have none that is learnt.
struct mr_window {
    size_t at;
    int count, skip;
};

struct mr_cut {
    int sequence; // tokens of a window at most
    int overlap;  // with the window before, below `sequence`; its targets are learnt once
};

// The windows of a document, tokens from .. to - 1, of which `learnt` is the first that is a
// target. Windows in which nothing is learnt are left out. Returns how many; `out` may be NULL.
size_t mr_windows_cut(const struct mr_cut *cut, size_t from, size_t learnt, size_t to,
                      struct mr_window *out);
