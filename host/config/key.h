// SPDX-License-Identifier: Apache-2.0
// What a key of a training's configuration is, and values of keys. Internal to host/config.
#pragma once

#include "common/error.h"
#include "common/str.h"
#include "config/training.h"
#include "config/yaml.h"

enum mr_key_kind {
    MR_KEY_WHOLE,   // int
    MR_KEY_LONG,    // int64_t
    MR_KEY_REAL,    // double
    MR_KEY_FLAG,    // bool
    MR_KEY_TEXT,    // const char *
    MR_KEY_IGNORED, // means nothing here
    MR_KEY_FIXED,   // has the value `words`, or is refused because of `why`
    MR_KEY_REFUSED, // because of `why`
    MR_KEY_SPECIAL, // take() does it
};

struct mr_reader;
struct mr_key {
    const char *name, *aliases; // "decay_steps|steps"; of keys that mean nothing "", and all names
    enum mr_key_kind kind;
    double low, high;
    bool above; // `low` itself is excluded
    size_t at;  // in the structure of its place
    const char *words, *why;
    int (*take)(struct mr_reader *r, const struct mr_key *key, void *to,
                const struct mr_yaml *value);
};

// Keys below "a.b.", in struct mr_training at `base`.
struct mr_key_place {
    const char *prefix;
    const struct mr_key *keys; // ends with a name of NULL
    size_t base;
};

// Flags of a model that its type decides.
enum {
    MR_FLAG_TIED,
    MR_FLAG_HEAD_BIAS,
    MR_FLAG_QKV_BIAS,
    MR_FLAG_OUT_BIAS,
    MR_FLAG_INNER_BIAS,
    MR_FLAGS,
};

enum { MR_KEY_PATH = 128, MR_KEYS_GIVEN = 512 };

struct mr_reader {
    struct mr_training *t;
    const char *where; // the file
    char path[MR_KEY_PATH];
    int line;
    bool again; // on the command line, where keys that were given may be given again
    struct {
        const struct mr_key_place *place;
        const struct mr_key *key;
        int line;
    } given[MR_KEYS_GIVEN];
    int n_given;
    // Keys that the command line gives, whose values in the file do not count.
    struct {
        const struct mr_key_place *place;
        const struct mr_key *key;
    } *over;
    int n_over;
    int flag[MR_FLAGS];   // of the model; 0: not said, 1: false, 2: true
    const char *rotating; // "rotary" or "learned"; NULL: not said
    bool rates, mode;     // are given
    // Goes through the keys of a map below `path`.
    int (*walk)(struct mr_reader *r, const struct mr_yaml *value);
    struct mr_error *err;
};

// "FILE:LINE: KEY" and the rest of the message.
int mr_key_fail(const struct mr_reader *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
// Puts "FILE:LINE: KEY" in front of what a callee left in *r->err; returns its status.
int mr_key_blame(const struct mr_reader *r);
// Text that lives as long as the training; NULL without memory.
char *mr_key_text(struct mr_reader *r, const char *text);
// "FILE:LINE: KEY" of the key under way.
char *mr_key_where(struct mr_reader *r);

// What a value is, for messages.
struct mr_shown mr_key_shown(const struct mr_yaml *value);
// Numbers as YAML and Python write them. Whole ones where `key` says so, and in its range.
int mr_key_number(const struct mr_reader *r, const struct mr_key *key, const struct mr_yaml *value,
                  double *out);
int mr_key_flag(const struct mr_reader *r, const struct mr_yaml *value, bool *out);

// The keys of a training's configuration: their names in both generations, types, ranges, and what
// is refused and why. Internal to host/config.
extern const struct mr_key_place mr_key_places[]; // ends with a prefix of NULL

// From a tree to the table of keys. Internal to host/config.

// Goes through a tree whose root has the keys below r->path.
int mr_keys_walk(struct mr_reader *r, const struct mr_yaml *value);

// Makes a key that was given the one under way, for messages; false if it was not.
bool mr_key_given(struct mr_reader *r, const char *name, size_t base);

// Is there a key of this name, with dots?
bool mr_key_known(const char *path);

// The key of this name, with dots, is given on the command line: the file's value is passed over.
// r->over has room for one more.
void mr_keys_override(struct mr_reader *r, const char *path);
