// SPDX-License-Identifier: Apache-2.0
// The options of `millrace train`.
#include "cli/train/engines.h"
#include "cli/base/shared_options.h"
#include "cli/train/args.h"

#define ARGS struct train_args
// Behind HELP may stand what else the row has.
#define WHOLE(NAME, MEMBER, LOW, HIGH, DEFAULT, HELP, ...)                                         \
    CLI_ROW_NUMBER(CLI_INT, NAME, "N", MEMBER, LOW, HIGH, HELP, .def = DEFAULT, __VA_ARGS__)
#define REAL(NAME, MEMBER, LOW, HIGH, DEFAULT, HELP, ...)                                          \
    CLI_ROW_NUMBER(CLI_NUMBER, NAME, "X", MEMBER, LOW, HIGH, HELP, .def = DEFAULT, __VA_ARGS__)
// One fewer than there is room for: NULL ends them.
#define PATTERNS_AT(LIST, COUNT)                                                                   \
    .at = offsetof(ARGS, LIST), .size = sizeof(const char *), .most = MR_TRAINING_PATTERNS,        \
    .count = offsetof(ARGS, COUNT)

const struct cli_option train_table[] = {
    CLI_ROW(CLI_PATH, "model", "PATH", c.model, "Hugging Face directory; the same as the argument"),
    CLI_ROW(CLI_PATH, "config", "FILE", config,
            "a configuration of the Model Zoo; the same as an argument whose name ends in .yaml "
            "(docs/train/train-config.md)",
            .excludes =
                "model data steps lr schedule warmup min-lr optimizer beta1 beta2 epsilon momentum "
                "dampening nesterov decay freeze no-decay clip sequence n-positions batch "
                "accumulate seed heldout heldout-data eval-every eval-windows log-every",
            .because = "the file says it, or --set does"),
    CLI_ROW(CLI_CHOICE, "mode", "MODE", mode,
            "of a configuration: learn, look at held-out data, both, or look at all checkpoints; "
            "without it the file's, or train",
            .letter = 'm', .choices = "train|eval|train_and_eval|eval_all", .needs = "config",
            CLI_GIVEN(mode_given)),
    CLI_ROW_LIST(CLI_TEXTS, "set", "KEY=VALUE", set, n_set,
                 "another value for a key of the configuration, such as optimizer.eps=1e-8; as "
                 "often as there are keys; --optimizer.eps 1e-8 is the same",
                 .needs = "config"),
    WHOLE("max_steps", max_steps, 1, 1 << 30, NULL, "the same as --set runconfig.max_steps=N",
          .needs = "config"),
    CLI_ROW(CLI_PATH, "checkpoint_path", "PATH", checkpoint,
            "Hugging Face directory from which a configuration's training begins, or which eval "
            "looks at",
            .needs = "config"),
    CLI_ROW(CLI_PATH, "data", "FILE", t.train.data,
            "the text to learn, '-' for standard input; or what millrace data wrote, or a "
            "directory of it"),
    CLI_ROW(CLI_OUTPUT, "output", "DIR", t.output,
            "the training's state; one that is there goes on", .letter = 'o'),
    WHOLE("steps", t.steps, 1, 1 << 30, NULL, "steps in all, those that a state has done included"),
    REAL("lr", rate, 0, 1, "0.0003", "the highest learning rate", CLI_GIVEN(lr_given)),
    CLI_ROW(CLI_TEXT, "schedule", "S", schedule,
            "the learning rate after the warm-up: constant, cosine, or curves in the words of "
            "PyTorch and the Model Zoo (docs/train/options.md)",
            .choices = "constant|cosine", .def = "constant"),
    WHOLE("warmup", warmup, 0, 1 << 30, "0", "steps in which the learning rate grows",
          CLI_GIVEN(warmup_given)),
    REAL("min-lr", least, 0, 1, "0", "the share of it that a cosine ends with",
         CLI_GIVEN(least_given)),
    CLI_ROW(CLI_CHOICE, "optimizer", "NAME", optimizer,
            "what moves the weights (docs/train/options.md)", .choices = "adamw|adam|sgd",
            .def = "adamw"),
    REAL("beta1", t.beta1, 0, 0.999999, "0.9", "AdamW, Adam: of the mean",
         CLI_GIVEN(moments_given[0])),
    REAL("beta2", t.beta2, 0, 0.999999, "0.95", "AdamW, Adam: of the squares",
         CLI_GIVEN(moments_given[1])),
    REAL("epsilon", t.epsilon, 1e-12, 1, "1e-8", "AdamW, Adam: added to the root",
         CLI_GIVEN(moments_given[2])),
    REAL("momentum", t.momentum, 0, 0.999999, "0", "SGD: what a step keeps of the steps before",
         CLI_GIVEN(sgd_given[0])),
    REAL("dampening", t.dampening, 0, 0.999999, "0",
         "SGD: the share of the gradient that the momentum leaves out", CLI_GIVEN(sgd_given[1])),
    CLI_ROW_FLAG("nesterov", t.nesterov,
                 "SGD: the way of the next step, with a momentum and without dampening"),
    REAL("decay", t.decay, 0, 1, "0",
         "decay of matrices; Adam and SGD add it to the gradient, AdamW to the update"),
    {.name = "freeze",
     .kind = CLI_TEXTS,
     .value = "PATTERN",
     .help =
         "tensors that stay as they are, by their names: 'transformer.h.0.*'; '!' in front takes "
         "tensors out again; as often as there are patterns",
     PATTERNS_AT(t.frozen, t.n_frozen)},
    {.name = "no-decay",
     .kind = CLI_TEXTS,
     .value = "PATTERN",
     .help = "tensors without decay, likewise",
     PATTERNS_AT(t.no_decay, t.n_no_decay)},
    CLI_ROW(CLI_TEXT, "lora", "r=N,...", lora,
            "a LoRA adapter learns, and the model stays as it is: "
            "r=8,alpha=16,targets=q_proj,v_proj (docs/train/lora.md)",
            .excludes = "freeze no-decay"),
    CLI_ROW(CLI_PATH, "adapter", "DIR", adapter,
            "likewise, one that PEFT or --export has written, as a new state's beginning",
            .excludes = "lora freeze no-decay"),
    CLI_ROW_FLAG("merge", merge, "--export writes the model with its adapter, not the adapter",
                 .needs = "export"),
    REAL("clip", t.clip, 0, 1e9, "1", "the most that the gradient's norm may be; 0: no limit"),
    WHOLE("sequence", t.train.sequence, 0, 1 << 20, "0",
          "tokens of a window; 0: 128, or the model's positions"),
    CLI_N_POSITIONS(t.positions),
    WHOLE("batch", t.train.micro, 1, 1024, "8", "windows of a micro-batch"),
    WHOLE("accumulate", t.accumulate, 1, 1 << 16, "1", "micro-batches of a step"),
    CLI_ROW_NUMBER(CLI_INT, "seed", "N", t.train.seed, 0, CLI_LONG_MAX, "of the order of windows",
                   .def = "0"),
    REAL("heldout", t.share, 0, 0.9, "0.1", "the share of the text, its end, that is not learnt"),
    CLI_ROW(CLI_PATH, "heldout-data", "FILE", t.held[0].data,
            "a text or file of its own that is not learnt, in the place of such a share",
            .excludes = "heldout"),
    WHOLE("eval-every", t.eval_frequency, 0, 1 << 30, "0",
          "steps between losses of the held-out part; 0: at the beginning and the end"),
    WHOLE("eval-windows", t.eval_windows, 0, 1 << 30, "256",
          "held-out windows that such a loss is of, spread evenly; 0: all of them"),
    WHOLE("log-every", t.log_steps, 1, 1 << 30, "1", "steps between lines"),
    CLI_ROW(CLI_OUTPUT, "events", "DIR", events,
            "event files of losses, norms and rates there, for TensorBoard"),
    CLI_ROW(CLI_OUTPUT, "csv", "FILE", csv, "adds a row for each step and evaluation to it"),
    CLI_ROW(CLI_OUTPUT, "svg", "FILE", svg,
            "a picture of losses and rate there, drawn anew as it runs"),
    CLI_ROW(CLI_OUTPUT, "export", "DIR", export,
            "at the end, the weights as a Hugging Face directory"),
    CLI_ROW(CLI_CHOICE, "export-format", "F", format, "of it, and of checkpoints",
            .choices = "f32|bf16|f16", .def = "f32"),
    WHOLE("engines", engines, 1, ENGINES_MOST, NULL,
          "the same on so many engines at once, a process each (docs/train/engines.md)"),
    WHOLE("num_csx", engines, 1, ENGINES_MOST, NULL, "the same as --engines",
          .excludes = "engines"),
    CLI_ROW(CLI_PATH, "hosts", "FILE", hosts,
            "where they run: a host file of Open MPI; without it all run on this machine",
            .needs = "engines"),
    CLI_ON_DEVICE("the C model of any configuration, or RTL that trains, as sim:tinyt; "
                  "of --engines a list, one each in turn, as xrt:0,xrt:1",
                  "model:sim"),
    WHOLE("chunk", chunk, 0, 512, "0", "tokens a device run, a multiple of 32; changes no bit"),
    CLI_ROW_FLAG(
        "recompute", recompute,
        "layers keep no stash: the backward pass makes it again; less memory, the same bits"),
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET("no progress"),
    {0},
};
