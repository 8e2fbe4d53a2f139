// SPDX-License-Identifier: Apache-2.0
// The HTTP thread: requests and responses, in libmicrohttpd's thread.
#pragma once

#include "serve/server.h"

int mr_http_open(struct mr_serve *s, struct mr_error *err);
// No more connections; those that are there may still ask, and are refused.
void mr_http_quiesce(struct mr_serve *s);
void mr_http_close(struct mr_serve *s);
