// SPDX-License-Identifier: Apache-2.0

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train/args.h"
#include "config/read.h"

static bool takes_value(const char *word)
{
    for (const struct cli_option *o = train_table; o->name; o++)
        if (o->kind != CLI_FLAG &&
            ((word[0] == '-' && word[1] == o->letter && o->letter && !word[2]) ||
             (strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0)))
            return true;
    return false;
}

static bool is_yaml(const char *word)
{
    const char *dot = *word == '-' ? NULL : strrchr(word, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static bool is_option(const char *name)
{
    for (const struct cli_option *o = train_table; o->name; o++)
        if (strncmp(name, o->name, strcspn(name, "=")) == 0)
            return true;
    return false;
}

// "--optimizer.eps" and "--num_steps" are keys of a configuration. Writes the key, without "=".
static bool is_key(const char *word, char *key, size_t size)
{
    static const char *const sections[] = {"train_input.", "eval_input.", "model.",
                                           "optimizer.",   "runconfig.",  "trainer."};
    if (strncmp(word, "--", 2) != 0)
        return false;
    const char *name = word + 2;
    int n = (int)strcspn(name, "=");
    if (n == 0)
        return false;
    (void)snprintf(key, size, "%.*s", n, name);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strncmp(key, sections[i], strlen(sections[i])) == 0)
            return true;
    (void)snprintf(key, size, "runconfig.%.*s", n, name);
    return !is_option(name) && mr_training_knows(key);
}

char **train_words(void *args, char **argv)
{
    static char option[] = "--config", set[] = "--set";
    size_t bytes = 0;
    int argc = 0, n = 0, config = 1;
    char key[160];
    ((struct train_args *)args)->argv = argv;
    while (argv[argc])
        bytes += strlen(argv[argc++]) + sizeof "runconfig.";
    size_t most = 2 * (size_t)argc + 2;
    char **out = malloc(most * sizeof *out + bytes);
    if (!out)
        return NULL;
    char *text = (char *)(out + most);
    while (config < argc && !(is_yaml(argv[config]) && !takes_value(argv[config - 1])))
        config++;
    for (int i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (i == config)
            out[n++] = option;
        if (config == argc || i == config || i == 0 || !is_key(argv[i], key, sizeof key) ||
            (!equals && i + 1 == argc)) {
            out[n++] = argv[i];
            continue;
        }
        out[n++] = set;
        out[n++] = text;
        text += sprintf(text, "%s=%s", key, equals ? equals + 1 : argv[++i]) + 1;
    }
    out[n] = NULL;
    return out;
}
