// SPDX-License-Identifier: Apache-2.0
// What a model is: one description from which everything else follows.
//
// An architecture (struct mr_arch) says how its config.json is read and lists what it computes: the
// tables that are looked up for a token, the items of a block, and the items behind the last block.
// An item is one thing that the engine can do and the reference can check. The lists are in order
// of computation, which is also the order of the weight stream. From them follow the tensors that a
// checkpoint must have, the fp32 reference (host/cpu), smoothing and packing (host/pack), the
// program with its semaphores (host/engine) and synthetic models. docs/inside/adding-a-model.md
// walks through an example.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/config.h"

// ---- items -------------------------------------------------------------------------------------

enum mr_kind {
    MR_EMBED,  // a row of a table is added to the residual; the host looks it up
    MR_NORM,   // LayerNorm of the residual
    MR_LINEAR, // a matrix, its bias, an epilogue
    MR_ATTEND, // causal attention of Q over the K and V of its sequence, itself included
};

// Where an item reads and writes. Whatever is written to the residual is added to it. An item reads
// what the last item before it wrote. A row has one of each.
enum mr_place {
    MR_RESIDUAL,
    MR_X,         // what matrices of n_embd inputs read
    MR_Q,         // of all heads
    MR_K,         // goes to the KV store as well
    MR_V,         // as above
    MR_ATTENTION, // attention's result, of all heads
    MR_HIDDEN,    // inside of the feed-forward
    MR_RESULT,    // logits
    MR_PLACES,
    MR_LABELS = MR_PLACES, // of a classifier: the host's alone
};

enum mr_epilogue {
    MR_PLAIN,
    MR_ROTARY,   // of Q and K
    MR_FUNCTION, // the one of the configuration
};

enum mr_by { MR_BY_TOKEN, MR_BY_POSITION, MR_BY_TYPE };

struct mr_item {
    enum mr_kind kind;
    // Its tensors are <name>.weight and, of norms and where `bias` says so, <name>.bias. In a block
    // the name is relative to the block, elsewhere it is the whole one. A matrix with the name of a
    // table is tied to it. Attention has no tensors.
    const char *name;
    const char *label; // what timelines call it
    enum mr_place from, to;
    bool bias;
    bool transposed; // the checkpoint has the matrix as [inputs][outputs] (Conv1D)
    enum mr_epilogue epilogue;
    enum mr_by by; // of a table
    // Of one tensor for several matrices (GPT-2's c_attn): how many items share it, and which of
    // its equal parts, along the outputs, is this one's, from 0. Such items have the same name and
    // stand one behind the other. shares 0: the tensor is the item's own.
    int shares, share;
    // Of a norm of an encoder: what it writes is the residual from there on, too (post-LN).
    bool back;
};

// ---- architectures -----------------------------------------------------------------------------

// An integer of config.json. The writer of synthetic checkpoints reads the same table.
struct mr_config_key {
    const char *key;
    size_t at;   // of the int in struct mr_config
    int high;    // 1..high is supported
    int missing; // its value where the key is missing, or one of the following
};

enum {
    MR_REQUIRED = -1,
    MR_FOUR_EMBD = -2, // missing or null: 4 * n_embd
};

#define MR_KEY(member) offsetof(struct mr_config, member)

// A boolean of config.json; false where the key is missing.
struct mr_config_flag {
    const char *key;
    size_t at; // of the bool in struct mr_config
};

// A rate of dropout. Nothing here drops anything; training says so.
struct mr_config_rate {
    const char *key;
    double missing; // as transformers has it
};

// A key that, where it is there, must have one value, or one of two strings.
struct mr_config_setting {
    const char *key;
    bool function;       // the name of a function, which struct mr_config takes; else
    const char *only;    // a string; NULL: a boolean,
    bool must;           // which must be this
    const char *message; // of a string what it is, of a boolean what is not supported
};

struct mr_list {
    const struct mr_item *items;
    int count;
};

#define MR_LIST(array) {array, sizeof(array) / sizeof *(array)}
// Of struct mr_arch: the member and its count, of the array of the same name.
#define MR_COUNTED(name) .name = name, .n_##name = sizeof name / sizeof *name

// What stands on top of an encoder; the host computes it.
enum mr_head {
    MR_HEAD_POOLER, // of the first row: a matrix and tanh
    MR_HEAD_WORDS,  // the masked word: a matrix, GELU, LayerNorm, and the table of tokens
    MR_HEAD_NEXT,   // of the pooler: do the two texts follow each other?
    MR_HEAD_LABELS, // of the pooler, or of each row
    MR_HEAD_SPAN,   // of each row: does the answer begin here, does it end here?
    MR_HEADS,
};

enum { MR_HEAD_TENSORS = 16 }; // of an architecture, at most

enum mr_head_size { MR_SIZE_NONE, MR_SIZE_EMBD, MR_SIZE_VOCAB, MR_SIZE_LABELS, MR_SIZE_TWO };

// A tensor of a head. A head's tensors are all there, or none of them is.
struct mr_head_tensor {
    enum mr_head head;
    const char *name;             // the whole one
    enum mr_head_size rows, cols; // cols MR_SIZE_NONE: a vector
    const char *copy_of;          // it may be missing: it is this one once more; else NULL
};

// An entry of "architectures" in config.json, and the heads that such a model must have.
struct mr_class {
    const char *name;
    unsigned heads; // bits of 1 << enum mr_head
    bool by_token;
};

// A shape that "synthetic:<name>" stands for.
struct mr_preset {
    const char *name;
    struct mr_config config;
};

struct mr_arch {
    const char *type;  // model_type of config.json
    const char *title; // "GPT-J"
    const struct mr_config_key *keys;
    int n_keys;
    const struct mr_config_flag *flags;
    int n_flags;
    const struct mr_config_setting *settings;
    int n_settings;
    const struct mr_config_rate *dropout;
    int n_dropout;
    const char *epsilon;   // key of LayerNorm's epsilon
    float epsilon_missing; // its value where the key is missing; 0: 1e-5
    unsigned function;     // MR_FUNCTION_* where a configuration names none
    // Token ids where bos_token_id and eos_token_id are missing; -1: none.
    int bos, eos;
    const char *prefix;       // of the names of tensors; files may leave it out
    const char *block_prefix; // begins with `prefix`; number of the block and a full stop follow
    // Names within a block that are skipped: masks that some versions of transformers saved.
    const char *const *skipped;
    int n_skipped;
    // A name under which files may have the tied matrix once more, equal to its table; or NULL.
    const char *tied_copy;
    // Reads texts in both directions and writes none: `millrace embed` and its like. Its result is
    // the last X, so it has no tail.
    bool encoder;
    bool old_norms;     // files may say gamma and beta for a norm's weight and bias
    const char *buffer; // a name of the model that is skipped; may be NULL
    const struct mr_head_tensor *heads;
    int n_heads;
    const struct mr_class *classes;
    int n_classes;
    struct mr_list tables; // MR_EMBED, first the one by token
    struct mr_list front;  // of an encoder: norms of their sum
    struct mr_list block;
    struct mr_list tail; // behind the last block, for rows that want a result
    // Of an encoder's classifier, which the host computes: matrices that are tensors as others
    // where the configuration says that they learn.
    struct mr_list top;
    const struct mr_preset *presets;
    int n_presets;
};

// ---- what follows from the lists ---------------------------------------------------------------

// The axis that a place lies along; Q, K, V and ATTENTION are split into heads.
enum mr_axis { MR_AXIS_EMBD, MR_AXIS_HEADS, MR_AXIS_INNER, MR_AXIS_VOCAB, MR_AXIS_LABELS };
enum mr_axis mr_place_axis(enum mr_place place);
int mr_axis_length(const struct mr_config *c, enum mr_axis axis);

// The item of `list` that wrote what item i reads in `place`; -1: none of them did.
int mr_item_writer(const struct mr_list *list, int i, enum mr_place place);

enum mr_part { MR_WEIGHT, MR_BIAS, MR_PARTS };

// Has the item such a tensor?
bool mr_item_has(const struct mr_item *item, enum mr_part part);

// Is its gradient 0 whatever the batch? The bias of K is where K does not rotate: it adds the same
// to all scores of a row, which softmax does not see. What a sum of gradients has is rounding.
bool mr_item_gradient_is_zero(const struct mr_item *item, enum mr_part part);

// Is there anything of it in the weight stream?
bool mr_item_streams(const struct mr_item *item);

// Does the host compute it in training? What is in front of an encoder's layers, and on top.
bool mr_item_on_host(const struct mr_arch *arch, const struct mr_item *item);

// Is its matrix that of a table?
bool mr_item_tied(const struct mr_arch *arch, const struct mr_item *item);

// Does the model rotate anything?
bool mr_arch_rotates(const struct mr_arch *arch);
// What scores of layer `layer` are divided by.
double mr_attention_root(const struct mr_config *c, int layer);
// The table by position, or NULL.
const struct mr_item *mr_arch_positions(const struct mr_arch *arch);

// ---- smoothing ---------------------------------------------------------------------------------

// Factors that may move between items without changing a result. A group of factors belongs to the
// item whose output they make smaller: a LayerNorm (to the columns of the matrices that read it),
// the matrix of V (to the columns of what reads the attention) and that of K (to the rows of Q's).
// Nothing moves into a tied matrix, which is also looked up.
struct mr_scaling {
    int rows;     // item whose group the outputs have, or -1
    int row_sign; // -1: they get 2^-s, as the item that the group belongs to; 1: 2^s
    int cols;     // item whose group the inputs have (2^s), or -1
};

// Of item i of a list, which is a norm (rows only) or a matrix.
struct mr_scaling mr_item_scaling(const struct mr_arch *arch, const struct mr_list *list, int i);

extern const struct mr_arch mr_arch_bert;

extern const struct mr_arch mr_arch_gpt2;

extern const struct mr_arch mr_arch_gptj;
