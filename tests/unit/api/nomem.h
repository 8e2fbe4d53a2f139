// SPDX-License-Identifier: Apache-2.0
// Allocations that fail, at a place of the test's choice: the linker puts these functions in the
// place of what the library calls itself (UNIT_NOMEM in tests/tests.mk). Not of what Jansson calls,
// which loses characters of a string when it has no memory for them (2.14). Include <cmocka.h>
// first.
#ifndef MILLRACE_TESTS_UNIT_NOMEM_H
#define MILLRACE_TESTS_UNIT_NOMEM_H

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "millrace.h"

static atomic_long nomem_count;   // allocations since nomem_begin()
static atomic_long nomem_at = -1; // which one fails; -1: none

// From here on the allocation of that number fails, once.
static void nomem_begin(long at)
{
    atomic_store(&nomem_count, 0);
    atomic_store(&nomem_at, at);
}

// None fails any more. Whether one has.
static bool nomem_end(void)
{
    return atomic_load(&nomem_count) > atomic_exchange(&nomem_at, -1);
}

static bool nomem(void)
{
    if (atomic_load(&nomem_at) < 0 || atomic_fetch_add(&nomem_count, 1) != atomic_load(&nomem_at))
        return false;
    errno = ENOMEM;
    return true;
}

#define NOMEM(type, name, parameters, arguments, failure)                                          \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return nomem() ? (failure) : __real_##name arguments;                                      \
    }
NOMEM(void *, malloc, (size_t n), (n), NULL)
NOMEM(void *, calloc, (size_t n, size_t size), (n, size), NULL)
NOMEM(void *, realloc, (void *p, size_t n), (p, n), NULL)
NOMEM(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size), NULL)
NOMEM(void *, aligned_alloc, (size_t alignment, size_t n), (alignment, n), NULL)
NOMEM(int, posix_memalign, (void **p, size_t alignment, size_t n), (p, alignment, n), ENOMEM)
NOMEM(char *, strdup, (const char *s), (s), NULL)
NOMEM(char *, strndup, (const char *s, size_t n), (s, n), NULL)

int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = nomem() ? -1 : vasprintf(text, format, args);
    va_end(args);
    return n;
}

// A call whose allocation `at` has failed (struck) did without it, or says that there was no
// memory.
static void nomem_told(const char *name, long at, int rc, bool struck, const struct mr_error *err)
{
    if (rc != 0 && (rc != MR_ERR_MEMORY || !struck || err->status != rc || !*err->text))
        fail_msg("%s, allocation %ld: %d '%s'", name, at, rc, err->text);
}

#endif
