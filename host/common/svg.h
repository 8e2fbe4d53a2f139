// SPDX-License-Identifier: Apache-2.0
// Words in a picture.
#pragma once

#include <stdio.h>

// As XML has it: what steers is escaped, control characters are left out.
void mr_svg_escape(FILE *out, const char *text);

// An element with other attributes, "" for none.
void mr_svg_text(FILE *out, double x, double y, const char *attributes, const char *text);
