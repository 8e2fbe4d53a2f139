// SPDX-License-Identifier: Apache-2.0
// The loss of a batch in double, from a model's description: loops that share no line with the
// reference of training. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_LOSS_IN_DOUBLE_H
#define MILLRACE_TESTS_UNIT_LOSS_IN_DOUBLE_H

#include "unit/train/train_fixtures.h"

struct model {
    const struct mr_config *c;
    const struct mr_params *at; // where tensors begin
    const double *w;
};

static const double *tensor(const struct model *m, int layer, const struct mr_item *item,
                            enum mr_part part)
{
    return m->w + m->at->first[mr_params_index(m->c, layer, item, part)];
}

static void norm_row(const struct model *m, int layer, const struct mr_item *item, const double *x,
                     double *y)
{
    const double *gain = tensor(m, layer, item, MR_WEIGHT), *bias = tensor(m, layer, item, MR_BIAS);
    double mean = 0, square = 0;
    int n = m->c->n_embd;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(square + (double)m->c->layer_norm_epsilon) * gain[i] + bias[i];
}

static void linear_row(const struct model *m, int layer, const struct mr_item *item, int position,
                       const double *x, double *y)
{
    const double *w = tensor(m, layer, item, MR_WEIGHT);
    const double *bias = item->bias ? tensor(m, layer, item, MR_BIAS) : NULL;
    int in = mr_axis_length(m->c, mr_place_axis(item->from));
    int out = mr_axis_length(m->c, mr_place_axis(item->to));
    for (int o = 0; o < out; o++) {
        double sum = bias ? bias[o] : 0;
        for (int i = 0; i < in; i++)
            sum += w[(size_t)o * (size_t)in + (size_t)i] * x[i];
        if (item->epilogue == MR_FUNCTION && mr_function_of(m->c) == MR_FUNCTION_RELU)
            sum = sum > 0 ? sum : 0;
        else if (item->epilogue == MR_FUNCTION && mr_function_of(m->c) == MR_FUNCTION_GELU)
            sum *= 0.5 * (1 + erf(sum / sqrt(2)));
        else if (item->epilogue == MR_FUNCTION)
            sum *= 0.5 * (1 + tanh(sqrt(2 / acos(-1)) * (sum + 0.044715 * sum * sum * sum)));
        y[o] = item->to == MR_RESIDUAL ? y[o] + sum : sum;
    }
    for (int at = 0; item->epilogue == MR_ROTARY && at < out; at += m->c->head_dim)
        for (int i = 0; i < m->c->rotary_dim; i += 2) {
            double angle = position * pow(10000, -(double)i / m->c->rotary_dim);
            double a = y[at + i], b = y[at + i + 1];
            y[at + i] = a * cos(angle) - b * sin(angle);
            y[at + i + 1] = b * cos(angle) + a * sin(angle);
        }
}

// Row t of a sequence, whose keys and values stand in k and v, [rows][n_embd].
static void attend_row(const struct mr_config *c, int t, const double *q, const double *k,
                       const double *v, double *y)
{
    for (int h = 0; h < c->n_embd; h += c->head_dim) {
        double p[MOST], sum = 0, top = -INFINITY;
        for (int s = 0; s <= t; s++) {
            p[s] = 0;
            for (int i = h; i < h + c->head_dim; i++)
                p[s] += q[i] * k[s * c->n_embd + i];
            top = fmax(top, p[s] /= sqrt(c->head_dim));
        }
        for (int s = 0; s <= t; s++)
            sum += p[s] = exp(p[s] - top);
        for (int i = h; i < h + c->head_dim; i++) {
            y[i] = 0;
            for (int s = 0; s <= t; s++)
                y[i] += p[s] / sum * v[s * c->n_embd + i];
        }
    }
}

static double row_loss(const double *z, int n, int target)
{
    double top = z[0], sum = 0;
    for (int i = 1; i < n; i++)
        top = fmax(top, z[i]);
    for (int i = 0; i < n; i++)
        sum += exp(z[i] - top);
    return log(sum) + top - z[target];
}

// One sequence; place[p] has [rows][length of its axis].
static double sequence_loss(const struct model *m, const int *tokens, const int *targets, int n,
                            double *place[MR_PLACES])
{
    const struct mr_config *c = m->c;
    const struct mr_arch *arch = mr_arch_of(c);
    size_t width[MR_PLACES];
    for (int i = 0; i < MR_PLACES; i++)
        width[i] = (size_t)mr_axis_length(c, mr_place_axis((enum mr_place)i));
    for (int t = 0; t < n; t++)
        for (int e = 0; e < c->n_embd; e++) {
            place[MR_RESIDUAL][t * c->n_embd + e] = 0;
            for (int i = 0; i < arch->tables.count; i++) {
                const struct mr_item *item = &arch->tables.items[i];
                int row = item->by == MR_BY_TOKEN ? tokens[t] : t;
                place[MR_RESIDUAL][t * c->n_embd + e] +=
                    tensor(m, c->n_layer, item, MR_WEIGHT)[row * c->n_embd + e];
            }
        }
    for (int layer = 0; layer <= c->n_layer; layer++) {
        const struct mr_list *list = mr_items_of(c, layer);
        for (int i = 0; i < list->count; i++)
            for (int t = 0; t < n; t++) {
                const struct mr_item *item = &list->items[i];
                double *x = place[item->from] + (size_t)t * width[item->from];
                double *y = place[item->to] + (size_t)t * width[item->to];
                if (item->kind == MR_NORM)
                    norm_row(m, layer, item, x, y);
                else if (item->kind == MR_ATTEND)
                    attend_row(c, t, x, place[MR_K], place[MR_V], y);
                else
                    linear_row(m, layer, item, t, x, y);
            }
    }
    double sum = 0;
    for (int t = 0; t < n; t++)
        if (targets[t] != MR_NO_TARGET)
            sum += row_loss(place[MR_RESULT] + (size_t)t * width[MR_RESULT], c->vocab_size,
                            targets[t]);
    return sum;
}

static double loss_in_double(const struct model *m, const struct mr_batch *b)
{
    double *place[MR_PLACES], sum = 0;
    for (int i = 0; i < MR_PLACES; i++)
        place[i] =
            allocate((size_t)MOST * (size_t)mr_axis_length(m->c, mr_place_axis((enum mr_place)i)),
                     sizeof **place);
    for (int s = 0, at = 0; s < b->n_sequences; at += b->lengths[s++])
        sum += sequence_loss(m, b->tokens + at, b->targets + at, b->lengths[s], place);
    for (int i = 0; i < MR_PLACES; i++)
        free(place[i]);
    return sum;
}

#endif
