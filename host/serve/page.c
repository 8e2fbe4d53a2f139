// SPDX-License-Identifier: Apache-2.0
#include "serve/page.h"

#include "mr_page.inc" // made of page.html: MR_PAGE_BYTES and the hashes of its script and style

const unsigned char mr_page[] = {MR_PAGE_BYTES};
const size_t mr_page_size = sizeof mr_page;

// Nothing is fetched from elsewhere, nothing runs but what is in the page, and it asks this server
// only. Pictures are data: that the page itself has.
#define COMMON                                                                                     \
    "X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer", "X-Frame-Options",      \
        "DENY", "Cross-Origin-Resource-Policy", "same-origin"

const char *const *mr_page_headers(bool page)
{
    static const char *const of_page[] = {
        COMMON,
        "Content-Security-Policy",
        "default-src 'none'; script-src '" MR_PAGE_SCRIPT "'; style-src '" MR_PAGE_STYLE
        "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "Cross-Origin-Opener-Policy",
        "same-origin",
        "Permissions-Policy",
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        NULL};
    static const char *const of_rest[] = {COMMON, "Content-Security-Policy",
                                          "default-src 'none'; frame-ancestors 'none'", NULL};
    return page ? of_page : of_rest;
}
