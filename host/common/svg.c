// SPDX-License-Identifier: Apache-2.0
#include "common/svg.h"

void mr_svg_escape(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *as = *text == '&'   ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                                        : NULL;
        if (as)
            fputs(as, out);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
}

void mr_svg_text(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s%s>", x, y, *attributes ? " " : "", attributes);
    mr_svg_escape(out, text);
    fputs("</text>\n", out);
}
