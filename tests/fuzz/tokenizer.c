// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json, and with what it makes: any text of at most 30,000 bytes encodes, and ids that
// come out decode.
#include "text/tokenizer.h"

#include "fuzz.h"

static void use(struct mr_tokenizer *t, const void *text, size_t size)
{
    struct mr_error err = {0};
    struct mr_tokens tokens = {0};
    struct mr_buf back = {0};
    int rc = mr_tokenizer_encode(t, text, size, MR_SPECIAL_PARSE, &tokens, &err);
    fuzz_check(rc == 0, err.text);
    for (size_t i = 0; i < tokens.count; i++)
        fuzz_check(tokens.ids[i] >= 0 && tokens.ids[i] < mr_tokenizer_vocab_size(t), "an id");
    rc = mr_tokenizer_decode(t, tokens.ids, tokens.count, false, &back, &err);
    fuzz_check(rc == 0, err.text);
    mr_buf_free(&back);
    mr_tokens_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "it's  a \xc3\xa9t\xc3\xa9 \xe2\x82\xac\xff 12 <|endoftext|>\n\n  <x> the theheththe "
        "abababababababababababababababababababababababababababababababab ";
    struct mr_error err = {0};
    struct mr_tokenizer *t;
    int rc = mr_tokenizer_parse(&t, data, size, "tokenizer.json", &err);
    fuzz_check_outcome(rc, &err);
    fuzz_check((rc == 0) == (t != NULL), "NULL after a failure");
    if (rc == 0) {
        use(t, text, sizeof text - 1);
        if (size <= 30000)
            use(t, data, size);
    }
    mr_tokenizer_close(t);
    return 0;
}
