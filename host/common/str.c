// SPDX-License-Identifier: Apache-2.0
#include "common/str.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mr_shown mr_show_bytes(const void *text, size_t size)
{
    struct mr_shown shown;
    const unsigned char *bytes = text;
    size_t n = size < MR_SHOWN ? size : MR_SHOWN - 4;
    for (size_t i = 0; i < n; i++) {
        // 0x80..0xbf follows 0xc2 in the C1 controls (0xc2 0x9b starts a terminal escape).
        bool control = bytes[i] < 0x20 || bytes[i] == 0x7f ||
                       (i > 0 && bytes[i - 1] == 0xc2 && bytes[i] >= 0x80 && bytes[i] < 0xa0);
        shown.text[i] = (char)(control ? '?' : bytes[i]);
    }
    if (n < size) {
        // Do not cut a UTF-8 character in two.
        while (n > 0 && (bytes[n] & 0xc0) == 0x80)
            n--;
        memcpy(shown.text + n, "...", 4);
    } else {
        shown.text[n] = '\0';
    }
    return shown;
}

struct mr_shown mr_show(const char *text)
{
    return mr_show_bytes(text, strlen(text));
}

int mr_place_of(const char *words, const char *text,
                int (*compare)(const char *, const char *, size_t))
{
    const char *end;
    size_t n = strlen(text);
    for (int i = 0; words && n > 0; i++, words = end ? end + 1 : NULL) {
        end = strchr(words, '|');
        if (compare(words, text, n) == 0 && (words[n] == '|' || !words[n]))
            return i;
    }
    return -1;
}

const char *mr_size_of(const char *text, uint64_t *bytes)
{
    static const char units[] = "kKmMgG";
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (1 + (int)(unit - units) / 2) : 0;
    *bytes = (uint64_t)n << shift;
    return errno || n > INT64_MAX >> shift ? NULL : end + (unit != NULL);
}
