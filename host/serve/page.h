// SPDX-License-Identifier: Apache-2.0
// The page at "/": host/serve/page.html as it stands, embedded by the Makefile, and what browsers
// are told beside it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

extern const unsigned char mr_page[];
extern const size_t mr_page_size;

// Names and values in turn, ended by NULL, of the headers that tell a browser what a response may
// do: of the page, which runs the script and the style that are in it and no others, or of the
// rest.
const char *const *mr_page_headers(bool page);
