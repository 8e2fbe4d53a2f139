// SPDX-License-Identifier: Apache-2.0
// Speed of the tokenizer in processor time of one core, on easy and on hard text. Prints figures
// and fails only where encoding does. usage: tokenizer TOKENIZER [TEXT_FILE]...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/file.h"
#include "text/tokenizer.h"

enum { MB = 1000000, HARD = 4 * MB };

static uint64_t state = 1;

static unsigned draw(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(state >> 33);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int measure(const char *tokenizer, const char *name, const void *text, size_t size)
{
    struct mr_error err = {0};
    struct mr_tokenizer *t;
    struct mr_tokens tokens = {0};
    double first = 0, best = 0;
    int rc = mr_tokenizer_open(&t, tokenizer, &err);
    for (int i = 0; i < 4 && rc == 0; i++) {
        double start = seconds();
        tokens.count = 0;
        rc = mr_tokenizer_encode(t, text, size, MR_SPECIAL_PARSE, &tokens, &err);
        double speed = (double)size / MB / (seconds() - start);
        first = i == 0 ? speed : first;
        best = speed > best ? speed : best;
    }
    if (rc == 0)
        printf("%-30s %6.1f MB, %5.2f bytes a token: %6.1f MB/s first, %6.1f best\n", name,
               (double)size / MB, (double)size / (double)tokens.count, first, best);
    else
        fprintf(stderr, "%s: %s\n", name, err.text);
    mr_tokens_free(&tokens);
    mr_tokenizer_close(t);
    return rc;
}

static int measure_file(const char *tokenizer, const char *path)
{
    struct mr_error err = {0};
    struct mr_file file = {0};
    if (mr_file_map(&file, path, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    int rc = measure(tokenizer, path, file.data, file.size);
    mr_file_unmap(&file);
    return rc;
}

int main(int argc, char **argv)
{
    static const char letters[] = "etaoinshrdlu", opening[] = "<|endoftext";
    unsigned char *text = malloc(HARD);
    int rc = argc > 1 && text ? 0 : -1;
    for (int i = 2; i < argc && rc == 0; i++)
        rc = measure_file(argv[1], argv[i]);
    for (size_t i = 0; i < HARD && rc == 0; i++)
        text[i] = (unsigned char)draw();
    rc = rc ? rc : measure(argv[1], "random bytes", text, HARD);
    for (size_t i = 0; i < HARD && rc == 0; i++)
        text[i] = (unsigned char)(i % 12 ? letters[draw() % 12] : ' ');
    rc = rc ? rc : measure(argv[1], "words that do not repeat", text, HARD);
    for (size_t i = 0; i < HARD && rc == 0; i++)
        text[i] = (unsigned char)letters[draw() % 12];
    rc = rc ? rc : measure(argv[1], "one word", text, HARD);
    for (size_t i = 0; i < HARD && rc == 0; i++)
        text[i] = (unsigned char)opening[i % (sizeof opening - 1)];
    rc = rc ? rc : measure(argv[1], "beginnings of added tokens", text, HARD);
    free(text);
    return rc != 0;
}
