// SPDX-License-Identifier: Apache-2.0
// For wordpiece.py: words TOKENIZER reads texts, each behind its length as 8 digits of hex, and
// prints a line for each: its ids, a bar, and the text that they give.
#include <stdio.h>
#include <stdlib.h>

#include "text/tokenizer.h"

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_tokenizer *t = NULL;
    struct mr_tokens tokens = {0};
    struct mr_buf back = {0};
    char length[9] = {0};
    int rc = argc == 2 ? mr_tokenizer_open(&t, argv[1], &err) : MR_ERR_USAGE;
    while (rc == 0 && fread(length, 1, 8, stdin) == 8) {
        size_t size = strtoul(length, NULL, 16);
        char *text = malloc(size + 1);
        tokens.count = back.size = 0;
        rc = text && fread(text, 1, size, stdin) == size ? 0 : MR_ERR_IO;
        if (rc == 0)
            rc = mr_tokenizer_encode(t, text, size, MR_SPECIAL_PARSE, &tokens, &err);
        if (rc == 0)
            rc = mr_tokenizer_decode(t, tokens.ids, tokens.count, true, &back, &err);
        for (size_t i = 0; rc == 0 && i < tokens.count; i++)
            printf("%d ", (int)tokens.ids[i]);
        printf("|%.*s\n", (int)back.size, back.size ? back.data : "");
        free(text);
    }
    if (rc)
        fprintf(stderr, "words: %s\n", err.text);
    mr_tokenizer_close(t);
    mr_tokens_free(&tokens);
    mr_buf_free(&back);
    return rc ? 1 : 0;
}
