// SPDX-License-Identifier: Apache-2.0
// The thread of an encoder's server.
#ifndef MILLRACE_SERVE_ENCODER_H
#define MILLRACE_SERVE_ENCODER_H

// Answers the jobs one after the other until the server ends. `unit`: its only struct mr_unit.
void *mr_serve_encoder(void *unit);

#endif
