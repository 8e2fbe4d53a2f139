// SPDX-License-Identifier: Apache-2.0
// What most tests begin with: a status that must be 0, memory that must be there, the names of
// fixtures, a small configuration. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_CHECK_H
#define MILLRACE_TESTS_UNIT_CHECK_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "millrace.h"
#include "model/config.h"

static inline void check(int rc, const struct mr_error *err)
{
    if (rc)
        fail_msg("%s", err->text);
}

static inline void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);
    assert_non_null(p);
    return p;
}

// The names in a folder of fixtures; the caller frees the list and its entries.
static inline int names_in(const char *folder, struct dirent ***entries)
{
    int n = scandir(folder, entries, NULL, alphasort);
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if ((*entries)[i]->d_name[0] == '.')
            free((*entries)[i]);
        else
            (*entries)[kept++] = (*entries)[i];
    }
    if (kept == 0)
        fail_msg("no fixtures in %s; run the tests from the repository's root", folder);
    return kept;
}

// The checkpoints with logits of transformers, by model.
static const char *const model_fixtures[] = {"tests/fixtures/gptj", "tests/fixtures/gpt2"};

// Where the one of that name is; names are not used twice.
static inline const char *fixture_folder(const char *name)
{
    const char *folder = NULL;
    for (int i = 0; i < 2; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s/config.json", model_fixtures[i], name);
        folder = access(path, F_OK) == 0 ? model_fixtures[i] : folder;
    }
    if (!folder)
        fail_msg("there is no fixture %s; run the tests from the repository's root", name);
    return folder;
}

// Calls run(name, test) for each; run opens a struct fixture, which is the test's own, and calls
// test with it.
struct fixture;
static inline void each_fixture(const char *folder, void (*test)(struct fixture *),
                                void (*run)(const char *name, void (*test)(struct fixture *)))
{
    struct dirent **entries;
    int n = names_in(folder, &entries);
    for (int i = 0; i < n; i++) {
        run(entries[i]->d_name, test);
        free(entries[i]);
    }
    free(entries);
}

// GPT-J of one layer, for tests that make their own checkpoint.
static inline struct mr_config one_layer(int n_embd, int n_head, int rotary_dim, int n_inner)
{
    return (struct mr_config){.vocab_size = 64,
                              .n_positions = 16,
                              .n_embd = n_embd,
                              .n_layer = 1,
                              .n_head = n_head,
                              .rotary_dim = rotary_dim,
                              .n_inner = n_inner,
                              .eos_token_id = -1};
}

#endif
