// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <stdint.h>
#include <string.h>

enum mr_utf8 mr_utf8_scan(const unsigned char *text, size_t n, size_t *size)
{
    unsigned char lead = text[0];
    *size = 1;
    if (lead < 0x80)
        return MR_UTF8_CHAR;
    if (lead < 0xc2 || lead > 0xf4)
        return MR_UTF8_INVALID;
    size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    // The second byte's range excludes overlong forms, surrogates and code points beyond U+10FFFF.
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (; *size < length; ++*size) {
        if (*size == n)
            return MR_UTF8_INCOMPLETE;
        if (text[*size] < low || text[*size] > high)
            return MR_UTF8_INVALID;
        low = 0x80;
        high = 0xbf;
    }
    return MR_UTF8_CHAR;
}

size_t mr_utf8_valid_prefix(const unsigned char *text, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint64_t eight;
        if (n - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & 0x8080808080808080U) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        size_t size;
        if (mr_utf8_scan(text + at, n - at, &size) != MR_UTF8_CHAR)
            break;
        at += size;
    }
    return at;
}

unsigned mr_utf8_code_point(const unsigned char *text, size_t size)
{
    static const unsigned char lead_bits[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned value = text[0] & lead_bits[size];
    for (size_t i = 1; i < size; i++)
        value = value << 6 | (text[i] & 0x3fU);
    return value;
}

size_t mr_utf8_put(unsigned code_point, unsigned char out[4])
{
    if (code_point < 0x80) {
        out[0] = (unsigned char)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code_point >>= 6)
        out[i] = (unsigned char)(0x80 | (code_point & 0x3f));
    out[0] = (unsigned char)((0xf00U >> size & 0xf0U) | code_point);
    return size;
}
