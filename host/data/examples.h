// SPDX-License-Identifier: Apache-2.0
// Training data in HDF5, in the shape of Cerebras' Model Zoo (docs/train/data.md): `data` [n, 3,
// length] has ids, 0 or 1 for targets that are learnt, and targets. Of texts with labels, it has
// ids, 1 for each token of the text, and types of tokens; `labels` [n] has their labels, and the
// attribute `label_names` what these are called. Files that `millrace data` wrote have a checksum
// in front of that.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/output.h"
#include "data/labels.h"

// Documents in windows: what `train` learns from a text, and what `data` writes.

// Tokens `at` .. at + count - 1; the target of each is the token behind it. The first `skip` of
// them have none that is learnt.
struct mr_window {
    size_t at;
    int count, skip;
};

struct mr_cut {
    int sequence; // tokens of a window at most
    int overlap;  // with the window before, below `sequence`; its targets are learnt once
};

// The windows of a document, tokens from .. to - 1, of which `learnt` is the first that is a
// target. Windows in which nothing is learnt are left out. Returns how many; `out` may be NULL.
size_t mr_windows_cut(const struct mr_cut *cut, size_t from, size_t learnt, size_t to,
                      struct mr_window *out);

// ---- what lies in front of the file that `millrace data` wrote ----------------------------------

enum { MR_EXAMPLES_FRONT = 512, MR_EXAMPLES_VERSION = 1, MR_EXAMPLES_LONGEST = 1 << 20 };
struct mr_examples_front {
    char magic[8]; // "MILLRDAT"
    uint32_t version, bytes;
    uint64_t size, hash; // of the file, and of what follows the front
    unsigned char zero[MR_EXAMPLES_FRONT - 40];
    uint64_t check; // hash of the front before it
};

// ---- reading ------------------------------------------------------------------------------------

enum { MR_EXAMPLES_FILES = 512 };

struct mr_examples_file {
    int64_t file, data; // HDF5's
    char *path;
};

// A row in which something is learnt.
struct mr_example {
    uint64_t row;
    int file, count; // tokens up to the last one with a target, or of the text
    int32_t label;   // of the text; -1: of a window
};

struct mr_examples {
    struct mr_examples_file *files;
    int n_files;
    int length;              // of a row
    int types;               // of tokens, of texts with labels; 0: windows
    struct mr_labels labels; // of all files
    struct mr_example *list;
    size_t count;
    uint64_t tokens;     // of them together
    uint64_t targets;    // that are learnt
    uint64_t hash;       // of all tokens and targets
    uint64_t vocabulary; // mr_vocabulary_hash() of the tokenizer; 0: not said
    int32_t *row;        // [3][length]
};

// Is there a file, and is it HDF5, or was it, by its name or by what stands in front? Or a
// directory?
bool mr_examples_is(const char *path);

// Opens files, or all .h5 files of directories, in the order of their names, one behind the other,
// and reads all of them once: every id and target is below `vocab`, the mask is 0 or 1. On success
// the caller owns *e until mr_examples_close().
int mr_examples_open_all(struct mr_examples *e, const char *const *paths, int count, int vocab,
                         struct mr_error *err);
// The same of texts with labels, whose tokens have types below `types`.
int mr_examples_open_labelled(struct mr_examples *e, const char *const *paths, int count, int vocab,
                              int types, struct mr_error *err);
void mr_examples_close(struct mr_examples *e);

// Example i: tokens and targets[e->list[i].count]; -1 where none is learnt. Of a text with a label,
// its tokens and their types.
int mr_examples_read(struct mr_examples *e, size_t i, int32_t *tokens, int32_t *targets,
                     struct mr_error *err);

// What each token of the model stands for, as a hash; 0: it has no tokenizer.
struct mr_model;
struct mr_encoder;
uint64_t mr_vocabulary_hash(const struct mr_model *model, int vocab);
uint64_t mr_encoder_vocabulary_hash(const struct mr_encoder *encoder, int vocab);

// ---- writing ------------------------------------------------------------------------------------

struct mr_examples_writer {
    struct mr_output out;
    int64_t file, data;
    const char *path;
    int length, filled, block; // rows in memory, and when they are written
    uint64_t count;
    int32_t *rows;   // [block][3][length]
    int32_t *labels; // [count] of texts; NULL: windows
};

struct mr_examples_notes {
    uint64_t vocabulary;
    int vocab_size, overlap;
    struct mr_labels *labels; // of the texts, which are sorted, unless the list is closed
};

// Nothing shows at `path` before mr_examples_end(). It must stay valid.
int mr_examples_create(struct mr_examples_writer *w, const char *path, int length,
                       struct mr_error *err);
// A window of a document's ids; what is behind it is filled with `pad`.
int mr_examples_add(struct mr_examples_writer *w, const int32_t *ids,
                    const struct mr_window *window, int32_t pad, struct mr_error *err);
// A text of `count` tokens, and the number of its label.
int mr_examples_add_text(struct mr_examples_writer *w, const int32_t *ids, const int32_t *types,
                         int count, int32_t pad, int32_t label, struct mr_error *err);
// Ends it: the file is there then, or, where rc says that something has failed, is not. Returns rc,
// or why there is none.
int mr_examples_end(struct mr_examples_writer *w, const struct mr_examples_notes *notes, int rc,
                    struct mr_error *err);
