// SPDX-License-Identifier: Apache-2.0
// What `millrace train` is told, and what it has at work.
#pragma once

#include "cli/base/cli.h"
#include "cli/base/option.h"
#include "cli/base/status_line.h"
#include "cli/data/train_data.h"
#include "cli/train/curve.h"
#include "cli/train/log.h"
#include "cli/train/start.h"
#include "common/ranks.h"
#include "config/training.h"
#include "millrace.h"

struct train_args {
    struct cli_common c;
    char **argv;          // the command line, for other engines
    struct mr_training t; // options of the short form go into it, as keys of a configuration do
    const char *config;   // NULL: the short form
    const char *set[64];
    int n_set;
    int mode, max_steps;
    const char *checkpoint;
    char *start;    // weights from scratch that are no checkpoint yet
    char *found;    // the path of one that is
    char *unpacked; // the directory that a packed base is while this runs; pairs.base is its file
    bool mode_given;
    const char *export;
    const char *lora, *adapter;
    struct mr_lora_options pairs; // what they say; rank 0 and no adapter: nothing
    bool merge;
    const char *events, *csv, *svg; // of curves; NULL: none
    int format;                     // enum mr_save_format
    int chunk;
    bool recompute;
    // Of the short form: what its rates are made of.
    const char *schedule;
    bool lr_given, least_given, warmup_given;
    bool moments_given[3], sgd_given[2]; // options of AdamW and Adam, and of SGD
    int optimizer;
    double rate, least;
    int warmup;
    // Of several engines.
    int engines; // 0: nobody said how many
    const char *hosts;
    struct mr_ranks ranks; // this process and the others
    bool ended;            // all of them end here, with one message
};

// Ends with a row without a name.
extern const struct cli_option train_table[];

// What crossed the link in this program's steps (mr_trainer_done); up and down: in the last one.
struct train_link {
    double cycles, up, down, waited[2];
};

struct train_run {
    struct train_args *a;
    struct mr_trainer *trainer;
    struct mr_trainer_info info;
    struct train_data data, held; // held: nothing where a part of the data is held out
    struct train_batch batch;
    struct train_best best;
    struct train_log log;
    struct train_curve curve;
    char title[160]; // of the curve
    struct cli_line line;
    int stop; // the signal after which all ranks stop, as rank 0 has said
    double start;
    double first_loss;           // of a step of this program; 0: none yet
    bool diverged;               // and that was said
    bool fresh;                  // the state is this program's
    uint64_t steps_done, tokens; // by this program; what they learnt from
    struct train_link link;
    unsigned char note[MR_TRAINER_NOTE];
};

// What `millrace train` does when it knows what is asked for: steps, evaluations, checkpoints.

// Steps, with what stands between them.
int train_run(struct train_run *r, struct mr_error *err);
// Losses of held-out data alone: of the state, or of checkpoints.
int train_run_eval(struct train_run *r, struct mr_error *err);
// Also after a failure.
void train_run_close(struct train_run *r);

// The state of a training: a new one, or one that goes on if the command is the one that it began
// with.

// It prints, and has the state: the only process, or rank 0.
static inline bool train_is_first(const struct train_run *r)
{
    return r->a->ranks.rank == 0;
}

struct mr_trainer_options train_options(const struct train_args *a);

// Opens r->trainer and fills in r->info, the number of steps, the note and the best checkpoint.
// What is wrong with the command is said before a state is made; r->fresh says whether one was.
int train_state_open(struct train_run *r, struct mr_error *err);

// Whether a LoRA adapter learns instead of the model.
bool train_learns_pairs(const struct train_args *a);

// Into r->note: the rate of the step that it goes with.
void train_note_rate(struct train_run *r, double rate);

// Whether all ranks have what rank 0 has: the version, the model, the configuration and the data.
// `err` is that of a rank that has not.
int train_compare(struct train_run *r, struct mr_error *err);

// The command line of `millrace train` where a configuration stands in it.

// Words as the parser wants them: the first argument that is named so is a configuration, and its
// keys become --set KEY=VALUE. In one block; NULL without memory. struct train_args keeps `argv`.
char **train_words(void *args, char **argv);
