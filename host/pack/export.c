// SPDX-License-Identifier: Apache-2.0
#include "pack/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "pack/decode.h"

static const char *const file_names[] = {"config.json", "tokenizer.json", "model.safetensors"};
enum { F_CONFIG, F_TOKENIZER, F_WEIGHTS, N_FILES };

struct export
{
    const struct mr_packed *packed;
    char *dir, *tmp; // where it goes, and where it is made
    const volatile sig_atomic_t *stop;
    struct mr_error *err;
};

// ---- files -------------------------------------------------------------------------------------

static int cannot(const struct export *u, const char *what, const char *name)
{
    return mr_fail(u->err, MR_ERR_IO, "%s: cannot %s%s: %s", u->dir, what, name, strerror(errno));
}

// Makes the file `index` of the directory and lets `put` fill it.
static int write_file(const struct export *u, int index,
                      int (*put)(const struct export *u, FILE *f))
{
    char *path = mr_path_join(u->tmp, file_names[index], u->err);
    if (!path)
        return MR_ERR_MEMORY;
    FILE *f = fopen(path, "wbxe");
    int rc = f ? put(u, f) : cannot(u, "create ", file_names[index]);
    // A write that failed shows here: stdio remembers it.
    if (f && rc == 0 && (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) < 0))
        rc = cannot(u, "write ", file_names[index]);
    if (f && fclose(f) != 0 && rc == 0)
        rc = cannot(u, "write ", file_names[index]);
    free(path);
    return rc;
}

static int put_bytes(const struct export *u, FILE *f, const void *data, size_t size)
{
    if (u->stop && *u->stop)
        return mr_fail(u->err, MR_ERR_INTERRUPTED, "%s: interrupted, not written", u->dir);
    if (fwrite(data, 1, size, f) != size)
        return cannot(u, "write", "");
    return 0;
}

static void sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); // not every file system can
        (void)close(fd);
    }
}

// ---- configuration and tokenizer ---------------------------------------------------------------

// The checkpoint's own text, but for the type: matrices here are bf16 and vectors fp32, and
// transformers, which loads everything in the type of the configuration, loses nothing with fp32.
static int put_config(const struct export *u, FILE *f)
{
    json_t *root;
    int rc = mr_json_parse(&root, u->packed->config_text, u->packed->config_bytes, u->dir, u->err);
    if (rc < 0)
        return rc;
    (void)json_object_del(root, "torch_dtype"); // its name before transformers 5
    char *text = json_object_set_new(root, "dtype", json_string("float32")) == 0
                     ? json_dumps(root, JSON_INDENT(2))
                     : NULL;
    rc = text ? put_bytes(u, f, text, strlen(text))
              : mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for the configuration", u->dir);
    if (rc == 0)
        rc = put_bytes(u, f, "\n", 1);
    free(text);
    json_decref(root);
    return rc;
}

static int put_tokenizer(const struct export *u, FILE *f)
{
    return put_bytes(u, f, u->packed->tokenizer_text, u->packed->tokenizer_bytes);
}

// ---- weights -----------------------------------------------------------------------------------

// The tensors of a stream item: gain and bias of a LayerNorm, or a matrix and perhaps its bias.
struct part {
    char name[MR_NAME];
    const char *dtype;
    int rows, cols; // cols = 0: a vector
    size_t bytes;
};

static int parts_of(const struct mr_config *c, const struct mr_stream_item *item,
                    struct part part[MR_PARTS])
{
    int n = 0;
    struct mr_matrix_shape s = mr_matrix_shape(c, item);
    for (int i = 0; i < MR_PARTS; i++) {
        struct part *p = &part[n];
        bool matrix = i == MR_WEIGHT && item->cols > 0;
        if (!mr_item_has(item->item, (enum mr_part)i) ||
            (i == MR_WEIGHT && mr_item_tied(mr_arch_of(c), item->item)))
            continue;
        mr_tensor_name(c, item->layer, item->item, (enum mr_part)i, p->name);
        p->dtype = matrix ? "BF16" : "F32";
        p->rows = item->cols == 0 ? c->n_embd : s.rows;
        p->cols = matrix ? s.cols : 0;
        p->bytes = matrix ? (size_t)s.rows * (size_t)s.cols * 2 : (size_t)p->rows * sizeof(float);
        if (matrix && item->item->transposed) {
            p->rows = s.cols;
            p->cols = s.rows;
        }
        n++;
    }
    return n;
}

static int add_entry(json_t *header, const char *name, const char *dtype, int rows, int cols,
                     size_t bytes, size_t *at)
{
    json_t *shape = cols ? json_pack("[i, i]", rows, cols) : json_pack("[i]", rows);
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                              "data_offsets", (json_int_t)*at, (json_int_t)(*at + bytes));
    *at += bytes;
    return json_object_set_new(header, name, entry);
}

// The header as text, padded with spaces so that the data begins at a multiple of 8.
static int put_header(const struct export *u, FILE *f)
{
    const struct mr_packed *p = u->packed;
    const struct mr_list *tables = &mr_arch_of(&p->config)->tables;
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    size_t at = 0;
    int bad = !header;
    for (int i = 0; !bad && i < tables->count; i++) {
        const struct mr_tensor *e = mr_packed_table(p, i);
        char name[MR_NAME];
        bad = add_entry(header, mr_tensor_name(&p->config, -1, &tables->items[i], MR_WEIGHT, name),
                        mr_dtype_name(e->dtype), (int)e->shape[0], (int)e->shape[1], e->bytes, &at);
    }
    for (int i = 0; !bad && i < mr_stream_items(&p->config); i++) {
        struct mr_stream_item item = mr_stream_item(&p->config, p->format, i);
        struct part part[MR_PARTS];
        int n = parts_of(&p->config, &item, part);
        for (int k = 0; k < n; k++)
            bad |= add_entry(header, part[k].name, part[k].dtype, part[k].rows, part[k].cols,
                             part[k].bytes, &at);
    }
    char *text = bad ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (!text)
        return mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for the header", u->dir);
    uint64_t size = strlen(text), padded = (size + 7) / 8 * 8;
    int rc = put_bytes(u, f, &padded, sizeof padded);
    if (rc == 0)
        rc = put_bytes(u, f, text, size);
    if (rc == 0)
        rc = put_bytes(u, f, "       ", padded - size);
    free(text);
    return rc;
}

struct scratch {
    float *col;
    uint16_t *row;
};

// A row in the order of the checkpoint.
static int fill_row(const struct export *u, const struct mr_stream_item *item,
                    const struct mr_matrix_shape *shape, const struct scratch *s)
{
    char label[MR_NAME];
    for (int i = 0; i < item->k; i++) {
        int c = mr_unpad(i, shape->col_head, shape->cols);
        uint32_t bits;
        if (c < 0)
            continue;
        memcpy(&bits, &s->col[i], sizeof bits);
        if (!isfinite(s->col[i]))
            return mr_fail(u->err, MR_ERR_FORMAT,
                           "%s: %s has a NaN block or a value beyond bf16; the packed file was "
                           "not made by this program",
                           u->dir,
                           mr_item_label(&u->packed->config, item->layer, item->item, label));
        s->row[c] = (uint16_t)(bits >> 16); // exact: at most 8 significant bits
    }
    return 0;
}

static int put_weight(const struct export *u, FILE *f, const struct mr_stream_item *item,
                      const uint8_t *at, const struct scratch *s)
{
    struct mr_matrix_shape shape = mr_matrix_shape(&u->packed->config, item);
    size_t rows = (size_t)shape.rows, cols = (size_t)shape.cols;
    uint16_t *turned = item->item->transposed ? malloc(rows * cols * sizeof *turned) : NULL;
    int rc = 0;
    if (item->item->transposed && !turned)
        return mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for a matrix", u->dir);
    for (int o = 0; o < item->cols && rc == 0; o++) {
        int r = mr_unpad(o, shape.row_head, shape.rows);
        if (r < 0)
            continue; // padding; the others come in the order of the checkpoint
        mr_decode_column(item, at, o, s->col);
        rc = fill_row(u, item, &shape, s);
        for (size_t i = 0; turned && i < cols; i++)
            turned[i * rows + (size_t)r] = s->row[i];
        if (rc == 0 && !turned)
            rc = put_bytes(u, f, s->row, cols * sizeof *s->row);
    }
    if (rc == 0 && turned)
        rc = put_bytes(u, f, turned, rows * cols * sizeof *turned);
    free(turned);
    return rc;
}

static int put_matrix(const struct export *u, FILE *f, const struct mr_stream_item *item,
                      const uint8_t *at, const struct scratch *s)
{
    const struct mr_config *c = &u->packed->config;
    struct mr_matrix_shape shape = mr_matrix_shape(c, item);
    // What is tied has been written as a table.
    int rc = mr_item_tied(mr_arch_of(c), item->item) ? 0 : put_weight(u, f, item, at, s);
    for (int o = 0; o < item->cols && rc == 0 && item->bias; o++) {
        if (mr_unpad(o, shape.row_head, shape.rows) < 0)
            continue;
        float bias = mr_decode_bias(item, at, o);
        rc = put_bytes(u, f, &bias, sizeof bias);
    }
    return rc;
}

static int put_items(const struct export *u, FILE *f, struct scratch *s)
{
    const struct mr_packed *p = u->packed;
    const uint8_t *at = p->stream;
    int rc = 0;
    for (int i = 0; i < mr_arch_of(&p->config)->tables.count && rc == 0; i++)
        rc = put_bytes(u, f, mr_packed_table(p, i)->data, mr_packed_table(p, i)->bytes);
    for (int i = 0; rc == 0 && i < mr_stream_items(&p->config); i++) {
        struct mr_stream_item item = mr_stream_item(&p->config, p->format, i);
        for (int part = 0; rc == 0 && part < 2 && item.cols == 0; part++) {
            mr_decode_vector(&item, at, part, s->col);
            rc = put_bytes(u, f, s->col, (size_t)p->config.n_embd * sizeof *s->col);
        }
        if (rc == 0 && item.cols > 0)
            rc = put_matrix(u, f, &item, at, s);
        at += (size_t)mr_item_beats(&item, 1) * MR_BEAT;
    }
    return rc;
}

static int put_weights(const struct export *u, FILE *f)
{
    size_t longest = (size_t)mr_dims_of(&u->packed->config).longest;
    struct scratch s = {malloc(longest * sizeof *s.col), malloc(longest * sizeof *s.row)};
    int rc = s.col && s.row ? put_header(u, f)
                            : mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for a row", u->dir);
    if (rc == 0)
        rc = put_items(u, f, &s);
    free(s.col);
    free(s.row);
    return rc;
}

// ---- the directory -----------------------------------------------------------------------------

static void remove_temporary(const struct export *u)
{
    for (int i = 0; i < N_FILES; i++) {
        char *path = mr_path_join(u->tmp, file_names[i], NULL);
        if (path)
            (void)unlink(path); // those that were not made are not there
        free(path);
    }
    (void)rmdir(u->tmp);
}

static int not_empty(const struct export *u)
{
    return mr_fail(u->err, MR_ERR_IO, "%s: exists and is not empty; name a new directory", u->dir);
}

static int write_directory(const struct export *u)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    int rc = write_file(u, F_CONFIG, put_config);
    if (rc == 0 && u->packed->tokenizer)
        rc = write_file(u, F_TOKENIZER, put_tokenizer);
    if (rc == 0)
        rc = write_file(u, F_WEIGHTS, put_weights);
    if (rc == 0 && chmod(u->tmp, 0777 & ~mask) < 0)
        rc = cannot(u, "set its mode", "");
    if (rc == 0) {
        sync_directory(u->tmp);
        if (rename(u->tmp, u->dir) < 0) // replaces an empty directory, and nothing else
            rc = errno == ENOTEMPTY || errno == EEXIST ? not_empty(u)
                                                       : cannot(u, "put the directory there", "");
    }
    return rc;
}

// Said before the work; rename() would say it after it.
static int check_target(const struct export *u)
{
    struct stat st, here;
    DIR *dir = opendir(u->dir);
    if (!dir)
        return errno == ENOENT ? 0 : cannot(u, "write there", "");
    if (fstat(dirfd(dir), &st) == 0 && stat(".", &here) == 0 && st.st_dev == here.st_dev &&
        st.st_ino == here.st_ino) {
        (void)closedir(dir);
        return mr_fail(u->err, MR_ERR_IO,
                       "%s: is the working directory, which cannot be replaced; name a new "
                       "directory",
                       u->dir);
    }
    int entries = 0;
    while (readdir(dir))
        entries++;
    (void)closedir(dir);
    return entries <= 2 ? 0 : not_empty(u);
}

int mr_export(const struct mr_packed *packed, const char *dir, const volatile sig_atomic_t *stop,
              struct mr_error *err)
{
    if (!packed->config_text)
        return mr_fail(err, MR_ERR_USAGE, "%s: only a packed file can be unpacked", dir);
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') // the temporary name goes behind it
        n--;
    char *real = realpath(dir, NULL); // of a link to a directory, that is replaced
    struct export u = {packed, real ? real : strndup(dir, n), NULL, stop, err};
    size_t room = u.dir ? strlen(u.dir) + sizeof ".XXXXXX" : 0;
    u.tmp = u.dir ? malloc(room) : NULL;
    int rc = u.tmp ? check_target(&u) : mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
    if (rc == 0) {
        snprintf(u.tmp, room, "%s.XXXXXX", u.dir);
        if (!mkdtemp(u.tmp)) {
            rc = cannot(&u, "create a directory there", "");
        } else {
            rc = write_directory(&u);
            if (rc < 0)
                remove_temporary(&u);
        }
    }
    free(u.dir);
    free(u.tmp);
    return rc;
}
