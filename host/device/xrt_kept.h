// SPDX-License-Identifier: Apache-2.0
// Weights that stay on the card when their session is closed, while the process lives: a later
// session on the card with the same weights finds them. They hold the card open. Those that no
// session uses give way when memory runs out or the card is to be opened with another xclbin.
// Everything but mr_xrt_kept_any() may call XRT: for the worker's thread.
#pragma once

#include "device/xrt_device.h"

// The area of that key, now with one more user; false if there is none.
bool mr_xrt_kept_find(struct mr_xrt_card *card, const struct mr_xrt_key *key,
                      struct mr_xrt_area *area);
// Keeps an area, with one user. false without memory for that: it stays the caller's.
bool mr_xrt_kept_add(struct mr_xrt_card *card, const struct mr_xrt_key *key,
                     const struct mr_xrt_area *area);
void mr_xrt_kept_leave(const struct mr_xrt_area *area);

// Frees what no session uses, of that card or (NULL) of all cards; false if there was nothing.
bool mr_xrt_kept_drop(const struct mr_xrt_card *card);
bool mr_xrt_kept_any(void);
