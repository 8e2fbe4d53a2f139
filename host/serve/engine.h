// SPDX-License-Identifier: Apache-2.0
#ifndef MILLRACE_SERVE_ENGINE_H
#define MILLRACE_SERVE_ENGINE_H

#include "serve/server.h"

// The engine's thread: the only one that uses session and scheduler. `serve` is a struct mr_serve.
void *mr_serve_engine(void *serve);

#endif
