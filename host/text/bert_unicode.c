// SPDX-License-Identifier: Apache-2.0
#include "text/bert_unicode.h"

#include <stdint.h>

// Code points first..last; of capitals every stride-th, and what makes them small.
struct run {
    uint32_t first, last;
};
struct ordered {
    uint32_t first, last, class;
};
struct capitals {
    uint32_t first, last, stride;
    int32_t more;
};
struct part {
    uint32_t whole, part;
};

#include "text/bert_unicode.inc"

#define COUNT(array) (sizeof(array) / sizeof *(array))
// The last entry of a sorted list that begins at or before c, or NULL.
#define DEFINE_FIND(name, type, member)                                                            \
    static const type *name(const type *list, size_t n, unsigned c)                                \
    {                                                                                              \
        size_t low = 0;                                                                            \
        while (low < n) {                                                                          \
            size_t middle = low + (n - low) / 2;                                                   \
            if (list[middle].member <= c)                                                          \
                low = middle + 1;                                                                  \
            else                                                                                   \
                n = middle;                                                                        \
        }                                                                                          \
        return low > 0 ? &list[low - 1] : NULL;                                                    \
    }
DEFINE_FIND(find_run, struct run, first)
DEFINE_FIND(find_ordered, struct ordered, first)
DEFINE_FIND(find_capitals, struct capitals, first)
DEFINE_FIND(find_part, struct part, whole)

static bool in(const struct run *list, size_t n, unsigned c)
{
    const struct run *run = find_run(list, n, c);
    return run && c <= run->last;
}

bool mr_bert_is_dropped(unsigned c)
{
    return in(dropped, COUNT(dropped), c);
}

bool mr_bert_is_punctuation(unsigned c)
{
    return in(punctuation, COUNT(punctuation), c);
}

bool mr_bert_is_accent(unsigned c)
{
    return in(accents, COUNT(accents), c) || in(accents_0, COUNT(accents_0), c);
}

bool mr_bert_is_chinese(unsigned c)
{
    // CJK's ideographs without extensions E's first 256 (as the library has it) and F and later.
    static const struct run chinese[] = {
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
        {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
    };
    return in(chinese, COUNT(chinese), c);
}

unsigned mr_bert_class(unsigned c)
{
    const struct ordered *o = find_ordered(ordered, COUNT(ordered), c);
    if (o && c <= o->last)
        return o->class;
    return in(accents, COUNT(accents), c);
}

// Hangul syllables consist of two or three letters; Unicode computes them.
static size_t hangul(unsigned c, unsigned parts[MR_BERT_PARTS])
{
    unsigned s = c - 0xac00;
    parts[0] = 0x1100 + s / 588;
    parts[1] = 0x1161 + s % 588 / 28;
    parts[2] = 0x11a7 + s % 28;
    return s % 28 ? 3 : 2;
}

size_t mr_bert_parts(unsigned c, unsigned parts[MR_BERT_PARTS])
{
    if (c >= 0xac00 && c < 0xac00 + 11172)
        return hangul(c, parts);
    const struct part *last = find_part(part, COUNT(part), c);
    size_t n = 0;
    while (last && last - n >= part && n < MR_BERT_PARTS && (last - n)->whole == c)
        n++;
    for (size_t i = 0; i < n; i++)
        parts[i] = last[(ptrdiff_t)i + 1 - (ptrdiff_t)n].part;
    if (n == 0)
        parts[n++] = c;
    return n;
}

unsigned mr_bert_lower(unsigned c)
{
    if (c == 0x130)
        return 'i';
    const struct capitals *r = find_capitals(capitals, COUNT(capitals), c);
    return r && c <= r->last && (c - r->first) % r->stride == 0 ? c + (unsigned)r->more : c;
}
