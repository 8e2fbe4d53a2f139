// SPDX-License-Identifier: Apache-2.0
// Windows of the memory that a run names in its descriptor.
#pragma once

#include "cmodel/machine_impl.h"

static inline int raise_error(struct mr_machine *m, unsigned code, uint64_t addr)
{
    m->dev->code = code;
    m->dev->command = m->next;
    m->dev->addr = addr;
    return MR_ERR_DEVICE;
}

static inline uint64_t desc_u64(const struct mr_machine *m, unsigned lo)
{
    return m->desc[lo] | (uint64_t)m->desc[lo + 1] << 32;
}

// Beats [off, off + beats) of a window, NULL if they are not all there.
static inline uint8_t *look(struct mr_machine *m, uint64_t base, uint32_t limit, uint64_t off,
                            uint64_t beats, bool write)
{
    return off + beats > limit ? NULL
                               : mr_memory_at(m->mem, base + off * BEAT, beats * BEAT, write);
}

// The same; NULL after raising the error.
static inline uint8_t *window(struct mr_machine *m, uint64_t base, uint32_t limit, uint64_t off,
                              uint64_t beats, bool write)
{
    uint8_t *p = look(m, base, limit, off, beats, write);
    if (!p)
        raise_error(m,
                    off + beats > limit ? MR_DEVERR_WINDOW
                    : write             ? MR_DEVERR_WRITE
                                        : MR_DEVERR_READ,
                    base + off * BEAT);
    return p;
}

static inline uint8_t *input_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    return window(m, desc_u64(m, MR_RUN_INPUT_LO), m->desc[MR_RUN_INPUT_BEATS], off, beats, false);
}

static inline uint8_t *result_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    return window(m, desc_u64(m, MR_RUN_RESULT_LO), m->desc[MR_RUN_RESULT_BEATS], off, beats, true);
}

static inline uint8_t *stream_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats)
{
    const unsigned w = MR_RUN_CHANNEL((unsigned)c);
    return window(m, desc_u64(m, w + MR_CHANNEL_WEIGHTS_LO), m->desc[w + MR_CHANNEL_WEIGHTS_BEATS],
                  off, beats, false);
}

// The smallest KV window says how far all go.
static inline uint32_t kv_limit(const struct mr_machine *m)
{
    uint32_t least = UINT32_MAX;
    for (int c = 0; c < m->g.n; c++) {
        uint32_t beats = m->desc[MR_RUN_CHANNEL(c) + MR_CHANNEL_KV_BEATS];
        least = beats < least ? beats : least;
    }
    return least;
}

static inline uint8_t *kv_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats,
                                 bool write)
{
    return window(m, desc_u64(m, MR_RUN_CHANNEL((unsigned)c) + MR_CHANNEL_KV_LO), kv_limit(m), off,
                  beats, write);
}

// As kv_window() to read, without an error.
static inline const uint8_t *kv_look(struct mr_machine *m, int c, uint64_t off, uint64_t beats)
{
    return look(m, desc_u64(m, MR_RUN_CHANNEL((unsigned)c) + MR_CHANNEL_KV_LO), kv_limit(m), off,
                beats, false);
}

static inline uint8_t *rows_window(struct mr_machine *m, uint64_t off, uint64_t beats, bool write)
{
    const uint32_t *w = m->desc + 16 * (1 + ((size_t)m->g.n + 1) / 2);
    return window(m, w[MR_TRAINING_ROWS_LO] | (uint64_t)w[MR_TRAINING_ROWS_HI] << 32,
                  w[MR_TRAINING_ROWS_BEATS], off, beats, write);
}

static inline uint8_t *grad_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    const uint32_t *w = m->desc + 16 * (1 + ((size_t)m->g.n + 1) / 2);
    return window(m, w[MR_TRAINING_GRAD_LO] | (uint64_t)w[MR_TRAINING_GRAD_HI] << 32,
                  w[MR_TRAINING_GRAD_BEATS], off, beats, true);
}
