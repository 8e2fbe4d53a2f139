// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "serve/server.h"

// Under the lock, now and then: ends what takes too long and requests whose clients have gone.
void mr_serve_watch(struct mr_serve *s);
