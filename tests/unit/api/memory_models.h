// SPDX-License-Identifier: Apache-2.0
// What tests of memory that runs out begin with, in files_dir: a GPT-J, a packed file of it, the
// states of its training and of an adapter's, and two encoders.
#ifndef MILLRACE_TESTS_UNIT_MEMORY_MODELS_H
#define MILLRACE_TESTS_UNIT_MEMORY_MODELS_H

#include "millrace.h"
#include "unit/bert_model.h"
#include "unit/files.h"
#include "unit/odd_model.h"

static const char *model, *packed, *state, *adapter, *out; // paths
static char paths[5][300];

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

static int memory_setup(void **unused)
{
    struct mr_error err = {0};
    static const char *const names[] = {"gptj", "packed.mill", "state", "adapter", "out"};
    if (files_setup(unused) != 0)
        return -1;
    for (int i = 0; i < 5; i++)
        (void)snprintf(paths[i], sizeof paths[i], "%s/%s", files_dir, names[i]);
    model = paths[0];
    packed = paths[1];
    state = paths[2];
    adapter = paths[3];
    out = paths[4];
    odd_model("gptj", 4, 70);
    if (memory_encoder("bert", "BertForMaskedLM") ||
        memory_encoder("labels", "BertForSequenceClassification"))
        return -1;
    struct mr_pack_stats stats;
    const struct mr_lora_options lora = {.rank = 2, .alpha = 4};
    return mr_model_pack(model, packed, NULL, &stats, &err) |
           mr_trainer_create(state, model, 0, &err) |
           mr_trainer_create_lora(adapter, model, 0, &lora, &err);
}

static int memory_teardown(void **unused)
{
    remove_dir(model);
    remove_dir(files_path("bert"));
    remove_dir(files_path("labels"));
    remove_dir(state);
    remove_dir(adapter);
    return files_teardown(unused);
}

#endif
