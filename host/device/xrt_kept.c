// SPDX-License-Identifier: Apache-2.0
#include "device/xrt_device.h"

#include <pthread.h>
#include <stdlib.h>

struct kept {
    struct mr_xrt_card *card;
    struct mr_xrt_key key;
    struct mr_xrt_area area;
    unsigned users;
    struct kept *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *list;
static _Atomic int entries;

static bool same(const struct mr_xrt_key *a, const struct mr_xrt_key *b)
{
    return a->identity == b->identity && a->channel == b->channel && a->group == b->group &&
           a->bytes == b->bytes && a->largest == b->largest;
}

bool mr_xrt_kept_find(struct mr_xrt_card *card, const struct mr_xrt_key *key,
                      struct mr_xrt_area *area)
{
    (void)pthread_mutex_lock(&lock);
    struct kept *k = list;
    while (k && (k->card != card || !same(&k->key, key)))
        k = k->next;
    if (k) {
        k->users++;
        *area = k->area;
    }
    (void)pthread_mutex_unlock(&lock);
    return k != NULL;
}

bool mr_xrt_kept_add(struct mr_xrt_card *card, const struct mr_xrt_key *key,
                     const struct mr_xrt_area *area)
{
    struct kept *k = malloc(sizeof *k);
    if (!k)
        return false;
    *k = (struct kept){.card = card, .key = *key, .area = *area, .users = 1};
    mr_xrt_hold(card);
    (void)pthread_mutex_lock(&lock);
    k->next = list;
    list = k;
    entries++;
    (void)pthread_mutex_unlock(&lock);
    return true;
}

void mr_xrt_kept_leave(const struct mr_xrt_area *area)
{
    (void)pthread_mutex_lock(&lock);
    for (struct kept *k = list; k; k = k->next)
        if (k->area.bo[0].handle == area->bo[0].handle)
            k->users--;
    (void)pthread_mutex_unlock(&lock);
}

bool mr_xrt_kept_drop(const struct mr_xrt_card *card)
{
    bool any = false;
    (void)pthread_mutex_lock(&lock);
    for (struct kept **at = &list; *at;) {
        struct kept *k = *at;
        if (k->users || (card && k->card != card)) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        for (int i = 0; i < k->area.bos; i++)
            mr_xrt_free(&k->area.bo[i]);
        mr_xrt_close(k->card);
        free(k);
        entries--;
        any = true;
    }
    (void)pthread_mutex_unlock(&lock);
    return any;
}

// Without the lock: a call that hangs may hold it.
bool mr_xrt_kept_any(void)
{
    return entries > 0;
}
