// SPDX-License-Identifier: Apache-2.0
#include "text/look.h"

#include <string.h>
#include <strings.h>

#include "text/utf8.h"

#define AS_IT_IS "; 'millrace data --from text' takes its bytes as they are"
#define UNPACK   "unpack it; millrace data reads what zstd has compressed, too"
#define WEIGHTS  "a model is no text; give one"
#define TAKEN    "train --data takes it as it is"

static const struct {
    const char *magic;
    size_t size;
    const char *what, *advice;
} formats[] = {
    {"\x1F\x8B", 2, "gzip", UNPACK},
    {"\xFD"
     "7zXZ\0",
     6, "xz", UNPACK},
    {"BZh", 3, "bzip2", UNPACK},
    {"PK\3\4", 4, "a zip archive", "take the text out of it"},
    {"\x28\xB5\x2F\xFD", 4, "compressed with zstd",
     "millrace data reads that, for train --data; unpack it for others"},
    {"MILLRACE", 8, "a packed model", WEIGHTS},
    {"MILLRDAT", 8, "a file of millrace data", TAKEN},
    {"\x89HDF\r\n\x1A\n", 8, "HDF5", TAKEN},
    {"%PDF-", 5, "PDF", "pdftotext makes a text of it"},
    {"PAR1", 4, "Parquet", "write it as JSON lines"},
    {"\xFF\xFE", 2, "UTF-16", "iconv -f UTF-16 -t UTF-8 makes a text of it"},
    {"\xFE\xFF", 2, "UTF-16", "iconv -f UTF-16 -t UTF-8 makes a text of it"},
};

// The length of a header, and its JSON.
static bool is_safetensors(const unsigned char *b, size_t size)
{
    static const char begins[] = {0, 0, 0, '{', '"'};
    return size >= 10 && memcmp(b + 5, begins, sizeof begins) == 0;
}

// Bytes that cannot be UTF-8. A character that is cut off at the end is not counted.
static size_t count_invalid(const unsigned char *b, size_t size)
{
    size_t invalid = 0, n;
    for (size_t at = 0; at < size; at += n) {
        enum mr_utf8 is = mr_utf8_scan(b + at, size - at, &n);
        invalid += is == MR_UTF8_INVALID ? n : 0;
    }
    return invalid;
}

int mr_text_look(const char *name, const void *bytes, size_t size, struct mr_error *err)
{
    const unsigned char *b = bytes;
    size = size < MR_LOOK_BYTES ? size : MR_LOOK_BYTES;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (size >= formats[i].size && memcmp(b, formats[i].magic, formats[i].size) == 0)
            return mr_fail(err, MR_ERR_FORMAT, "%.300s: is %s; %s", name, formats[i].what,
                           formats[i].advice);
    if (is_safetensors(b, size))
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: is safetensors; " WEIGHTS, name);
    if (size > 0 && memchr(b, 0, size))
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: has NUL bytes, so it is no text" AS_IT_IS,
                       name);
    size_t invalid = count_invalid(b, size);
    if (10 * invalid > size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%.300s: is not UTF-8 (%zu of its first %zu bytes); convert it with "
                       "iconv" AS_IT_IS,
                       name, invalid, size);
    return 0;
}

enum mr_text_form mr_text_form_of(const char *path)
{
    static const struct {
        const char *suffix;
        enum mr_text_form form;
    } known[] = {{".jsonl", MR_TEXT_JSONL},
                 {".ndjson", MR_TEXT_JSONL},
                 {".json", MR_TEXT_JSONL},
                 {".csv", MR_TEXT_CSV},
                 {".tsv", MR_TEXT_TSV}};
    size_t n = strlen(path);
    if (n > 4 && strcasecmp(path + n - 4, ".zst") == 0)
        n -= 4;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t m = strlen(known[i].suffix);
        if (n >= m && strncasecmp(path + n - m, known[i].suffix, m) == 0)
            return known[i].form;
    }
    return MR_TEXT_PLAIN;
}

int mr_text_look_plain(const char *path, const void *bytes, size_t size, struct mr_error *err)
{
    static const char *const called[] = {
        [MR_TEXT_JSONL] = "JSON lines", [MR_TEXT_CSV] = "CSV", [MR_TEXT_TSV] = "TSV"};
    enum mr_text_form form = mr_text_form_of(path);
    int rc = mr_text_look(path, bytes, size, err);
    if (rc < 0 || form == MR_TEXT_PLAIN)
        return rc;
    return mr_fail(err, MR_ERR_FORMAT,
                   "%.300s: is %s by its name; millrace data makes a file of it that train --data "
                   "takes; named .txt it is a text",
                   path, called[form]);
}
