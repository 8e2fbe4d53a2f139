// SPDX-License-Identifier: Apache-2.0
// What is different when somebody looks.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "text/tokenizer.h"

// Whether `out` is a terminal with colours, and NO_COLOR is not set.
static bool has_colours(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"); // https://no-color.org
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

const char *cli_style(FILE *out, enum cli_style style)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[1;31m", "\033[2m"};
    return has_colours(out) ? codes[style] : "";
}

void cli_note(const struct cli_common *c, const char *fmt, ...)
{
    va_list ap;
    if (!c->verbose)
        return;
    va_start(ap, fmt);
    fputs(cli_style(stderr, STYLE_FAINT), stderr);
    fprintf(stderr, "millrace: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "%s\n", cli_style(stderr, STYLE_PLAIN));
    va_end(ap);
}

json_t *cli_json_text(const char *text, size_t size)
{
    json_t *s = json_stringn(text, size);
    if (s)
        return s;
    struct mr_text_stream stream = {0};
    struct mr_buf valid = {0};
    if (mr_text_stream_push_bytes(&stream, text, size, &valid, NULL) == 0 &&
        mr_text_stream_end(&stream, &valid, NULL) == 0)
        s = json_stringn(valid.data, valid.size);
    mr_buf_free(&valid);
    return s;
}
