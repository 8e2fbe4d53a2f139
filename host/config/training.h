// SPDX-License-Identifier: Apache-2.0
// Everything that a training is told: by the options of `millrace train`, or by a configuration
// file of Cerebras' Model Zoo, of either generation (docs/train/train-config.md).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/config.h"
#include "store/update.h"
#include "store/rates.h"

enum mr_training_mode { MR_TRAIN, MR_EVAL, MR_TRAIN_AND_EVAL, MR_EVAL_ALL, MR_TRAINING_MODES };

enum { MR_TRAINING_PATHS = 64, MR_TRAINING_PATTERNS = 64 };

// Where examples come from.
struct mr_training_input {
    const char *data;  // a text, a file of `millrace data`, or a directory of them
    int batch;         // windows of a step; 0: not said
    int micro;         // windows of a micro-batch; 0: not said
    int sequence;      // tokens of a window of a text; 0: not said
    bool labelled;     // texts with labels, by data_processor
    bool shuffle;      // draw the order of each epoch
    int64_t seed;      // of that order
    const char *where; // "FILE:LINE: KEY" of `data`, for messages
    int more;          // behind `data`
    const char *others[MR_TRAINING_PATHS - 1];
};
enum { MR_HELD_FIT, MR_HELD_VALIDATE, MR_HELD_ALL, MR_HELD }; // inputs that are not learnt

// Sizes that a model's configuration may say.
enum mr_training_size {
    MR_SIZE_VOCABULARY,
    MR_SIZE_POSITIONS,
    MR_SIZE_WIDTH,
    MR_SIZE_LAYERS,
    MR_SIZE_HEADS,
    MR_SIZE_INNER,
    MR_SIZE_ROTARY,
    MR_TRAINING_SIZES,
};

// How weights from scratch are drawn.
enum { MR_START_TABLE, MR_START_MATRIX, MR_START_OUTPUT, MR_TRAINING_STARTS };
struct mr_training_start {
    double deviation; // 0: not said
    double low, high; // where the draw is cut off; both 0: nowhere
};

struct mr_training_model {
    const char *type; // "gptj", "gpt2", or "bert" for a classifier; NULL: there is no model
    int size[MR_TRAINING_SIZES];
    const char *where[MR_TRAINING_SIZES]; // "FILE:LINE: KEY"; NULL: not said
    double epsilon;                       // of LayerNorm; 0: not said
    const char *epsilon_where;
    int labels; // of a classifier; 0: not said
    const char *labels_where;
    unsigned function; // MR_FUNCTION_*; 0: not said
    const char *function_where;
    double range; // deviation of weights that have no initialiser; 0: not said
    struct mr_training_start start[MR_TRAINING_STARTS];
};

// A LoRA adapter that learns instead of the model.
struct mr_training_lora {
    int rank; // 0: the whole model learns
    double alpha;
    const char *targets[MR_TRAINING_PATTERNS + 1]; // none: PEFT's choice
};

struct mr_training {
    enum mr_training_mode mode;
    // Data. Of `train`, steps have batch = micro * accumulate windows.
    // Behind mr_training_load() held[0] is the one of the mode.
    struct mr_training_input train, held[MR_HELD];
    int accumulate;
    double share; // of the training data that is held out, where there is no other
    int positions;
    // The optimizer.
    enum mr_update_kind optimizer; // AdamW, Adam, or SGD without Nesterov
    double beta1, beta2, epsilon, decay, clip;
    double momentum, dampening; // of SGD
    bool nesterov;
    struct mr_rates rates;
    const char *frozen[MR_TRAINING_PATTERNS + 1]; // of tensors' names; NULL behind them
    const char *no_decay[MR_TRAINING_PATTERNS + 1];
    int n_frozen, n_no_decay;
    struct mr_training_lora lora;
    int loss_scaling; // 0: by the targets of a step; 1: by its windows
    double loss_weight;
    const char *loss_where; // "FILE:LINE: KEY" of `loss_scaling`
    // The run. The last step is `steps`, or so many more than there are, or ends so many epochs.
    int steps, more_steps, epochs, epoch_steps;
    int log_steps, eval_frequency, eval_steps, checkpoint_steps;
    int eval_windows;    // held-out windows of an evaluation, evenly spread; 0: as eval_steps says
    int max_checkpoints; // that stay, beside the first and the best one; 0: all
    int64_t seed;        // of weights from scratch
    bool fresh;          // a state that exists is not gone on with
    const char *checkpoint, *output;
    const char *events; // where event files go; "": beside the state; NULL: there are none
    struct mr_training_model model;
    void *memory; // of what a file says
};

// What the optimizer is told, with momentum and dampening in the place of betas.
struct mr_update_options mr_training_optimizer(const struct mr_training *t);

// "r=8,alpha=16,targets=q_proj,v_proj": the rank, of which alpha is the same unless it is there,
// and names of modules.
int mr_training_lora(struct mr_training *t, const char *text, struct mr_error *err);

// A copy of a text that lives as long as the training. NULL: no memory.
char *mr_training_text(struct mr_training *t, const char *text);
// Releases what a configuration says, also after a failure.
void mr_training_free(struct mr_training *t);
