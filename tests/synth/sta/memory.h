// SPDX-License-Identifier: Apache-2.0
// Memory or an end: the analyser is a program of its own and has nothing to save.
#ifndef MR_STA_MEMORY_H
#define MR_STA_MEMORY_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *sta_checked(void *p)
{
    if (!p) {
        fputs("sta: out of memory\n", stderr);
        exit(1);
    }
    return p;
}
static inline void *sta_calloc(size_t n, size_t size)
{
    return sta_checked(calloc(n ? n : 1, size));
}
static inline void *sta_realloc(void *p, size_t n, size_t size)
{
    return sta_checked(reallocarray(p, n ? n : 1, size));
}
static inline char *sta_strdup(const char *s)
{
    return sta_checked(strdup(s));
}

#endif
