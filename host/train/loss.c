// SPDX-License-Identifier: Apache-2.0
// Double arithmetic with + - * / only (and -ffp-contract=off) is the same on every host.
#include "train/loss.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cmodel/num.h"

#define LN2_HI 0x1.62e42feep-1 // 32 bits: its products with small integers are exact
#define LN2_LO 0x1.a39ef35793c76p-33
#define UNIT   42 // of exponentials: 2^20 of them, each at most 2^42, have their sum below 2^63

void mr_loss_add(struct mr_loss *to, const struct mr_loss *loss)
{
    to->sum += loss->sum;
    to->rows += loss->rows;
    to->right += loss->right;
}

double mr_loss_mean(const struct mr_loss *loss)
{
    return (double)loss->sum * 0x1p-32 / (double)loss->rows;
}

// 2^k, a normal number.
static double power(int k)
{
    union {
        uint64_t u;
        double d;
    } x = {(uint64_t)(k + 1023) << 52};
    return x.d;
}

uint64_t mr_loss_exp(double d)
{
    static const double c[13] = {// (-1)^k / k!
                                 1.0,
                                 -1.0,
                                 1.0 / 2,
                                 -1.0 / 6,
                                 1.0 / 24,
                                 -1.0 / 120,
                                 1.0 / 720,
                                 -1.0 / 5040,
                                 1.0 / 40320,
                                 -1.0 / 362880,
                                 1.0 / 3628800,
                                 -1.0 / 39916800,
                                 1.0 / 479001600};
    if (d >= 30)
        return 0;
    int n = (int)(d * 0x1.71547652b82fep+0 + 0.5); // d / ln 2, to the nearest
    double r = (d - n * LN2_HI) - n * LN2_LO, y = c[12];
    for (int k = 11; k >= 0; k--)
        y = y * r + c[k];
    return (uint64_t)((y * power(UNIT - n) + 0x1p52) - 0x1p52);
}

double mr_loss_log(uint64_t s)
{
    int k = 63 - __builtin_clzll(s);
    double f = (double)s * power(-k); // 1..2
    if (f > 0x1.6a09e667f3bcdp+0) {
        f *= 0.5;
        k++;
    }
    double t = (f - 1) / (f + 1), t2 = t * t, y = 1.0 / 21;
    for (int i = 19; i > 0; i -= 2)
        y = y * t2 + 1.0 / i;
    k -= UNIT;
    return k * LN2_HI + (k * LN2_LO + 2 * t * y);
}

// ---- rows ---------------------------------------------------------------------------------------

struct work {
    float *logits;
    const int *targets;
    size_t rows, vocab, share; // rows of a task
    bool gradient;
    double *exponentials; // [workers][vocab]
    __int128 *sums;       // [workers]
    atomic_size_t bad;    // the first row that is not finite, or `rows`
};

// The row's loss x 2^32, or a negative number.
static int64_t row(float *z, size_t n, int target, bool gradient, double *e)
{
    float top = z[0];
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        top = z[i] > top ? z[i] : top;
        finite &= mr_expo(z[i]) != 255;
    }
    if (!finite)
        return -1;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t u = mr_loss_exp((double)top - (double)z[i]);
        e[i] = (double)u;
        sum += u;
    }
    double loss = mr_loss_log(sum) + ((double)top - (double)z[target]);
    if (!(loss < 0x1p31))
        return -1;
    for (size_t i = 0; gradient && i < n; i++)
        z[i] = (float)(e[i] / (double)sum);
    if (gradient) // p - 1, without cancellation
        z[target] = -(float)((double)(sum - (uint64_t)e[target]) / (double)sum);
    loss *= 0x1p32;
    return (int64_t)nearbyint(loss);
}

static void some_rows(void *arg, int task, int worker)
{
    struct work *w = arg;
    size_t from = (size_t)task * w->share, to = from + w->share;
    for (size_t r = from; r < to && r < w->rows; r++) {
        int64_t loss = row(w->logits + r * w->vocab, w->vocab, w->targets[r], w->gradient,
                           w->exponentials + (size_t)worker * w->vocab);
        size_t bad = atomic_load(&w->bad);
        while (loss < 0 && r < bad && !atomic_compare_exchange_weak(&w->bad, &bad, r))
            ;
        w->sums[worker] += loss;
    }
}

int mr_loss_rows(struct mr_pool *pool, float *logits, const int *targets, size_t rows, size_t vocab,
                 bool gradient, struct mr_loss *loss, struct mr_error *err)
{
    size_t workers = (size_t)mr_pool_workers(pool);
    struct work w = {logits, targets, rows, vocab, 1 + 4096 / vocab, gradient, NULL, NULL, rows};
    w.exponentials = calloc(workers * vocab, sizeof *w.exponentials);
    w.sums = calloc(workers, sizeof *w.sums);
    int rc = 0;
    if (w.exponentials && w.sums) {
        mr_pool_run(pool, (int)((rows + w.share - 1) / w.share), some_rows, &w, true);
        if (w.bad < rows)
            rc = mr_fail(err, MR_ERR_FORMAT,
                         "the loss of row %zu is infinite or not a number; the weights or the "
                         "learning rate are at fault",
                         (size_t)w.bad);
        for (size_t i = 0; rc == 0 && i < workers; i++)
            loss->sum += w.sums[i];
        loss->rows += rc == 0 ? (int64_t)rows : 0;
    } else {
        rc = mr_fail(err, MR_ERR_MEMORY, "out of memory: the loss of %zu logits a row", vocab);
    }
    free(w.exponentials);
    free(w.sums);
    return rc;
}
