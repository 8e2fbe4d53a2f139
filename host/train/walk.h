// SPDX-License-Identifier: Apache-2.0
// The walk of a backward pass, from item to item, for the files that do it.
#pragma once

#include "train/pass_impl.h"

// Row-maximum slots and words of activation memory: what is read, and what comes behind it.
enum { READ_SLOT, WRITTEN_SLOT, OTHER_SLOT };
enum { READERS = 4 }; // of what a norm writes, at most: Q, K, V and the hidden layer

struct norm_of {
    int layer, item;
    const struct mr_item *of; // NULL: none
};

struct walk {
    struct mr_pass *p;
    const struct mr_list *list;
    int layer;
    struct norm_of late; // whose gain's and bias's gradients the next item's programs have
    int readers[READERS], n_readers; // items that read a norm, whose dX comes with the others'
    struct mr_error *err;
};

// Ends a program that has not the room for one more chunk, of so many rows: all have as many.
int walk_make_room(struct run *r, int rows);
// Pauses are short: more parts of sums than two would be loaded in vain.
void walk_few_parts(struct run *r);
// Item i, the attention: the gradients of Q, K and V (walk_heads.c).
int walk_attend(struct walk *w, int i);
