// SPDX-License-Identifier: Apache-2.0
#include "pack/sink.h"

#include <string.h>

int mr_sink_init(struct mr_sink *s, uint8_t *memory, const struct mr_output *output,
                 struct mr_error *err)
{
    *s = (struct mr_sink){.memory = memory, .output = output};
    if (!memory && !(s->hash = XXH3_createState()))
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a checksum");
    // Without attributes these cannot fail on Linux.
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->turn, NULL);
    return 0;
}

void mr_sink_free(struct mr_sink *s)
{
    if (!s->memory && !s->hash)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->turn);
    XXH3_freeState(s->hash);
    *s = (struct mr_sink){0};
}

void mr_sink_begin(struct mr_sink *s, uint64_t base)
{
    s->base = base;
    s->next = 0;
    s->given_up = false;
    if (s->hash)
        (void)XXH3_64bits_reset(s->hash);
}

int mr_sink_put(struct mr_sink *s, int i, size_t at, const uint8_t *data, size_t size,
                struct mr_error *err)
{
    if (s->memory) {
        memcpy(s->memory + s->base + at, data, size);
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    while (s->next != i && !s->given_up)
        pthread_cond_wait(&s->turn, &s->lock);
    if (!s->given_up) {
        (void)XXH3_64bits_update(s->hash, data, size);
        s->next++;
        pthread_cond_broadcast(&s->turn);
    }
    bool wanted = !s->given_up;
    pthread_mutex_unlock(&s->lock);
    return wanted ? mr_output_write(s->output, s->base + at, data, size, err) : 0;
}

void mr_sink_give_up(struct mr_sink *s)
{
    pthread_mutex_lock(&s->lock);
    s->given_up = true;
    pthread_cond_broadcast(&s->turn);
    pthread_mutex_unlock(&s->lock);
}

uint64_t mr_sink_end(struct mr_sink *s)
{
    return s->hash ? XXH3_64bits_digest(s->hash) : 0;
}
