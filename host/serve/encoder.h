// SPDX-License-Identifier: Apache-2.0
// The thread of an encoder's server.
#pragma once

// Answers the jobs one after the other until the server ends. `unit`: its only struct mr_unit.
void *mr_serve_encoder(void *unit);
