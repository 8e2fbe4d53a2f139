// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output.h"
#include "pack/hash.h"
#include "pack/pack.h"
#include "pack/packed_format.h"

struct writer {
    struct mr_output output;
    struct mr_packed_layout layout;
    struct mr_file config; // config.json
    struct mr_buf tokenizer;
    struct mr_error *err;
};

// The texts that go into the file; what is written must be readable.
static int read_texts(struct writer *w, const char *dir, const struct mr_config *expected,
                      bool tokenizer)
{
    struct mr_config now;
    struct mr_tokenizer *parsed = NULL;
    char *path = mr_path_join(dir, "config.json", w->err);
    if (!path)
        return MR_ERR_MEMORY;
    int rc = mr_file_map(&w->config, path, w->err);
    if (rc == 0)
        rc = mr_config_parse(&now, w->config.data, w->config.size, MR_EITHER, path, w->err);
    now.heads = expected->heads; // what the weights have, too
    if (rc == 0 && memcmp(&now, expected, sizeof now) != 0)
        rc = mr_fail(w->err, MR_ERR_FORMAT,
                     "%s: has changed since the model was loaded; load it again", path);
    free(path);
    if (rc == 0 && tokenizer)
        rc = mr_tokenizer_text(dir, &w->tokenizer, w->err);
    if (rc == 0 && tokenizer)
        rc = mr_tokenizer_parse(&parsed, w->tokenizer.data, w->tokenizer.size, dir, w->err);
    mr_tokenizer_close(parsed);
    return rc;
}

// Nothing but a packed file is replaced in the checkpoint's directory: its weights may have no
// copy.
static int check_output(const struct writer *w, const char *dir, const char *path)
{
    char first[sizeof mr_packed_magic] = "";
    FILE *f = mr_file_is_in(path, dir) ? fopen(path, "rb") : NULL;
    if (!f)
        return 0;
    bool packed = fread(first, 1, sizeof first, f) == sizeof first &&
                  memcmp(first, mr_packed_magic, sizeof first) == 0;
    (void)fclose(f); // only read
    return packed ? 0
                  : mr_fail(w->err, MR_ERR_USAGE,
                            "%s: is a file of the Hugging Face directory and would be replaced; "
                            "choose another name",
                            path);
}

static int begin(struct writer *w, const char *dir, const char *path, const struct mr_packed *p)
{
    int rc = check_output(w, dir, path);
    if (rc == 0)
        rc = mr_packed_one_type(p, dir, w->err);
    if (rc < 0)
        return rc;
    rc = mr_packed_layout_make(&w->layout, p, w->config.size, w->tokenizer.size, w->err);
    return rc ? rc : mr_output_open(&w->output, path, w->layout.header.file_bytes, w->err);
}

static int put_section(struct writer *w, int i, const void *data)
{
    struct mr_packed_section *s = &w->layout.header.section[i];
    s->hash = XXH3_64bits(data, s->size);
    return mr_output_write(&w->output, s->offset, data, s->size, w->err);
}

// Everything but the tensors, whose checksums are known now. What was never written (the padding)
// reads as zero.
static int finish(struct writer *w)
{
    struct mr_packed_header *h = &w->layout.header;
    int rc = put_section(w, MR_S_CONFIG, w->config.data);
    if (rc == 0)
        rc = put_section(w, MR_S_TOKENIZER, w->tokenizer.data);
    if (rc == 0)
        rc = put_section(w, MR_S_TENSORS, w->layout.tensors);
    h->hash = mr_packed_header_hash(h);
    if (rc == 0)
        rc = mr_output_write(&w->output, 0, h, sizeof *h, w->err);
    return rc ? rc : mr_output_commit(&w->output, w->err);
}

static void release(struct writer *w)
{
    mr_output_abandon(&w->output);
    mr_packed_layout_free(&w->layout);
    mr_file_unmap(&w->config);
    mr_buf_free(&w->tokenizer);
}

// ---- from memory ----

// Bounded parts, so that an interrupt is seen soon.
static int put_tensor(struct writer *w, struct mr_packed_tensor *t, const uint8_t *data,
                      const volatile sig_atomic_t *stop)
{
    t->hash = XXH3_64bits(data, t->size);
    int rc = 0;
    for (uint64_t at = 0, n; at < t->size && rc == 0; at += n) {
        n = t->size - at < (uint64_t)4 << 20 ? t->size - at : (uint64_t)4 << 20;
        rc = stop && *stop
                 ? mr_fail(w->err, MR_ERR_INTERRUPTED, "%s: interrupted, not written",
                           w->output.path)
                 : mr_output_write(&w->output, t->offset + at, data + at, (size_t)n, w->err);
    }
    return rc;
}

static int put_tensors(struct writer *w, const struct mr_packed *p,
                       const volatile sig_atomic_t *stop)
{
    struct mr_packed_tensor *t = w->layout.tensors;
    size_t tables = w->layout.tables;
    int rc = 0;
    for (size_t i = 0; i < tables && rc == 0; i++) {
        const struct mr_tensor *table = mr_packed_table(p, (int)i);
        unsigned char *copy = malloc(t[i].size);
        if (!copy)
            return mr_fail(w->err, MR_ERR_MEMORY, "no memory for the embedding");
        (void)mr_tensor_copy(table, 0, table->count, copy); // all of it
        rc = put_tensor(w, &t[i], copy, stop);
        free(copy);
    }
    for (int i = 0; i < p->list.count && rc == 0; i++)
        rc = put_tensor(w, &t[tables + (size_t)i], p->stream + p->list.entries[i].at, stop);
    return rc;
}

int mr_packed_save(const struct mr_packed *packed, const char *dir, const char *path,
                   const volatile sig_atomic_t *stop, struct mr_error *err)
{
    struct writer w = {.output.fd = -1, .err = err};
    int rc = read_texts(&w, dir, &packed->config, packed->tokenizer);
    if (rc == 0)
        rc = begin(&w, dir, path, packed);
    if (rc == 0)
        rc = put_tensors(&w, packed, stop);
    if (rc == 0)
        rc = finish(&w);
    release(&w);
    return rc;
}

// ---- from a checkpoint ----

int mr_pack_file(const char *dir, const char *path, const struct mr_pack_options *opt,
                 struct mr_pack_result *result, struct mr_error *err)
{
    struct mr_packed p;
    struct mr_packer packer = {0};
    struct mr_sink sink = {0};
    struct writer w = {.output.fd = -1, .err = err};
    int rc = mr_packer_open(&packer, &p, dir, opt, err);
    if (rc == 0)
        rc = read_texts(&w, dir, &p.config, p.tokenizer);
    if (rc == 0)
        rc = begin(&w, dir, path, &p);
    if (rc == 0)
        rc = mr_sink_init(&sink, NULL, &w.output, err);
    if (rc == 0)
        rc = mr_packer_tables(&packer, &sink, &w.layout.tensors[0], err);
    if (rc == 0)
        rc = mr_packer_stream(&packer, &sink, &w.layout.tensors[w.layout.tables], err);
    if (rc == 0)
        rc = finish(&w);
    if (rc == 0)
        *result = (struct mr_pack_result){.config = p.config,
                                          .file_bytes = w.layout.header.file_bytes,
                                          .stream_bytes = p.list.bytes,
                                          .input_bytes = packer.input_bytes};
    mr_packer_close(&packer);
    mr_sink_free(&sink);
    release(&w);
    mr_packed_close(&p);
    return rc;
}
