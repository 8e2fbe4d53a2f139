// SPDX-License-Identifier: Apache-2.0
// Configurations of trainings: what each key becomes, names and aliases, both generations, keys on
// the command line, and what does not belong together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "common/error.h"
#include "config/read.h"
#include "model/arch.h"
#include "unit/check.h"
#include "unit/files.h"

#define DATA  "train_input: {data_dir: text, batch_size: 12}\n"
#define HELD  "eval_input: {data_dir: held}\n"
#define STEPS "runconfig: {max_steps: 7}\n"
#define RATE  "optimizer: {learning_rate: 1e-3}\n"

// Of text alone, or of a file and what stands on the command line.
static int parse(struct mr_training *t, int mode, const char *text, struct mr_error *err)
{
    return mr_training_parse(t, mode, text, strlen(text), "a.yaml", err);
}

static struct mr_training must(int mode, const char *text)
{
    struct mr_error err = {0};
    struct mr_training t;
    check(parse(&t, mode, text, &err), &err);
    return t;
}

static struct mr_training must_with(const char *text, const char *const *set, int sets)
{
    struct mr_error err = {0};
    struct mr_training t;
    const char *path = files_write_text("a.yaml", text);
    check(mr_training_load(&t, MR_TRAINING_MODES, path, set, sets, &err), &err);
    return t;
}

static void refuse(const char *text, int status, const char *words)
{
    struct mr_error err = {0};
    struct mr_training t;
    int rc = parse(&t, MR_TRAINING_MODES, text, &err);
    if (rc != status || !strstr(err.text, words))
        fail_msg("%s: %d, '%s'; expected %d, '%s'", text, rc, err.text, status, words);
    mr_training_free(&t);
}

// ---- what a key becomes -------------------------------------------------------------------------

static void what_is_not_said_is_as_in_the_model_zoo(void **unused)
{
    (void)unused;
    struct mr_training t = must(MR_TRAINING_MODES, DATA STEPS RATE);
    assert_int_equal(t.mode, MR_TRAIN);
    assert_int_equal(t.optimizer, MR_ADAMW);
    assert_true(t.beta1 == 0.9 && t.beta2 == 0.999 && t.epsilon == 1e-6 && t.decay == 0);
    assert_true(t.clip == 0 && t.momentum == 0 && t.dampening == 0 && !t.nesterov);
    assert_true(t.log_steps == 1 && t.eval_frequency == 0 && t.checkpoint_steps == 0);
    assert_true(t.max_checkpoints == 0 && t.seed == 0 && !t.fresh && !t.train.shuffle);
    assert_true(t.loss_scaling == 0 && t.loss_weight == 1);
    assert_string_equal(t.train.data, "text");
    assert_string_equal(t.train.where, "a.yaml:1: train_input.data_dir");
    assert_true(!t.frozen[0] && !t.no_decay[0] && !t.checkpoint && !t.output && !t.model.type);
    for (int step = 1; step < 9; step++)
        assert_true(mr_rates_at(&t.rates, step) == 1e-3);
    mr_training_free(&t);
}

// Windows of a step and, where nobody says, the most up to 8 that divide them.
static void steps_are_divided_into_equal_parts(void **unused)
{
    (void)unused;
    static const int want[][2] = {{1, 1},  {8, 8},  {12, 6}, {13, 1},
                                  {14, 7}, {16, 8}, {22, 2}, {1048576, 8}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, STEPS RATE "train_input: {data_dir: t, batch_size: %d}\n",
                       want[i][0]);
        struct mr_training t = must(MR_TRAIN, text);
        assert_int_equal(t.train.micro, want[i][1]);
        assert_int_equal(t.accumulate, want[i][0] / want[i][1]);
        mr_training_free(&t);
    }
    refuse(STEPS RATE "train_input: {data_dir: t, batch_size: 12, micro_batch_size: 5}",
           MR_ERR_USAGE, "batch_size, 12, is no multiple of 5");
}

// Both of a line say the same.
static void aliases_are_the_same_key(void **unused)
{
    (void)unused;
    static const char *const same[][2] = {
        {"optimizer: {learning_rate: 1e-3, eps: 1e-4}",
         "optimizer: {base_lr: 1e-3, epsilon: 1e-4}"},
        {"optimizer: {learning_rate: 1e-3, weight_decay: 0.5}",
         "optimizer: {learning_rate: 1e-3, weight_decay_rate: 0.5}"},
        {"optimizer: {learning_rate: 1e-3, betas: [0.5, 0.25]}",
         "optimizer: {learning_rate: 1e-3, beta1: 0.5, beta2: 0.25}"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[2][300];
        struct mr_training t[2];
        for (int k = 0; k < 2; k++) {
            (void)snprintf(text[k], sizeof text[k], DATA STEPS "%s\n", same[i][k]);
            t[k] = must(MR_TRAIN, text[k]);
        }
        assert_true(t[0].epsilon == t[1].epsilon && t[0].decay == t[1].decay);
        assert_true(t[0].beta1 == t[1].beta1 && t[0].beta2 == t[1].beta2);
        for (int k = 0; k < 2; k++)
            mr_training_free(&t[k]);
    }
    struct mr_training t =
        must(MR_TRAIN, DATA RATE "runconfig: {max_steps: 7, save_checkpoints_steps: 3, "
                                 "save_summary_steps: 2, keep_checkpoint_max: 4}\n");
    assert_true(t.checkpoint_steps == 3 && t.log_steps == 2 && t.max_checkpoints == 4);
    mr_training_free(&t);
}

static void both_generations_say_the_same(void **unused)
{
    (void)unused;
    static const char old[] = "train_input: {data_dir: [a, b], batch_size: 6, shuffle: yes, "
                              "shuffle_seed: 9, micro_batch_size: 3}\n"
                              "eval_input: {data_dir: c}\n"
                              "model: {max_position_embeddings: 99}\n"
                              "optimizer: {optimizer_type: sgd, momentum: 0.5, nesterov: true, "
                              "weight_decay: 0.25, learning_rate: 1e-2, max_gradient_norm: 2}\n"
                              "runconfig: {max_steps: 7, eval_frequency: 5, eval_steps: 4, "
                              "seed: 8, log_steps: 2, checkpoint_steps: 3, model_dir: d, "
                              "checkpoint_path: p, max_checkpoints: 2}\n",
                      new[] = "trainer:\n"
                              "  init:\n"
                              "    seed: 8\n"
                              "    model_dir: d\n"
                              "    model: {name: gptj}\n"
                              "    optimizer: {SGD: {momentum: 0.5, nesterov: true, "
                              "weight_decay: 0.25}}\n"
                              "    schedulers: [{ConstantLR: {learning_rate: 1e-2}}]\n"
                              "    precision: {max_gradient_norm: 2}\n"
                              "    loop: {max_steps: 7, eval_frequency: 5, eval_steps: 4}\n"
                              "    checkpoint: {steps: 3, max_checkpoints: 2}\n"
                              "    logging: {log_steps: 2}\n"
                              "    callbacks:\n"
                              "    - ScopedTrainFlags: {csx.performance.micro_batch_size: 3}\n"
                              "  fit:\n"
                              "    ckpt_path: p\n"
                              "    train_dataloader: {data_dir: [a, b], batch_size: 6, "
                              "shuffle: yes, shuffle_seed: 9}\n"
                              "    val_dataloader: [{data_dir: c}]\n";
    const char *text[] = {old, new};
    for (int k = 0; k < 2; k++) {
        char whole[1200];
        (void)snprintf(whole, sizeof whole, "%s", text[k]);
        if (k == 0)
            memcpy(strstr(whole, "max_position_embeddings: 99"), "name: gptj                 ", 27);
        struct mr_training t = must(MR_TRAIN_AND_EVAL, whole);
        assert_string_equal(t.model.type, "gptj");
        assert_true(t.optimizer == MR_SGD && t.momentum == 0.5 && t.nesterov && t.decay == 0.25);
        assert_true(mr_rates_at(&t.rates, 5) == 1e-2 && t.clip == 2);
        assert_true(t.steps == 7 && t.eval_frequency == 5 && t.eval_steps == 4 && t.seed == 8);
        assert_true(t.log_steps == 2 && t.checkpoint_steps == 3 && t.max_checkpoints == 2);
        assert_string_equal(t.output, "d");
        assert_string_equal(t.checkpoint, "p");
        assert_true(t.train.batch == 6 && t.train.micro == 3 && t.accumulate == 2);
        assert_true(t.train.shuffle && t.train.seed == 9 && t.train.more == 1);
        assert_string_equal(t.train.others[0], "b");
        assert_string_equal(t.held[0].data, "c");
        mr_training_free(&t);
    }
}

// The mode's own data, then what there is.
static void modes_look_at_their_data(void **unused)
{
    (void)unused;
    static const char all[] = "trainer: {init: {loop: {max_steps: 1}, schedulers: {ConstantLR: "
                              "{learning_rate: 1}}}, fit: {train_dataloader: {data_dir: t, "
                              "batch_size: 1}, val_dataloader: {data_dir: fit}}, validate: "
                              "{val_dataloader: {data_dir: validate}}, validate_all: "
                              "{val_dataloaders: {data_dir: all}}}\n";
    static const char *const want[] = {
        [MR_EVAL] = "validate", [MR_TRAIN_AND_EVAL] = "fit", [MR_EVAL_ALL] = "all"};
    for (int mode = MR_EVAL; mode < MR_TRAINING_MODES; mode++) {
        struct mr_training t = must(mode, all), one = must(mode, DATA HELD STEPS RATE);
        assert_string_equal(t.held[0].data, want[mode]);
        assert_string_equal(one.held[0].data, "held");
        mr_training_free(&t);
        mr_training_free(&one);
    }
    // The caller's counts, and the file's where there is none.
    static const char *const named[] = {"train", "eval", "train_and_eval", "eval_all"};
    for (int mode = 0; mode <= MR_TRAINING_MODES; mode++)
        for (int i = 0; i < MR_TRAINING_MODES; i++) {
            char text[400];
            (void)snprintf(text, sizeof text,
                           DATA HELD RATE "runconfig: {max_steps: 1, mode: %s}\n", named[i]);
            struct mr_training t = must(mode, text);
            assert_int_equal(t.mode, mode < MR_TRAINING_MODES ? mode : i);
            mr_training_free(&t);
        }
    struct mr_error err = {0};
    struct mr_training t;
    assert_int_equal(parse(&t, MR_EVAL, DATA STEPS RATE, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "eval_input.data_dir is missing"));
    mr_training_free(&t);
    for (int mode = MR_EVAL; mode < MR_TRAINING_MODES; mode++) {
        static const char new[] = "trainer: {init: {loop: {max_steps: 1}, schedulers: {ConstantLR: "
                                  "{learning_rate: 1}}}, fit: {train_dataloader: {data_dir: t, "
                                  "batch_size: 1}}}\n";
        assert_refused(parse(&t, mode, new, &err), MR_ERR_USAGE, &err,
                       mode == MR_TRAIN_AND_EVAL
                           ? "trainer.fit.val_dataloader.data_dir is missing"
                           : "trainer.validate.val_dataloader.data_dir is missing");
        mr_training_free(&t);
    }
    // Where nothing is learnt, windows that run at a time are what the held data says.
    static const char *const micro[] = {"", ", micro_batch_size: 3", ", micro_batch_size: explore",
                                        ", micro_batch_size: auto"};
    for (int i = 0; i < 4; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "eval_input: {data_dir: held, batch_size: 6%s}\n",
                       micro[i]);
        t = must(MR_EVAL, text);
        assert_int_equal(t.train.micro, i == 1 ? 3 : 8);
        mr_training_free(&t);
    }
}

// ---- classifiers --------------------------------------------------------------------------------

#define TEXTS                                                                                      \
    "train_input: {data_processor: SST2DataProcessor, data_dir: t.h5, batch_size: 32, "            \
    "vocab_file: v.txt, do_lower: true}\n"                                                         \
    "eval_input: {data_processor: SST2DataProcessor, data_dir: d.h5, do_lower: true}\n" STEPS RATE

static void classifiers_are_of_an_encoder(void **unused)
{
    (void)unused;
    static const char model[] = "hidden_size: 768, encoder_nonlinearity: gelu, "
                                "pooler_nonlinearity: tanh, task_dropout: 0.0, "
                                "problem_type: single_label_classification";
    static const char *const names[] = {"", ", num_labels: 3", ", num_classes: 3",
                                        ", name: bert/classifier"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[1000];
        (void)snprintf(text, sizeof text, TEXTS "model: {%s%s}\n", model, names[i]);
        struct mr_training t = must(MR_TRAIN_AND_EVAL, text);
        assert_string_equal(t.model.type, "bert");
        assert_true(t.train.labelled && t.held[0].labelled);
        assert_int_equal(t.model.labels, i == 1 || i == 2 ? 3 : 0);
        assert_int_equal(t.model.function, mr_function_named("gelu"));
        assert_string_equal(t.train.data, "t.h5");
        struct mr_config c;
        struct mr_error err = {0};
        assert_refused(mr_training_shape(&t, &c, &err), MR_ERR_UNSUPPORTED, &err,
                       "give --checkpoint_path");
        mr_training_free(&t);
    }
}

static void classifiers_have_keys_of_their_own(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        int status;
        const char *words;
    } rows[] = {
        {TEXTS "model: {share_embedding_weights: true}", MR_ERR_USAGE,
         "model.share_embedding_weights: is not a key of bert/classifier"},
        {TEXTS "model: {nonlinearity: gelu}", MR_ERR_USAGE, "is not a key of bert/classifier"},
        {TEXTS "model: {name: gpt2}", MR_ERR_UNSUPPORTED, "vocab_file: millrace data makes"},
        {TEXTS "model: {task_dropout: 0.1}", MR_ERR_UNSUPPORTED, "task_dropout"},
        {TEXTS "model: {pooler_nonlinearity: relu}", MR_ERR_UNSUPPORTED, "tanh can be trained"},
        {TEXTS "model: {problem_type: regression}", MR_ERR_UNSUPPORTED, "each text has one label"},
        {TEXTS "model: {num_labels: 1}", MR_ERR_USAGE, "num_labels"},
        {TEXTS "model: {mlm_loss_weight: 1}", MR_ERR_UNSUPPORTED, "without this key"},
        {STEPS RATE "train_input: {data_processor: MNLIDataProcessor, data_dir: t, batch_size: 1}\n"
                    "model: {name: gptj}",
         MR_ERR_USAGE, "train_input.data_processor: is not for a model that writes text"},
        {STEPS RATE "train_input: {data_processor: GptHDF5DataProcessor, data_dir: t, "
                    "batch_size: 1}\nmodel: {name: bert/classifier}",
         MR_ERR_USAGE, "data_processor: is not for bert/classifier"},
        {STEPS RATE "train_input: {data_processor: BertCSVDataProcessor, data_dir: t, "
                    "batch_size: 1}",
         MR_ERR_UNSUPPORTED, "'BertCSVDataProcessor': GptHDF5DataProcessor and"},
        {DATA STEPS RATE "model: {name: gpt2, num_labels: 2}", MR_ERR_USAGE,
         "num_labels: is a key of bert/classifier, which the model is not"},
        {STEPS RATE "train_input: {data_dir: t, batch_size: 1, do_lower: true}", MR_ERR_UNSUPPORTED,
         "train_input.do_lower: millrace data makes files of texts"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(rows[i].text, rows[i].status, rows[i].words);
}

// ---- on the command line ------------------------------------------------------------------------

static void keys_of_the_command_line_replace_those_of_the_file(void **unused)
{
    (void)unused;
    static const char file[] = DATA "model: {dropout_rate: 0.1}\n"
                                    "optimizer: {betas: [0.8, 0.9], eps: 1e-3, "
                                    "learning_rate: 1e-2}\n"
                                    "runconfig: {max_steps: 7, seed: 3}\n";
    static const char *const set[] = {"model.dropout_rate=0",
                                      "optimizer.optimizer_type=SGD",
                                      "optimizer.betas=null",
                                      "optimizer.eps=null",
                                      "runconfig.max_steps=null",
                                      "runconfig.num_steps=2",
                                      "runconfig.seed=4",
                                      "runconfig.seed=5",
                                      "optimizer.learning_rate=[{scheduler: "
                                      "Constant, learning_rate: 0.5}]"};
    struct mr_training t = must_with(file, set, 9);
    assert_true(t.optimizer == MR_SGD && t.beta1 == 0.9 && t.epsilon == 1e-6);
    assert_true(t.steps == 0 && t.more_steps == 2 && t.seed == 5);
    assert_true(mr_rates_at(&t.rates, 1) == 0.5);
    mr_training_free(&t);
    t = must_with(DATA RATE STEPS, (const char *const[]){"train_input.data_dir=[a, b]"}, 1);
    assert_true(t.train.more == 1);
    assert_string_equal(t.train.where, "--set: train_input.data_dir");
    mr_training_free(&t);
    t = must_with(DATA HELD RATE STEPS, (const char *const[]){"train_input.data_dir=x"}, 1);
    assert_string_equal(t.train.data, "x");
    assert_string_equal(t.held[0].data, "held"); // the same key of another place
    mr_training_free(&t);
    t = must_with(DATA RATE, (const char *const[]){"trainer.init.loop.max_steps=9"}, 1);
    assert_int_equal(t.steps, 9); // of the other generation
    mr_training_free(&t);
}

static void keys_are_known_in_both_generations(void **unused)
{
    (void)unused;
    static const char *const known[] = {"optimizer.eps", "optimizer.epsilon", "runconfig.num_steps",
                                        "trainer.init.optimizer.SGD.momentum", "sparsity"},
                             *const others[] = {"optimizer", "optimizer.",
                                                "eps",       "num_steps",
                                                "",          "trainer.init.optimizer.SGD.eps"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(mr_training_knows(known[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(mr_training_knows(others[i]));
}

// ---- what is refused ----------------------------------------------------------------------------

// The ends of ranges are in them, and what is beyond is not.
static void ranges_end_where_they_say(void **unused)
{
    (void)unused;
    static const struct {
        const char *key, *low, *high, *below, *above;
    } rows[] = {{"train_input.batch_size", "1", "1048576", "0", "1048577"},
                {"runconfig.max_steps", "1", "1073741824", "0", "1073741825"},
                {"optimizer.eps", "1e-12", "1", "1e-13", "1.01"},
                {"optimizer.weight_decay", "0", "1", "-1e-9", "1.0001"},
                {"optimizer.beta1", "0", "0.999999", "-0.1", "1"},
                {"optimizer.max_gradient_norm", "1e-9", "1e9", "0", "2e9"},
                {"runconfig.max_checkpoints", "1", "1073741824", "0", "1073741825"},
                {"runconfig.log_steps", "1", "1073741824", "0", "-1"},
                {"train_input.shuffle_seed", "0", "9000000000000000000", "-1", "9.1e18"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *values[] = {rows[i].low, rows[i].high, rows[i].below, rows[i].above};
        for (int k = 0; k < 4; k++) {
            char set[100];
            struct mr_error err = {0};
            struct mr_training t;
            (void)snprintf(set, sizeof set, "%s=%s", rows[i].key, values[k]);
            const char *path = files_write_text("a.yaml", DATA STEPS RATE);
            int rc = mr_training_load(&t, MR_TRAIN, path, (const char *const[]){set}, 1, &err);
            if ((rc == 0) != (k < 2) || (k >= 2 && !strstr(err.text, rows[i].key)))
                fail_msg("%s: %d, %s", set, rc, err.text);
            mr_training_free(&t);
        }
    }
}

static void what_does_not_belong_together_is_refused(void **unused)
{
    (void)unused;
    refuse(DATA RATE "runconfig: {max_steps: 1.5}", MR_ERR_USAGE, "'1.5' is not a whole number");
    refuse(DATA RATE "runconfig: {max_steps: 1, mode: test}", MR_ERR_USAGE,
           "'test' is none of train, eval, train_and_eval and eval_all");
    refuse(DATA STEPS, MR_ERR_USAGE, "optimizer.learning_rate is missing");
    refuse(DATA RATE, MR_ERR_USAGE, "runconfig.max_steps is missing");
    refuse(STEPS RATE, MR_ERR_USAGE, "train_input.data_dir is missing");
    refuse(RATE STEPS "train_input: {data_dir: t}", MR_ERR_USAGE, "batch_size is missing");
    refuse(DATA RATE "runconfig: {max_steps: 1, num_epochs: 1}", MR_ERR_USAGE,
           "a.yaml:3: runconfig.num_epochs: one of max_steps");
    refuse(DATA RATE "runconfig: {max_steps: 1, steps_per_epoch: 1}", MR_ERR_USAGE,
           "goes with num_epochs");
    refuse(DATA STEPS "optimizer: {learning_rate: 1, optimizer_type: SGD, eps: 1e-8}", MR_ERR_USAGE,
           "a.yaml:3: optimizer.eps: goes with AdamW and Adam; the optimizer is SGD");
    refuse(DATA STEPS "optimizer: {learning_rate: 1, dampening: 0.1}", MR_ERR_USAGE,
           "goes with SGD; the optimizer is AdamW");
    refuse(DATA RATE "runconfig: {max_steps: 1, num_steps: 1}", MR_ERR_USAGE,
           "a.yaml:3: runconfig.num_steps: one of max_steps");
    refuse(DATA STEPS RATE "runconfig2: {}", MR_ERR_USAGE, "did you mean runconfig");
    refuse(DATA STEPS RATE "model: {name: gptj, position_embedding_type: learned}",
           MR_ERR_UNSUPPORTED, "gptj has rotary positions");
    refuse(DATA STEPS RATE "model: {name: gpt2, use_bias_in_output: true}", MR_ERR_UNSUPPORTED,
           "it is false in GPT-2");
    refuse(DATA STEPS RATE "model: {vocab_size: 9}", MR_ERR_USAGE, "neither name nor");
    refuse(DATA STEPS RATE "model: {loss_weight: 2}", MR_ERR_UNSUPPORTED, "a weight of 1");
    refuse(DATA STEPS RATE "model: {embedding_initializer: {name: truncated_normal, std: 1, a: 0, "
                           "b: 1}}",
           MR_ERR_USAGE, "a tenth of std");
    refuse(DATA STEPS "optimizer: {learning_rate: 1, freeze: {a: b}}", MR_ERR_USAGE,
           "a map stands where a pattern");
    refuse("trainer: {}\nmodel: {}\n", MR_ERR_USAGE, "model stands beside trainer");
}

// A piece of text again and again between a beginning and an end.
static const char *repeated(const char *begin, const char *piece, int times, const char *end)
{
    static char text[1 << 15];
    size_t n = strlen(begin), size = strlen(piece);
    assert_true(n + (size_t)times * size + strlen(end) < sizeof text);
    memcpy(text, begin, n);
    for (int i = 0; i < times; i++, n += size)
        memcpy(text + n, piece, size);
    (void)snprintf(text + n, sizeof text - n, "%s", end);
    return text;
}

static void keys_of_other_kinds_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"optimizer: {betas: [0.9]}", "a.yaml:1: optimizer.betas: is no list of two numbers"},
        {"optimizer: {betas: [0.9, 0.9, 0.9]}", "is no list of two numbers"},
        {"optimizer: {betas: 0.9}", "is no list of two numbers"},
        {"optimizer: {betas: []}", "is no list of two numbers"},
        {"optimizer:\n  betas:\n  -\n  - 0.9", "a.yaml:2: optimizer.betas: '' is not a number"},
        {"optimizer: {optimizer_type: [SGD]}", "a list stands where the name of an optimizer"},
        {"trainer: {init: {optimizer: {}}}", "is not one optimizer with its keys"},
        {"optimizer: {freeze: [a, [b]]}", "optimizer.freeze: a list stands where a pattern"},
        {"optimizer: {learning_rate: []}", "optimizer.learning_rate: is an empty list"},
        {"trainer: {init: {schedulers: []}}", "trainer.init.schedulers: is an empty list"},
        {"optimizer: {learning_rate: {}}", "is not one schedule with its keys"},
        {"optimizer: {learning_rate: {scheduler: Constant, learning_rate: {a: b}}}",
         "a map stands where a number should"},
        {"optimizer: {learning_rate: {scheduler: Constant, learning_rate: a b}}",
         "'a b' is no word of a schedule"},
        {"train_input: {micro_batch_size: [1]}", "'a list' is not a whole number"},
        {"train_input: {batch_size: {a: 1}}", "'a map' is not a whole number"},
        {"train_input: {batch_size: \"1\"}", "'1' is not a whole number"},
        {"train_input: {batch_size: 1-2}", "'1-2' is not a whole number"},
        {"train_input: {shuffle: [true]}", "'a list' is neither true nor false"},
        {"train_input: {shuffle: \"true\"}", "'true' is neither true nor false"},
        {"train_input: [{batch_size: 1}, {batch_size: 1}]",
         "a.yaml:1: train_input: 'a list' stands where keys should"},
        {"train_input: []", "a.yaml:1: train_input: 'a list' stands where keys should"},
        {"7", "a.yaml:1: '7' stands where keys should"},
        {"trainer.init: {seed: 1}", "a.yaml:1: trainer.init: the key is not known"},
        {"model: {embedding_initializer: [normal]}", "is no map with a name"},
        {"model: {embedding_initializer: {std: 1}}", "is no map with a name"},
        {"model: {embedding_initializer: {name: [normal]}}", "a list stands where a name"},
        {"model: {embedding_initializer: {name: normal, mean: no}}", "'no' is not a number"},
        {"trainer: {init: {callbacks: [{ScopedTrainFlags: 1}]}}", "'1' stands where keys should"},
        {"trainer: {init: {optimizer: {SGD: {}, Adam: {}}}}",
         "a.yaml:1: trainer.init.optimizer: is not one optimizer with its keys"},
        {"trainer: {init: {optimizer: SGD}}", "is not one optimizer with its keys"},
        {"optimizer: {learning_rate: {Constant: {}, Linear: {}}}",
         "a.yaml:1: optimizer.learning_rate: is not one schedule with its keys"},
        {"optimizer: {learning_rate: {Constant: 1}}", "is not one schedule with its keys"},
        {"optimizer: {learning_rate: [{SequentialLR: {}}]}",
         "SequentialLR has schedulers, a list, and no more"},
        {"optimizer: {learning_rate: [{SequentialLR: {schedulers: 1}}]}",
         "SequentialLR has schedulers, a list, and no more"},
        {"optimizer: {learning_rate: [{SequentialLR: {schedulers: [], last_epoch: 1}}]}",
         "SequentialLR has schedulers, a list, and no more"},
        {"optimizer: {learning_rate: [1e-3]}", "a schedule is a map of its keys"},
        {"model: {loss_scaling: tokens}",
         "a.yaml:1: model.loss_scaling: 'tokens' is neither num_tokens nor batch_size"},
        {"model: {embedding_initializer: {name: normal, scale: 1}}",
         "model.embedding_initializer: has no key 'scale'; name, mean, std, a and b"},
        {"trainer: {init: {callbacks: 7}}", "a.yaml:1: trainer.init.callbacks: is no list"},
        {"trainer: {init: {loggers: [{TensorBoardLogger: {summary_dir: [a]}}]}}",
         "a list stands where a directory should"},
        {"trainer: {init: {loggers: {ProgressLogger: {}}}}",
         "a.yaml:1: trainer.init.loggers: is no list"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(rows[i].text, MR_ERR_USAGE, rows[i].words);
    refuse("trainer: {init: {schedulers: [{ConstantLR: {learning_rate: 1}}, {ConstantLR: "
           "{learning_rate: 1}}]}}",
           MR_ERR_UNSUPPORTED, "several schedules at once: rates are the same for all weights");
    refuse("train_input: {data_dir: \"\"}", MR_ERR_USAGE,
           "a.yaml:1: train_input.data_dir: nothing stands where a path should");
    refuse("model: {embedding_initializer: {name: normal, mean: 0.5}}", MR_ERR_UNSUPPORTED,
           "a.yaml:1: model.embedding_initializer: a mean of 0 can be drawn");
    refuse("model: {name: gpt5}", MR_ERR_UNSUPPORTED, "'gpt5': gptj, gpt2, gpt3 and");
    refuse("model: {position_embedding_type: alibi}", MR_ERR_UNSUPPORTED,
           "a.yaml:1: model.position_embedding_type: 'alibi': GPT-J's rotary and GPT-2's learned");
    refuse("optimizer: {learning_rate: fast}", MR_ERR_USAGE,
           "a.yaml:1: optimizer.learning_rate: learning_rate of the schedule is 'fast'");
}

// A key that has one value that can be taken: that value, in words or as a number.
static void keys_with_one_value_take_no_other(void **unused)
{
    (void)unused;
    static const struct {
        const char *value;
        bool taken;
    } rows[] = {{"1", true},    {"1.0", true},   {"1.5", false}, {"1x", false},
                {"one", false}, {"\"\"", false}, {"[1]", false}, {"null", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, DATA STEPS RATE "model: {embeddings_scale: %s}\n",
                       rows[i].value);
        if (rows[i].taken) {
            struct mr_training t = must(MR_TRAIN, text);
            mr_training_free(&t);
        } else {
            refuse(text, MR_ERR_UNSUPPORTED, "a.yaml:4: model.embeddings_scale: '");
        }
    }
    refuse("train_input: {drop_last: 1}", MR_ERR_UNSUPPORTED, "train_input.drop_last: '1'");
}

// As if the key were not there.
static void null_is_nothing(void **unused)
{
    (void)unused;
    static const char *const nulls[] = {"", "~", "null", "NULL", "None"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) {
        char text[600];
        (void)snprintf(text, sizeof text,
                       DATA "runconfig: {max_steps: 7, seed: %s}\n"
                            "optimizer:\n  learning_rate: {scheduler: Constant, end: %s, "
                            "learning_rate: 0.5}\n"
                            "model: %s\neval_input: %s\n",
                       nulls[i], nulls[i], nulls[i], nulls[i]);
        struct mr_training t = must(MR_TRAIN, text);
        assert_true(t.seed == 0 && mr_rates_at(&t.rates, 1) == 0.5 && !t.model.type);
        mr_training_free(&t);
    }
    refuse(DATA RATE "runconfig: {max_steps: \"null\"}", MR_ERR_USAGE, "'null' is not a whole");
    struct mr_training t =
        must(MR_TRAIN, "trainer: {init: {loop: {max_steps: 1}, schedulers: {ConstantLR: "
                       "{learning_rate: 1}}, optimizer: {SGD: null}, loggers: [{TensorBoardLogger: "
                       "{summary_dir: null}}, ProgressLogger]}, fit: {train_dataloader: "
                       "{data_dir: t, batch_size: 1}}}\n");
    assert_int_equal(t.optimizer, MR_SGD);
    mr_training_free(&t);
    t = must(MR_TRAIN,
             "trainer: {init: {loop: {max_steps: 1}, schedulers: {ConstantLR: {learning_rate: 1}}, "
             "loggers: [{TensorBoardLogger: {}}]}, fit: {train_dataloader: {data_dir: t, "
             "batch_size: 1}}}\n");
    assert_string_equal(t.events, "");
    mr_training_free(&t);
}

// As --lora and lora_params have them.
static void adapters_are_described(void **unused)
{
    (void)unused;
    static const struct {
        bool words; // of --lora
        const char *text;
        int rank;
        double alpha;
        const char *targets[3];
    } rows[] = {
        {true, "r=4", 4, 4, {NULL}},
        {true, "alpha=3", 8, 3, {NULL}},
        {true, "targets=q_proj,v_proj,r=2", 2, 2, {"q_proj", "v_proj"}},
        {false, "r: 4", 4, 1, {NULL}},
        {false, "r: 4, alpha: 8, fan_in_fan_out: true, merge_weights: no, dropout: 0", 4, 8, {0}},
        {false, "r: 512, target_modules: null", 512, 1, {NULL}},
        {false, "r: 1, target_modules: proj_k_dense_layer", 1, 1, {"k_proj"}},
        {false, "r: 1, target_modules: [proj_output_dense_layer, up]", 1, 1, {"out_proj", "up"}},
    };
    struct mr_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_training t = {0};
        char text[300];
        (void)snprintf(text, sizeof text, DATA STEPS RATE "model: {lora_params: {%s}}\n",
                       rows[i].text);
        if (rows[i].words)
            check(mr_training_lora(&t, rows[i].text, &err), &err);
        else
            t = must(MR_TRAIN, text);
        assert_int_equal(t.lora.rank, rows[i].rank);
        assert_true(t.lora.alpha == rows[i].alpha);
        int n = 0;
        for (; rows[i].targets[n]; n++)
            assert_string_equal(t.lora.targets[n], rows[i].targets[n]);
        assert_null(t.lora.targets[n]);
        mr_training_free(&t);
    }
    static const char *const wrong[][2] = {{"r=", "r= is not a number"},
                                           {"r=8x", "r=8x is not a number from 1 to 512"},
                                           {"r=0", "r=0 is not a number"},
                                           {"r=513", "r=513 is not a number"},
                                           {"r=1.5", "r=1.5 is no whole number"},
                                           {"q_proj", "'q_proj' is not r=N"},
                                           {"targets=a,x=1", "'x=1' is not r=N"},
                                           {"targets=", "targets are 1 to 16 names"},
                                           {"targets=a,,b", "targets are 1 to 16 names"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct mr_training t = {0};
        assert_refused(mr_training_lora(&t, wrong[i][0], &err), MR_ERR_USAGE, &err, wrong[i][1]);
        mr_training_free(&t);
    }
    struct mr_training t = {0};
    assert_refused(mr_training_lora(&t, repeated("targets=a", ",a", 16, ""), &err), MR_ERR_USAGE,
                   &err, "targets are 1 to 16 names");
    mr_training_free(&t);
    refuse("model: {lora_params: []}", MR_ERR_USAGE, "lora_params: is no map of r");
    refuse("model: {lora_params: [{r: 1}, {r: 1}]}", MR_ERR_USAGE, "lora_params: is no map of r");
}

// What stands in --set is no key, or its value no YAML.
static void what_is_no_key_of_the_command_line_is_refused(void **unused)
{
    (void)unused;
    char longer[200];
    (void)snprintf(longer, sizeof longer, "%0150d=1", 0);
    const char *const rows[][2] = {{"runconfig.seed", "--set runconfig.seed: is not KEY=VALUE"},
                                   {"=1", "--set =1: is not KEY=VALUE"},
                                   {longer, "is not KEY=VALUE"},
                                   {"seed=1", "--set: seed: the key is not known here"},
                                   {"runconfig.seed=[", "is no YAML"}};
    const char *path = files_write_text("a.yaml", DATA STEPS RATE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_error err = {0};
        struct mr_training t;
        int rc = mr_training_load(&t, MR_TRAIN, path, rows[i], 1, &err);
        if (rc >= 0 || !strstr(err.text, rows[i][1]))
            fail_msg("%s: %d, '%s'", rows[i][0], rc, err.text);
        mr_training_free(&t);
    }
    // The last counts, however many there are.
    const char *set[600];
    for (int i = 0; i < 600; i++)
        set[i] = i < 599 ? "runconfig.seed=3" : "runconfig.seed=4";
    struct mr_training t = must_with(DATA STEPS RATE, set, 600);
    assert_int_equal(t.seed, 4);
    mr_training_free(&t);
}

// As many as there is room for are taken, and one more is refused.
static void lists_have_an_end(void **unused)
{
    (void)unused;
    static const char keys[] = DATA STEPS "optimizer: {learning_rate: 1, ";
    char freeze[200], data[200];
    (void)snprintf(freeze, sizeof freeze, "%sfreeze: [", keys);
    (void)snprintf(data, sizeof data, "%s", STEPS RATE "train_input: {batch_size: 1, data_dir: [");
    struct mr_training t = must(MR_TRAIN, repeated(freeze, "a,", MR_TRAINING_PATTERNS, "]}"));
    assert_string_equal(t.frozen[MR_TRAINING_PATTERNS - 1], "a");
    assert_null(t.frozen[MR_TRAINING_PATTERNS]);
    mr_training_free(&t);
    refuse(repeated(freeze, "a,", MR_TRAINING_PATTERNS + 1, "]}"), MR_ERR_USAGE,
           "a.yaml:3: optimizer.freeze: has more than 64 patterns");
    refuse(repeated(freeze, "a,", MR_TRAINING_PATTERNS, "[]]}"), MR_ERR_USAGE,
           "a.yaml:3: optimizer.freeze: has more than 64 patterns");
    t = must(MR_TRAIN, repeated(data, "a,", MR_TRAINING_PATHS, "]}"));
    assert_int_equal(t.train.more, MR_TRAINING_PATHS - 1);
    mr_training_free(&t);
    refuse(repeated(data, "a,", MR_TRAINING_PATHS + 1, "]}"), MR_ERR_USAGE,
           "a.yaml:3: train_input.data_dir: has more than 64 paths");
    refuse(repeated("optimizer: {learning_rate: [{scheduler: Constant, learning_rate: [", "1,",
                    3000, "]}]}"),
           MR_ERR_USAGE, "optimizer.learning_rate: the schedules have more than 8192 bytes");
}

// What is YAML and no configuration.
static void yaml_of_other_uses_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"model: {}\n\"\": 1\n", "a.yaml:2: a key is empty"},
        {"\"a\\0b\": 1", "a.yaml:1: a key is empty or has a NUL character"},
        {"model:\n  ? [a]\n  : 1\n", "a.yaml:2: a key is no word"},
        {"a: &a {}\n*a : 1\n", "a.yaml:2: a key is no word"},
        {"&a model: {}", "a.yaml:1: a key has an anchor"},
        {"model: {}\noptimizer: *none\n", "a.yaml:2: an alias without an anchor: none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(rows[i].text, MR_ERR_FORMAT, rows[i].words);
    refuse(repeated("a: [", "&a 1,", 256, "]"), MR_ERR_USAGE, "a: the key is not known");
    refuse(repeated("a: [", "&a 1,", 257, "]"), MR_ERR_FORMAT, "a.yaml:1: more than 256 anchors");
    refuse(repeated("a: [", "{a: 1},", 1366, "]"), MR_ERR_FORMAT,
           "a.yaml:1: more than 4096 keys and values");
    refuse("model: &a {}\noptimizer: &b {x: 1}\nrunconfig: *a\n", MR_ERR_USAGE, "optimizer.x");
    // Few enough, but for what the alias stands for.
    refuse(repeated("a: &a [", "1,", 2100, "]\nb: *a\n"), MR_ERR_FORMAT,
           "a.yaml:2: more than 4096 values, those of aliases counted");
    // Each is shallow enough; the alias stands where the two together are not.
    static const char lists[] = "a: &a [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\nb: ";
    char end[100];
    for (int deep = 14; deep < 16; deep++) {
        (void)snprintf(end, sizeof end, "*a%.*s", deep, "]]]]]]]]]]]]]]]]");
        refuse(repeated(lists, "[", deep, end), deep == 14 ? MR_ERR_USAGE : MR_ERR_FORMAT,
               deep == 14 ? "a: the key is not known" : "a.yaml:2: nested deeper than 32");
    }
}

// ---- the model ----------------------------------------------------------------------------------

static void models_are_those_of_their_checkpoints(void **unused)
{
    (void)unused;
    static const char model[] = DATA STEPS RATE
        "model: {name: gptj, vocab_size: 50, max_position_embeddings: 40, hidden_size: 32, "
        "num_hidden_layers: 3, num_heads: 4, filter_size: 96, rotary_dim: 6, "
        "initializer: {name: truncated_normal, std: 0.5, a: -1, b: 1.5}}\n";
    struct mr_error err = {0};
    struct mr_config c;
    struct mr_training t = must(MR_TRAIN, model);
    check(mr_training_shape(&t, &c, &err), &err);
    assert_true(c.vocab_size == 50 && c.n_positions == 40 && c.n_embd == 32 && c.n_layer == 3);
    assert_true(c.n_head == 4 && c.head_dim == 8 && c.rotary_dim == 6 && c.n_inner == 96);
    assert_true(c.layer_norm_epsilon == 1e-5F);
    const struct mr_training_start *s = &t.model.start[MR_START_MATRIX];
    assert_true(s->deviation == 0.5 && s->low == -1 && s->high == 1.5);
    assert_true(t.model.start[MR_START_TABLE].deviation == 0);
    check(mr_training_fits(&t, &c, &err), &err);
    assert_int_equal(t.positions, 0);
    c.n_positions = 39; // the configuration has one more
    check(mr_training_fits(&t, &c, &err), &err);
    assert_int_equal(t.positions, 40);
    t.positions = 0;
    c.n_positions = 41; // it has one less: what is learnt from are windows
    check(mr_training_fits(&t, &c, &err), &err);
    assert_int_equal(t.positions, 0);
    c.n_inner = 95;
    assert_int_equal(mr_training_fits(&t, &c, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "model.filter_size: 96, and the checkpoint has 95"));
    c.n_inner = 96;
    c.layer_norm_epsilon = 1e-6F;
    t.model.epsilon = 1e-5;
    t.model.epsilon_where = "a.yaml:4: model.layer_norm_epsilon";
    assert_refused(mr_training_fits(&t, &c, &err), MR_ERR_FIT, &err,
                   "layer_norm_epsilon: 1e-05, and the checkpoint has 1e-06");
    t.model.type = "gpt2";
    assert_refused(mr_training_fits(&t, &c, &err), MR_ERR_FIT, &err,
                   "the configuration is of a gpt2, the checkpoint is a gptj");
    t.model.type = "gptj";
    static const int rotary[] = {10, 7, 0};
    for (int i = 0; i < 3; i++) {
        t.model.size[MR_SIZE_ROTARY] = rotary[i];
        assert_refused(mr_training_shape(&t, &c, &err), MR_ERR_USAGE, &err,
                       "an even number from 2 to 8");
    }
    mr_training_free(&t);
    // Of the other kind, which its positions name; nothing of it rotates.
    static const char *const gpt2[] = {"name: GPT3", "position_embedding_type: learned"};
    for (int i = 0; i < 2; i++) {
        char text[400];
        (void)snprintf(text, sizeof text,
                       DATA STEPS RATE "model: {%s, vocab_size: 50, max_position_embeddings: 40, "
                                       "hidden_size: 32, num_hidden_layers: 3, num_heads: 4, "
                                       "filter_size: 96, loss_scaling: batch_size, loss_weight: 2, "
                                       "initializer: {name: normal, mean: 0}}\n",
                       gpt2[i]);
        t = must(MR_TRAIN, text);
        check(mr_training_shape(&t, &c, &err), &err);
        assert_string_equal(t.model.type, "gpt2");
        assert_true(c.rotary_dim == 0 && c.n_head == 4 && t.loss_weight == 2);
        mr_training_free(&t);
    }
    t = must(MR_TRAIN, DATA STEPS RATE "model: {position_embedding_type: rotary, rotary_dim: 8}\n");
    assert_string_equal(t.model.type, "gptj");
    mr_training_free(&t);
    t = must(MR_TRAIN, DATA STEPS RATE); // of no kind: it fits what is there
    check(mr_training_fits(&t, &c, &err), &err);
    mr_training_free(&t);
}

// What a model from scratch has to have said.
static void a_model_that_is_not_described_is_refused(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_config c;
    struct mr_training t = must(MR_TRAIN, DATA STEPS RATE);
    assert_refused(mr_training_shape(&t, &c, &err), MR_ERR_USAGE, &err,
                   "the configuration has no model to begin with; describe one");
    mr_training_free(&t);
    t = must(MR_TRAIN, DATA STEPS RATE "model: {name: gpt2, vocab_size: 50, hidden_size: 32}\n");
    assert_refused(mr_training_shape(&t, &c, &err), MR_ERR_USAGE, &err,
                   "the configuration's model lacks max_position_embeddings");
    mr_training_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_said_is_as_in_the_model_zoo),
        cmocka_unit_test(steps_are_divided_into_equal_parts),
        cmocka_unit_test(aliases_are_the_same_key),
        cmocka_unit_test(both_generations_say_the_same),
        cmocka_unit_test(modes_look_at_their_data),
        cmocka_unit_test(classifiers_are_of_an_encoder),
        cmocka_unit_test(classifiers_have_keys_of_their_own),
        cmocka_unit_test(keys_of_the_command_line_replace_those_of_the_file),
        cmocka_unit_test(keys_are_known_in_both_generations),
        cmocka_unit_test(ranges_end_where_they_say),
        cmocka_unit_test(what_does_not_belong_together_is_refused),
        cmocka_unit_test(keys_of_other_kinds_are_refused),
        cmocka_unit_test(keys_with_one_value_take_no_other),
        cmocka_unit_test(null_is_nothing),
        cmocka_unit_test(adapters_are_described),
        cmocka_unit_test(what_is_no_key_of_the_command_line_is_refused),
        cmocka_unit_test(lists_have_an_end),
        cmocka_unit_test(yaml_of_other_uses_is_refused),
        cmocka_unit_test(models_are_those_of_their_checkpoints),
        cmocka_unit_test(a_model_that_is_not_described_is_refused),
    };
    return cmocka_run_group_tests_name("training", tests, files_setup, files_teardown);
}
