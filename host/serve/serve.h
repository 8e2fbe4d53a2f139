// SPDX-License-Identifier: Apache-2.0
// `millrace serve`: a page and the OpenAI API over a device's units (docs/use/serve.md).
#pragma once

#include "millrace.h"
#include "serve/options.h"

struct mr_serve;

enum { MR_SERVE_UNITS = 64 };

// sessions[units]: one for each unit of the device, 1..MR_SERVE_UNITS, with the same max_seqs. They
// and the model must outlive the server; nothing else may use them meanwhile.
int mr_serve_open(struct mr_serve **serve, struct mr_model *model,
                  struct mr_session *const *sessions, int units, const struct mr_serve_options *opt,
                  struct mr_error *err);
// An encoder, which gives embeddings and nothing else. It must outlive the server, too.
int mr_serve_open_encoder(struct mr_serve **serve, struct mr_encoder *encoder,
                          const struct mr_serve_options *opt, struct mr_error *err);
int mr_serve_port(const struct mr_serve *serve);
int mr_serve_texts(const struct mr_serve *serve);     // at a time, on all units
bool mr_serve_is_local(const struct mr_serve *serve); // this machine alone can reach it

// Serves until mr_serve_stop(), then no longer accepts and returns when all accepted requests have
// been answered. Fails when the device does.
int mr_serve_run(struct mr_serve *serve, struct mr_error *err);
void mr_serve_stop(void); // async-signal-safe
void mr_serve_close(struct mr_serve *serve);
