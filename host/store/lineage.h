// SPDX-License-Identifier: Apache-2.0
// Which training a state is of: a number over what it was made from and every update since. Two
// trainings whose updates differ have different ones from there on. One that was stopped and
// resumed has that of one that was not, and a caller's notes are in none. Patches have it beside
// the header, so that files of different trainings are not taken for one state
// (docs/inside/store.md).
#pragma once

#include "store/header.h"

// Where a training is: the steps done, and its lineage there.
struct mr_store_point {
    uint64_t step, lineage;
};

struct mr_store_point mr_store_begins(const struct mr_store_header *header); // of a new state
struct mr_store_point mr_store_now(const struct mr_store_header *header);
// Behind the update that the header says is under way. Of an older version the lineage stays 0, as
// the program that began the update has it.
struct mr_store_point mr_store_after(const struct mr_store_header *header);
