// SPDX-License-Identifier: Apache-2.0
// What a request says in its first line and its headers: where it goes, and whether it is refused
// whatever its body says.
#pragma once

#include "serve/server.h"

enum mr_serve_path mr_request_path(const char *url);
// Whether a path takes POST and a body; else GET and HEAD.
bool mr_request_is_post(enum mr_serve_path path);

// When the headers are there: the status of a request whose body is not even read, with *message;
// 0: its body may come.
int mr_request_frame(const struct mr_serve *s, struct MHD_Connection *connection,
                     const char **message);

// The origin of --allow-origin whose page asks; NULL: none of them does.
const char *mr_request_origin(const struct exchange *x);
// Whether a browser asks for such a page whether it may ask. Then there is nothing to screen.
bool mr_request_is_preflight(const struct exchange *x, const char *method);

// When all of it is there: the status of a request that is wrong by path, method, key, type or
// size, with *message; 0: nothing is.
int mr_request_screen(const struct exchange *x, const char *method, const char **message);
