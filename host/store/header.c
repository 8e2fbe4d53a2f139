// SPDX-License-Identifier: Apache-2.0
#include "store/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack/hash.h"
#include "store/turned.h"

static const char magic[8] = "MILLRSTO";

uint64_t mr_store_model(const struct mr_config *c)
{
    char text[256];
    memset(text, 0, sizeof text);
    int n = snprintf(text, sizeof text, "%s %d %d %d %d %d %d %d %a", mr_arch_of(c)->type,
                     c->vocab_size, c->n_positions, c->n_embd, c->n_layer, c->n_head, c->rotary_dim,
                     c->n_inner, (double)c->layer_norm_epsilon);
    if (c->learns_labels)
        (void)snprintf(text + n, sizeof text - (size_t)n, " %d %d", c->n_types, c->n_labels);
    return XXH3_64bits(text, sizeof text);
}

uint32_t mr_store_slot_bytes(const struct mr_store_layout *l)
{
    size_t used = sizeof(struct mr_store_header) + l->units * sizeof(struct mr_store_unit) +
                  (l->adapter ? sizeof(struct mr_store_carried) : 0);
    return (uint32_t)((used + MR_PATCH_ALIGN - 1) / MR_PATCH_ALIGN * MR_PATCH_ALIGN);
}

struct mr_store_unit *mr_store_units(struct mr_store_header *header)
{
    return (struct mr_store_unit *)(void *)(header + 1);
}

struct mr_store_carried *mr_store_settings(struct mr_store_header *header,
                                           const struct mr_store_layout *l)
{
    return (struct mr_store_carried *)(void *)(mr_store_units(header) + l->units);
}

static uint64_t hash_of(const struct mr_store_header *h)
{
    struct mr_store_header copy = *h;
    XXH3_state_t *state = XXH3_createState();
    uint64_t hash = 0;
    copy.hash = 0;
    if (state) {
        (void)XXH3_64bits_reset(state);
        (void)XXH3_64bits_update(state, &copy, sizeof copy);
        (void)XXH3_64bits_update(state, h + 1, h->slot_bytes - sizeof copy);
        hash = XXH3_64bits_digest(state);
    }
    XXH3_freeState(state);
    return hash;
}

static int damaged(const char *where, const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FORMAT, "%s: %s; take a copy of the state, or begin again", where,
                   what);
}

enum { CHOICE = 4096 }; // units are below half of it

int mr_store_coded(int unit, int choice)
{
    return unit + choice * CHOICE;
}

int mr_store_choice(const struct mr_store_unit *unit)
{
    return (int)(((int64_t)unit->next + CHOICE / 2) >> 12);
}

int mr_store_unit_next(const struct mr_store_unit *unit)
{
    return unit->next - mr_store_choice(unit) * CHOICE;
}

static bool chooses(const struct mr_store_header *h)
{
    const struct mr_store_unit *unit = mr_store_units((struct mr_store_header *)(uintptr_t)h);
    for (uint64_t i = 0; i < h->tensors; i++)
        if (mr_store_choice(&unit[i]) != 0)
            return true;
    return false;
}

enum mr_update_kind mr_store_kind(const struct mr_store_header *h)
{
    return (enum mr_update_kind)(h->rule / MR_RULE_KIND);
}

static bool usable(double x, double low, double high)
{
    return x >= low && x <= high; // NaN is not
}

// What a checksum does not tell.
static bool consistent(const struct mr_store_header *h, const struct mr_store_layout *l)
{
    const struct mr_store_unit *unit = mr_store_units((struct mr_store_header *)(uintptr_t)h);
    bool good = h->side <= 1 && h->updating <= 1 && h->step < INT32_MAX &&
                h->rule / MR_RULE_KIND < MR_UPDATE_KINDS &&
                (h->rule < MR_RULE_KIND || h->version >= MR_STORE_OPTIMIZER) &&
                (h->origin == 0 || h->version >= MR_STORE_ORIGIN);
    if (h->updating)
        good = good && usable(h->rate, 0, 1) && usable(h->scale, 0, 1) && h->beta1 < 1 &&
               h->beta2 < 1 && usable(h->beta1, 0, 1) && usable(h->beta2, 0, 1) &&
               usable(h->epsilon, 0, 1) && usable(h->decay, 0, 1) &&
               (h->epsilon > 0 || mr_update_family(mr_store_kind(h)) == MR_SGD);
    good = good && l->adapter == (h->version == MR_STORE_ADAPTER);
    for (uint64_t i = 0; i < l->units; i++)
        good = good && usable(unit[i].now, -MR_UNIT_LIMIT, MR_UNIT_LIMIT) &&
               usable(mr_store_choice(&unit[i]), 0, MR_CHOICES - 1) &&
               usable(mr_store_unit_next(&unit[i]), -MR_UNIT_LIMIT, MR_UNIT_LIMIT);
    return good && (!chooses(h) || (h->updating && h->version >= MR_STORE_OPTIMIZER));
}

// Older versions have padded elements where newer ones have the lineage.
static bool fits(const struct mr_store_header *h, const struct mr_store_layout *l)
{
    return h->tensors == l->tensors && h->patches == l->patches && h->state_bytes == l->bytes &&
           h->gap >= l->largest && h->gap % MR_PATCH_ALIGN == 0 && h->gap <= l->bytes &&
           (h->version >= MR_STORE_LINEAGE || h->lineage == l->elements);
}

static bool known(uint32_t version)
{
    return version >= 1 && version <= MR_STORE_VERSION;
}

// The slot at `at`, or NULL if it is none.
static const struct mr_store_header *slot(const struct mr_volume *v, uint32_t slot_bytes,
                                          uint32_t at)
{
    const struct mr_store_header *h =
        (const struct mr_store_header *)(const void *)(v->data[MR_V_HEADER] + at);
    return memcmp(h->magic, magic, sizeof magic) == 0 && known(h->version) &&
                   h->slot_bytes == slot_bytes && h->hash == hash_of(h)
               ? h
               : NULL;
}

static int find(const struct mr_store_header **found, const struct mr_volume *v,
                const struct mr_store_layout *l, const char *where, struct mr_error *err)
{
    uint32_t bytes = mr_store_slot_bytes(l), version;
    const unsigned char *data = v->data[MR_V_HEADER];
    uint64_t size = v->size[MR_V_HEADER];
    if (size < 16 || (memcmp(data, magic, sizeof magic) != 0 &&
                      (size < bytes + 16 || memcmp(data + bytes, magic, sizeof magic) != 0)))
        return damaged(where, "has no header of a training's state", err);
    memcpy(&version, data + sizeof magic, sizeof version);
    if (!known(version) && (size != 2 * bytes || !slot(v, bytes, bytes)))
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: has version %u of the format, this program reads 1 to %d; use the "
                       "program that wrote it",
                       where, version, MR_STORE_VERSION);
    if (version == MR_STORE_ADAPTER && !l->adapter)
        return damaged(where, "is the state of an adapter, and its adapter_config.json is missing",
                       err);
    if (size != 2 * (uint64_t)bytes)
        return damaged(where, "its header has another size than its model's", err);
    const struct mr_store_header *a = slot(v, bytes, 0), *b = slot(v, bytes, bytes);
    *found = a && (!b || a->sequence > b->sequence) ? a : b;
    return *found ? 0 : damaged(where, "its header is damaged (checksum)", err);
}

static int check_size(const struct mr_volume *v, enum mr_volume_file f, uint64_t want,
                      const char *where, struct mr_error *err)
{
    if (v->size[f] == want)
        return 0;
    return mr_fail(err, MR_ERR_FORMAT,
                   "%s: the file %s has %llu bytes, its header says %llu; take a copy of the "
                   "state, or begin again",
                   where, mr_volume_name(f), (unsigned long long)v->size[f],
                   (unsigned long long)want);
}

int mr_store_header_read(struct mr_store_header **header, const struct mr_volume *v,
                         const struct mr_store_layout *l, const char *where, struct mr_error *err)
{
    const struct mr_store_header *h = NULL;
    *header = NULL;
    int rc = find(&h, v, l, where, err);
    if (rc < 0)
        return rc;
    if (h->model != mr_store_model(l->config))
        return mr_fail(err, MR_ERR_FIT,
                       "%s: is the state of another model (%016llx; config.json says %016llx); use "
                       "the directory as it was written",
                       where, (unsigned long long)h->model,
                       (unsigned long long)mr_store_model(l->config));
    if (!fits(h, l) || !consistent(h, l))
        return damaged(where, "its header contradicts itself", err);
    rc = check_size(v, MR_V_STATE, h->state_bytes + h->gap, where, err);
    if (rc == 0)
        rc = check_size(v, MR_V_GRADIENTS, l->elements * sizeof(int32_t), where, err);
    if (rc < 0)
        return rc;
    *header = malloc(h->slot_bytes);
    if (!*header)
        return mr_fail(err, MR_ERR_MEMORY, "%s: no memory for its header", where);
    memcpy(*header, h, h->slot_bytes);
    if (h->version < MR_STORE_LINEAGE)
        (*header)->lineage = 0;
    return 0;
}

int mr_store_streams_fit(struct mr_volume *v, const struct mr_store_layout *l, const char *where,
                         struct mr_error *err)
{
    const uint64_t want[] = {mr_store_stream_bytes(l->config), mr_store_turned_bytes(l->config)};
    int rc = 0;
    for (int k = 0; k < 2 && rc == 0; k++) {
        enum mr_volume_file f = k ? MR_V_TURNED : MR_V_STREAM;
        rc = v->renew && v->size[f] != want[k] ? v->renew(v, f, want[k], err)
                                               : check_size(v, f, want[k], where, err);
    }
    return rc;
}

int mr_store_header_write(struct mr_store_header *h, struct mr_volume *v, struct mr_error *err)
{
    memcpy(h->magic, magic, sizeof magic);
    bool older = h->rule < MR_RULE_KIND && !chooses(h);
    if (h->version != MR_STORE_ADAPTER)
        h->version = older ? MR_STORE_LINEAGE : MR_STORE_OPTIMIZER;
    h->sequence++;
    h->hash = hash_of(h);
    int rc = v->write(v, MR_V_HEADER, h->sequence % 2 * h->slot_bytes, h, h->slot_bytes, err);
    return rc < 0 ? rc : v->sync(v, MR_V_HEADER, err);
}
