// SPDX-License-Identifier: Apache-2.0
#include "common/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct mr_blas mr_blas;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// A thread of OpenBLAS takes a buffer of 128 MiB and, with it, a heap of malloc()'s of as much.
#define THREAD_BYTES  ((size_t)256 << 20)
#define LIBRARY_BYTES ((size_t)64 << 20)

// The library's own, and what sets how many threads it takes.
static struct {
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_sgemv) *sgemv;
    void (*set_threads)(int n);
    int (*threads)(void);
    int most; // as it chose
} own;

static size_t threads(void)
{
    const char *wanted = getenv("OPENBLAS_NUM_THREADS");
    long n = wanted ? strtol(wanted, NULL, 10) : 0;
    if (n < 1)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (size_t)n;
}

// Without room it would not fail but wait for ever, so it is asked for beforehand.
static int check_room(struct mr_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    size_t n = threads(), need = n * THREAD_BYTES + LIBRARY_BYTES;
    void *room = mmap(NULL, need, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return mr_fail(err, MR_ERR_MEMORY,
                       "OpenBLAS: the limit of address space leaves no room for %zu MiB (%zu "
                       "threads); raise 'ulimit -v' or set OPENBLAS_NUM_THREADS=1",
                       need >> 20, n);
    (void)munmap(room, need);
    return 0;
}

// True: the product of so many multiply-accumulates is the caller's alone until restore().
static bool alone(double products)
{
    bool small = products < 0x1p24 && own.most > 1;
    if (small)
        own.set_threads(1);
    return small;
}

static void restore(bool small)
{
    if (small)
        own.set_threads(own.most);
}

static void sgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE turn_a,
                  const enum CBLAS_TRANSPOSE turn_b, const blasint m, const blasint n,
                  const blasint k, const float alpha, const float *a, const blasint lda,
                  const float *b, const blasint ldb, const float beta, float *c, const blasint ldc)
{
    bool small = alone((double)m * n * k);
    own.sgemm(order, turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    restore(small);
}

static void sgemv(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE turn, const blasint m,
                  const blasint n, const float alpha, const float *a, const blasint lda,
                  const float *x, const blasint step_x, const float beta, float *y,
                  const blasint step_y)
{
    bool small = alone((double)m * n);
    own.sgemv(order, turn, m, n, alpha, a, lda, x, step_x, beta, y, step_y);
    restore(small);
}

static int load(struct mr_error *err)
{
    struct mr_blas b;
    const struct {
        const char *name;
        void *entry;
    } entries[] = {{"cblas_sgemm", &own.sgemm},
                   {"cblas_sgemv", &own.sgemv},
                   {"cblas_ssyrk", &b.ssyrk},
                   {"cblas_dgemm", &b.dgemm},
                   {"dpotrf_", &b.dpotrf},
                   {"dtrtri_", &b.dtrtri},
                   {"openblas_set_num_threads", &own.set_threads},
                   {"openblas_get_num_threads", &own.threads}};
    int rc = check_room(err);
    if (rc < 0)
        return rc;
    // Never unloaded: its threads run until the process ends.
    void *so = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!so)
        return mr_fail(err, MR_ERR_IO,
                       "OpenBLAS: %s; install the package libopenblas0 ('make deps')", dlerror());
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (!(*(void **)entries[i].entry = dlsym(so, entries[i].name))) {
            (void)dlclose(so);
            return mr_fail(err, MR_ERR_IO,
                           "OpenBLAS: libopenblas.so.0 has no %s; install Debian's libopenblas0",
                           entries[i].name);
        }
    own.most = own.threads();
    b.sgemm = sgemm;
    b.sgemv = sgemv;
    mr_blas = b;
    return 0;
}

int mr_blas_load(struct mr_error *err)
{
    (void)pthread_mutex_lock(&lock); // a plain mutex in use by its owner only: cannot fail
    int rc = mr_blas.sgemm ? 0 : load(err);
    (void)pthread_mutex_unlock(&lock);
    return rc;
}
