// SPDX-License-Identifier: Apache-2.0
// Records of training data: the first byte says of which kind, the others are the file, compressed
// or not.
#include "data/records.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST = 4096, KINDS = 4 }; // records; formats without labels, with them three more

static uint64_t look_at(const char *text, size_t size)
{
    uint64_t sum = 0;
    fuzz_check(size == 0 || text != NULL, "a text");
    for (size_t i = 0; i < size; i++)
        sum = 31 * sum + (unsigned char)text[i];
    return sum;
}

static void read_records(struct mr_records *r, int kind, uint64_t *sum)
{
    const bool labelled = kind >= KINDS;
    const struct mr_data_fields fields = {.text = "text",
                                          .prompt = "prompt",
                                          .completion = "completion",
                                          .pair = "pair",
                                          .label = labelled ? "label" : NULL};
    struct mr_error err = {0};
    struct mr_record record;
    int rc = mr_records_open(r, (enum mr_data_format)(labelled ? kind - 2 : 1 + kind), &fields,
                             "<|endoftext|>", 13, &err);
    fuzz_check_outcome(rc, &err);
    for (int i = 0; rc == 0 && i < MOST; i++) {
        rc = mr_records_next(r, &record, &err);
        fuzz_check_outcome(rc < 0 ? rc : 0, &err);
        if (rc != 1)
            break;
        *sum += look_at(record.prompt, record.prompt_size) + look_at(record.text, record.size) +
                look_at(record.pair, record.pair_size) + look_at(record.label, record.label_size);
        fuzz_check(labelled == (record.label != NULL), "a label");
        fuzz_check(record.whole == (kind != 0), "what is whole");
        rc = 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile uint64_t sum;
    struct mr_error err = {0};
    if (size < 2)
        return 0;
    struct mr_records *r = calloc(1, sizeof *r);
    FILE *file = fmemopen((void *)(uintptr_t)(data + 1), size - 1, "rb");
    fuzz_check(r && file, "memory");
    uint64_t one = 0;
    int rc = mr_source_from(&r->source, file, "fuzz", &err);
    fuzz_check_outcome(rc, &err);
    if (rc == 0) {
        read_records(r, data[0] % (2 * KINDS - 1), &one);
        mr_records_close(r);
    }
    sum = one; // all bytes were looked at
    (void)sum;
    free(r);
    return 0;
}
