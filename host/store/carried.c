// SPDX-License-Identifier: Apache-2.0
#include "store/carried.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/peft.h"
#include "checkpoint/safetensors_write.h"
#include "common/file.h"
#include "pack/hash.h"
#include "store/adapter.h"

const char *mr_store_carried_name(const struct mr_config *c, int i)
{
    enum { MERGES = 4 }; // of encoders: a word's pieces are in vocab.txt
    static const char *const names[MR_STORE_CARRIED] = {
        "config.json", "tokenizer.json",    "tokenizer_config.json",   "vocab.json",
        "merges.txt",  "added_tokens.json", "special_tokens_map.json", "generation_config.json"};
    return i == MERGES && mr_arch_of(c)->encoder ? "vocab.txt" : names[i];
}

struct copy {
    const struct mr_directory *d;
    const void *data;
    size_t size;
};

static int put_copy(void *arg, FILE *f, struct mr_error *err)
{
    const struct copy *c = arg;
    return mr_directory_put(c->d, f, c->data, c->size, err);
}

static struct mr_store_carried sum_of(const void *data, size_t size)
{
    return (struct mr_store_carried){size, XXH3_64bits(data, size)};
}

static int carry(struct mr_store *s, const struct mr_directory *d, const char *path, int i,
                 const struct mr_store_options *options, struct mr_error *err)
{
    struct mr_file file = {0};
    char *text = NULL;
    int rc = mr_file_map(&file, path, err);
    struct copy c = {d, file.data, file.size};
    if (rc == 0 && i == 0 && options->n_labels > 0) {
        rc = mr_config_with_labels(&text, (const char *)file.data, file.size, options->labels,
                                   options->n_labels, path, err);
    } else if (rc == 0 && i == 0 && options->positions > 0) {
        rc = mr_config_with_integer(&text, (const char *)file.data, file.size,
                                    mr_arch_key(mr_arch_of(&s->config), MR_KEY(n_positions)),
                                    options->positions, path, err);
    }
    if (text)
        c = (struct copy){d, text, strlen(text)};
    if (rc == 0)
        rc = mr_directory_file(d, mr_store_carried_name(&s->config, i), put_copy, &c, err);
    if (rc == 0)
        s->header->carried[i] = sum_of(c.data, c.size);
    free(text);
    mr_file_unmap(&file);
    return rc;
}

// adapter_config.json: it is no file of the model.
static int write_settings(struct mr_store *s, const struct mr_directory *d, struct mr_error *err)
{
    const struct mr_adapter *a = s->adapter;
    char *text = mr_peft_config(&a->lora, &s->config, a->base_name);
    if (!text)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", d->dir);
    struct copy c = {d, text, strlen(text)};
    int rc = mr_directory_file(d, MR_PEFT_CONFIG, put_copy, &c, err);
    if (rc == 0)
        *mr_store_settings(s->header, &s->layout) = sum_of(text, c.size);
    free(text);
    return rc;
}

int mr_store_carry(struct mr_store *s, const struct mr_directory *d, const char *from,
                   const struct mr_store_options *options, struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; i < MR_STORE_CARRIED && rc == 0; i++) {
        char *path = mr_path_join(from, mr_store_carried_name(&s->config, i), err);
        if (!path)
            return MR_ERR_MEMORY;
        if (mr_file_exists(path))
            rc = carry(s, d, path, i, options, err);
        free(path);
    }
    return rc == 0 && s->adapter ? write_settings(s, d, err) : rc;
}

static int check_file(const struct mr_store *s, const char *name,
                      const struct mr_store_carried *want, struct mr_error *err)
{
    struct mr_file file = {0};
    char *path = mr_path_join(s->dir, name, err);
    if (!path)
        return MR_ERR_MEMORY;
    int rc = want->size > 0 ? mr_file_map(&file, path, err) : 0;
    if (rc == 0 && want->size > 0) {
        struct mr_store_carried is = sum_of(file.data, file.size);
        if (is.size != want->size || is.hash != want->hash)
            rc = mr_fail(err, MR_ERR_FORMAT,
                         "%s: is not the file that the state was made with (checksum); put it "
                         "back from %s",
                         path, s->adapter ? "a copy" : "the model's directory");
    }
    mr_file_unmap(&file);
    free(path);
    return rc;
}

int mr_store_carried_check(const struct mr_store *s, struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; i < MR_STORE_CARRIED && rc == 0; i++)
        rc = check_file(s, mr_store_carried_name(&s->config, i), &s->header->carried[i], err);
    return rc == 0 && s->adapter
               ? check_file(s, MR_PEFT_CONFIG, mr_store_settings(s->header, &s->layout), err)
               : rc;
}
