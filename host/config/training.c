// SPDX-License-Identifier: Apache-2.0
#include "config/training.h"

#include <stdlib.h>
#include <string.h>

struct text {
    struct text *next;
    char data[];
};

char *mr_training_text(struct mr_training *t, const char *text)
{
    size_t size = strlen(text) + 1;
    struct text *x = malloc(sizeof *x + size);
    if (!x)
        return NULL;
    x->next = t->memory;
    t->memory = x;
    memcpy(x->data, text, size);
    return x->data;
}

struct mr_update_options mr_training_optimizer(const struct mr_training *t)
{
    if (t->optimizer != MR_SGD)
        return (struct mr_update_options){t->beta1, t->beta2, t->epsilon,
                                          t->decay, false,    t->optimizer};
    return (struct mr_update_options){
        t->momentum, t->dampening, 0, t->decay, false, t->nesterov ? MR_SGD_NESTEROV : MR_SGD};
}

void mr_training_free(struct mr_training *t)
{
    for (struct text *x = t->memory, *next; x; x = next) {
        next = x->next;
        free(x);
    }
    t->memory = NULL;
}
