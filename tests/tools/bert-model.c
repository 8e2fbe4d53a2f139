// SPDX-License-Identifier: Apache-2.0
// Writes a small BERT of a class, whose weights follow from their names, with the fixtures'
// tokenizer: bert-model DIRECTORY VOCAB.TXT CLASS [MORE [POSITIONS]], where MORE is put into
// config.json.
#include "unit/bert_model.h"

#include "common/file.h"

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_file vocab;
    struct bert_file w = {0};
    char config[1024];
    if (argc < 4 || mr_file_map(&vocab, argv[2], &err) < 0) {
        fprintf(stderr, "usage: bert-model DIRECTORY VOCAB.TXT CLASS [MORE [POSITIONS]] %s\n",
                err.text);
        return 1;
    }
    int words = 0;
    for (size_t i = 0; i < vocab.size; i++)
        words += vocab.data[i] == '\n';
    (void)snprintf(config, sizeof config,
                   "{\"architectures\":[\"%s\"],\"model_type\":\"bert\",\"hidden_size\":20,"
                   "\"num_attention_heads\":4,\"intermediate_size\":36,\"num_hidden_layers\":2,"
                   "\"vocab_size\":%d,\"max_position_embeddings\":%s%s}",
                   argv[3], words, argc > 5 ? argv[5] : "64", argc > 4 ? argv[4] : "");
    int failed =
        bert_file(argv[1], "vocab.txt", vocab.data, vocab.size) || bert_write(&w, argv[1], config);
    mr_file_unmap(&vocab);
    return failed;
}
