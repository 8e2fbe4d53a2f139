// SPDX-License-Identifier: Apache-2.0
// From a tree to the table of keys. Internal to host/config.
#pragma once

#include "config/key.h"

// Goes through a tree whose root has the keys below r->path.
int mr_keys_walk(struct mr_reader *r, const struct mr_yaml *value);

// Makes a key that was given the one under way, for messages; false if it was not.
bool mr_key_given(struct mr_reader *r, const char *name, size_t base);

// Is there a key of this name, with dots?
bool mr_key_known(const char *path);

// The key of this name, with dots, is given on the command line: the file's value is passed over.
// r->over has room for one more.
void mr_keys_override(struct mr_reader *r, const char *path);
