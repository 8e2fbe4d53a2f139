// SPDX-License-Identifier: Apache-2.0
// Runs the targets over their corpora without a fuzzer, so that `make test` needs no libFuzzer:
// each input as it is, cut off, and with bytes changed in a way that is the same every time.
// usage: regress CORPUS_DIRECTORY, from any directory. Prints TAP; a fault ends it.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int fuzz_safetensors(const uint8_t *data, size_t size);
int fuzz_zip(const uint8_t *data, size_t size);
int fuzz_pickle(const uint8_t *data, size_t size);
int fuzz_tokenizer(const uint8_t *data, size_t size);
int fuzz_config(const uint8_t *data, size_t size);
int fuzz_packed(const uint8_t *data, size_t size);
int fuzz_kv(const uint8_t *data, size_t size);
int fuzz_store(const uint8_t *data, size_t size);
int fuzz_completion(const uint8_t *data, size_t size);
int fuzz_records(const uint8_t *data, size_t size);
int fuzz_examples(const uint8_t *data, size_t size);
int fuzz_training(const uint8_t *data, size_t size);
int fuzz_adapter(const uint8_t *data, size_t size);

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
    {"safetensors", fuzz_safetensors},
    {"zip", fuzz_zip},
    {"pickle", fuzz_pickle},
    {"tokenizer", fuzz_tokenizer},
    {"config", fuzz_config},
    {"packed", fuzz_packed},
    {"kv", fuzz_kv},
    {"store", fuzz_store},
    {"completion", fuzz_completion},
    {"records", fuzz_records},
    {"examples", fuzz_examples},
    {"training", fuzz_training},
    {"adapter", fuzz_adapter},
};
enum { TARGETS = sizeof targets / sizeof *targets, VARIANTS = 24 };

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33);
}

// The bytes are in memory of exactly their size, so that a read beyond them is seen.
static void run_copy(size_t target, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    fuzz_check(copy != NULL, "memory");
    memcpy(copy, data, size);
    targets[target].run(copy, size);
    free(copy);
}

static void run_variants(size_t target, uint8_t *data, size_t size)
{
    uint64_t state = size;
    run_copy(target, data, size);
    for (int i = 0; i < VARIANTS && size > 0; i++) {
        size_t at = draw(&state) % size;
        uint8_t was = data[at];
        data[at] = (uint8_t)(i % 3 ? was ^ 1U << draw(&state) % 8 : draw(&state));
        run_copy(target, data, size);
        data[at] = was;
        if (i % 4 == 0)
            run_copy(target, data, at);
    }
}

static int run_file(size_t target, const char *path)
{
    FILE *f = fopen(path, "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    uint8_t *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (data)
        rewind(f);
    int ok = data && fread(data, 1, (size_t)size, f) == (size_t)size;
    if (ok)
        run_variants(target, data, (size_t)size);
    free(data);
    if (f)
        (void)fclose(f); // only read
    return ok;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (size_t i = 0; i < TARGETS && argc > 1; i++) {
        char path[1024];
        int inputs = 0, bad = 0;
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], targets[i].name);
        DIR *dir = opendir(path);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            if (e->d_name[0] == '.')
                continue;
            (void)snprintf(path, sizeof path, "%s/%s/%s", argv[1], targets[i].name, e->d_name);
            inputs++;
            bad += !run_file(i, path);
        }
        if (dir)
            (void)closedir(dir);
        bad += inputs < 3; // an empty corpus tests nothing
        failed += bad > 0;
        printf("%sok %zu - fuzz_corpus_%s # %d inputs\n", bad ? "not " : "", i + 1, targets[i].name,
               inputs);
        fflush(stdout);
    }
    printf("1..%d\n", TARGETS);
    return argc < 2 || failed;
}
