// SPDX-License-Identifier: Apache-2.0
#include "common/suggest.h"

#include <string.h>

enum { LONGEST = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

int mr_suggest_distance(const char *a, const char *b)
{
    // d[i][j]: between the first i characters of `a` and the first j of `b`.
    int d[LONGEST + 1][LONGEST + 1];
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(change, 1 + least(d[i - 1][j], d[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

void mr_suggest_offer(struct mr_suggestion *s, const char *candidate)
{
    size_t n = strlen(s->word);
    // A word that was cut off is as near as one wrong letter; else a third of it may be wrong.
    bool begins = n >= 3 && strncmp(s->word, candidate, n) == 0;
    int distance = begins ? 1 : mr_suggest_distance(s->word, candidate);
    int allowed = n < 3 ? 1 : (int)(n + 2) / 3;
    if (n > 1 && distance <= allowed && (!s->best || distance < s->distance)) {
        s->best = candidate;
        s->distance = distance;
    }
}
