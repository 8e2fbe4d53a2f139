// SPDX-License-Identifier: Apache-2.0
// What tests of memory that runs out begin with, in files_dir: a GPT-J, a packed file of it, the
// states of its training and of an adapter's, one as small as calibrates in a moment and has a
// tokenizer, two encoders, texts to calibrate one with, and the state of the other's training.
#ifndef MILLRACE_TESTS_UNIT_MEMORY_MODELS_H
#define MILLRACE_TESTS_UNIT_MEMORY_MODELS_H

#include "millrace.h"
#include "unit/bert_model.h"
#include "unit/files.h"
#include "unit/odd_model.h"

static const char *model, *packed, *state, *adapter, *small, *lines, *with_labels, *out; // paths
static char paths[8][300];
static const char *const label_names[] = {"no", "yes", "perhaps"};

static int memory_encoder(const char *name, const char *kind)
{
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nking\nof\n";
    static const char sizes[] =
        "\"model_type\": \"bert\", \"vocab_size\": 8, \"hidden_size\": 16, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 32, "
        "\"max_position_embeddings\": 16, \"type_vocab_size\": 2, \"hidden_act\": \"gelu\", "
        "\"layer_norm_eps\": 1e-12";
    char config[512];
    (void)snprintf(config, sizeof config, "{\"architectures\": [\"%s\"], %s}", kind, sizes);
    struct bert_file w = {0};
    char dir[300];
    (void)snprintf(dir, sizeof dir, "%s", files_path(name));
    return mkdir(dir, 0700) | bert_write(&w, dir, config) |
           bert_file(dir, "vocab.txt", vocabulary, sizeof vocabulary - 1);
}

static int memory_small(struct mr_error *err)
{
    const struct mr_config c = {.arch = mr_arch_find("gptj"),
                                .vocab_size = MR_SYNTHETIC_BYTES,
                                .n_positions = 8,
                                .n_embd = 16,
                                .n_layer = 1,
                                .n_head = 2,
                                .head_dim = 8,
                                .rotary_dim = 4,
                                .n_inner = 16,
                                .layer_norm_epsilon = 1e-5F,
                                .eos_token_id = MR_SYNTHETIC_BYTES - 1};
    return mkdir(small, 0700) | mr_synthetic_write(small, &c, 3, err);
}

static int memory_setup(void **unused)
{
    struct mr_error err = {0};
    static const struct {
        const char **path, *name;
    } names[] = {{&model, "gptj"},
                 {&packed, "packed.mill"},
                 {&state, "state"},
                 {&adapter, "adapter"},
                 {&small, "small"},
                 {&lines, "lines"},
                 {&with_labels, "with-labels"},
                 {&out, "out"}};
    if (files_setup(unused) != 0)
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/%s", files_dir, names[i].name);
        *names[i].path = paths[i];
    }
    odd_model("gptj", 4, 70);
    files_write_text("lines", "the king\nof the king\n");
    if (memory_encoder("bert", "BertForMaskedLM") ||
        memory_encoder("labels", "BertForSequenceClassification"))
        return -1;
    struct mr_pack_stats stats;
    const struct mr_lora_options lora = {.rank = 2, .alpha = 4};
    return memory_small(&err) | mr_model_pack(model, packed, NULL, &stats, &err) |
           mr_trainer_create(state, model, 0, &err) |
           mr_trainer_create_lora(adapter, model, 0, &lora, &err) |
           mr_trainer_create_labels(with_labels, files_path("labels"), label_names, 3, 1, NULL,
                                    &err);
}

#endif
