// SPDX-License-Identifier: Apache-2.0
// The reference of training against PyTorch (tests/fixtures/train), and against finite differences
// of an evaluation in double that shares no line with it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/train/loss_in_double.h"
#include "unit/train/train_fixtures.h"

// ---- against PyTorch ----------------------------------------------------------------------------

// Tensor i, as the checkpoint has it, against `prefix` and its name in the file: within `relative`
// of each element and of the tensor's root mean square, or of `floor`, whichever is more.
static double compare(const struct fixture *f, const struct mr_params *p, size_t i,
                      const char *prefix, double relative, double floor)
{
    char name[MR_NAME], full[MR_NAME + 16];
    size_t n;
    (void)snprintf(full, sizeof full, "%s.%s", prefix, name_of(f->config, i, name));
    float *want = floats(f, full, &n), *got = allocate(mr_params_size(p, i), sizeof *got);
    assert_int_equal(n, mr_params_size(p, i));
    mr_params_export(p, i, got);
    double usual = size_of(want, n) / sqrt((double)n), worst = 0;
    for (size_t k = 0; k < n; k++) {
        double scale = fmax(fmax(fabs((double)want[k]), usual), floor);
        double d = fabs((double)got[k] - (double)want[k]) / scale;
        if (!(d <= relative)) // NaN must fail
            fail_msg("%s: %s[%zu] is %.7g; expected %.7g", f->name, full, k, (double)got[k],
                     (double)want[k]);
        worst = d > worst ? d : worst;
    }
    free(want);
    free(got);
    return worst;
}

static void check_gradients(struct fixture *f)
{
    struct mr_error err = {0};
    struct mr_loss loss = {0};
    struct numbers b;
    size_t n, all = f->gradient.first[f->gradient.count];
    float *losses = floats(f, "loss", &n), *norms = floats(f, "norm", &n);
    double worst = 0;
    read_batch(f, 0, &b);
    check(mr_reference_run(f->reference, &b.batch, &loss, &f->gradient, &err), &err);
    assert_int_equal(loss.rows, b.n_targets);
    double off = fabs(mr_loss_mean(&loss) - (double)losses[0]);
    double usual = (double)norms[0] * b.n_targets / sqrt((double)all);
    for (size_t i = 0; i < f->gradient.count; i++)
        worst = fmax(worst, compare(f, &f->gradient, i, "gradient", 1e-4,
                                    is_zero(f->config, i) ? 1e-2 * usual : 0));
    print_message("# %s: loss within %.1e, gradients within %.1e\n", f->name, off, worst);
    assert_true(off <= 1e-5);
    free(losses);
    free(norms);
}

static void gradients_agree_with_pytorch(void **state)
{
    (void)state;
    on_every_fixture(check_gradients);
}

// Sequence by sequence where they have targets, the last one first.
static void add_singly(struct mr_loop *loop, const struct numbers *b)
{
    struct mr_error err = {0};
    for (int s = b->batch.n_sequences - 1, end = b->rows; s >= 0; s--) {
        int wanted = 0;
        end -= b->lengths[s];
        for (int r = 0; b->batch.targets && r < b->lengths[s]; r++)
            wanted += b->targets[end + r] != MR_NO_TARGET;
        struct mr_batch one = b->batch;
        one.n_sequences = 1;
        one.lengths += s;
        one.tokens += end;
        if (one.labels) {
            one.types += end;
            one.labels += s;
            wanted = 1;
        } else {
            one.targets += end;
        }
        if (wanted > 0)
            check(mr_loop_add(loop, &one, &err), &err);
    }
}

static void ten_steps(struct fixture *f, bool singly)
{
    struct mr_error err = {0};
    struct mr_loop_options o = options_of(f);
    struct mr_loop *loop;
    size_t n;
    float *losses = floats(f, "loss", &n), *norms = floats(f, "norm", &n);
    double worst = 0;
    assert_int_equal(n, STEPS);
    check(mr_loop_open(&loop, f->checkpoint, &o, &err), &err);
    for (int step = 0; step < STEPS; step++) {
        struct numbers b;
        struct mr_loop_step done;
        read_batch(f, step, &b);
        if (singly)
            add_singly(loop, &b);
        else
            check(mr_loop_add(loop, &b.batch, &err), &err);
        check(mr_loop_apply(loop, &done, &err), &err);
        assert_int_equal(done.step, step + 1);
        assert_int_equal(done.loss.rows, b.n_targets);
        if (!(fabs(mr_loss_mean(&done.loss) - (double)losses[step]) <= 1e-5))
            fail_msg("%s: loss %.7f of step %d; expected %.7f", f->name, mr_loss_mean(&done.loss),
                     step + 1, (double)losses[step]);
        if (!(fabs(done.norm / (double)norms[step] - 1) <= 1e-5))
            fail_msg("%s: norm %.7f of step %d; expected %.7f", f->name, done.norm, step + 1,
                     (double)norms[step]);
    }
    for (size_t i = 0; i < f->weights.count; i++)
        worst = fmax(worst, compare(f, mr_loop_weights(loop), i, "after", 1e-5, 1.0));
    print_message("# %s: weights within %.1e\n", f->name, worst);
    mr_loop_close(loop);
    free(losses);
    free(norms);
}

static void check_ten_steps(struct fixture *f)
{
    ten_steps(f, false);
}

static void ten_steps_of_adamw_agree_with_pytorch(void **state)
{
    (void)state;
    on_every_fixture(check_ten_steps);
}

static void check_accumulated(struct fixture *f)
{
    ten_steps(f, true);
}

static void accumulated_gradients_are_those_of_one_batch(void **state)
{
    (void)state;
    on_every_fixture(check_accumulated);
}

// ---- against differences in double --------------------------------------------------------------

static uint64_t state = 1;

static double noise(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (double)(int64_t)(state >> 11) * 0x1p-52 - 1;
}

// The derivative of the loss along direction d[n] of tensor i.
static double along(struct model *m, double *w, size_t n, const double *d, const struct mr_batch *b,
                    double *was)
{
    const double h = 1e-5;
    double loss[2];
    memcpy(was, w, n * sizeof *was);
    for (int side = 0; side < 2; side++) {
        for (size_t k = 0; k < n; k++)
            w[k] = was[k] + (side ? h : -h) * d[k];
        loss[side] = loss_in_double(m, b);
    }
    memcpy(w, was, n * sizeof *was);
    return (loss[1] - loss[0]) / (2 * h);
}

// Of each tensor a few random directions, and the one that the gradient itself points to. One that
// is wrong anywhere is wrong along nearly every direction.
static void check_differences(struct fixture *f)
{
    struct mr_error err = {0};
    struct mr_loss loss = {0};
    struct numbers b;
    size_t all = f->weights.first[f->weights.count];
    double *w = allocate(all, sizeof *w), *d = allocate(all, sizeof *d),
           *was = allocate(all, sizeof *was), worst = 0;
    struct model m = {f->config, &f->weights, w};
    for (size_t k = 0; k < all; k++)
        w[k] = (double)f->weights.data[k];
    read_batch(f, 0, &b);
    // Short ones: evaluations are many.
    for (int s = 0; s < b.batch.n_sequences; s++)
        b.lengths[s] = b.lengths[s] > 9 ? 9 - s : b.lengths[s];
    b.targets[3] = MR_NO_TARGET;
    check(mr_reference_run(f->reference, &b.batch, &loss, &f->gradient, &err), &err);
    double whole = loss_in_double(&m, &b.batch), mean = whole / (double)loss.rows;
    assert_true(fabs(mr_loss_mean(&loss) - mean) < 1e-5);
    double usual = size_of(f->gradient.data, all) / sqrt((double)all);
    for (size_t i = 0; i < f->weights.count; i++) {
        const float *g = mr_params_at(&f->gradient, i);
        size_t n = mr_params_size(&f->weights, i);
        double size = size_of(g, n);
        for (int way = 0; way < 3; way++) {
            double got = 0, length = 0;
            for (size_t k = 0; k < n; k++) {
                d[k] = way == 0 && size > 0 ? (double)g[k] / size : noise();
                got += d[k] * (double)g[k];
                length += d[k] * d[k];
            }
            double want = along(&m, w + f->weights.first[i], n, d, &b.batch, was);
            // Along a random direction most of a gradient cancels; its usual share is what counts.
            double share = is_zero(f->config, i) ? 1e-2 * usual : size / sqrt((double)n);
            double scale = fmax(fabs(want), sqrt(length) * share);
            double off = fabs(got - want) / scale;
            char name[MR_NAME];
            if (!(off <= 1e-4))
                fail_msg("%s: %s along direction %d is %.8g; differences say %.8g", f->name,
                         name_of(f->config, i, name), way, got, want);
            worst = off > worst ? off : worst;
        }
    }
    print_message("# %s: within %.1e of differences in double\n", f->name, worst);
    free(w);
    free(d);
    free(was);
}

static void gradients_agree_with_differences_in_double(void **unused)
{
    (void)unused;
    on_every_decoder(check_differences);
}

// Its weights with another function instead: loss and gradients.
static void check_function(struct fixture *f, unsigned function)
{
    static struct mr_config c;
    struct mr_error err = {0};
    c = *f->config;
    c.function = function;
    mr_reference_close(f->reference);
    f->config = f->weights.config = f->gradient.config = &c;
    check(mr_reference_open(&f->reference, &f->weights, &err), &err);
    check_differences(f);
}

static void check_gelu(struct fixture *f)
{
    check_function(f, MR_FUNCTION_GELU);
}

static void check_relu(struct fixture *f)
{
    check_function(f, MR_FUNCTION_RELU);
}

static void other_functions_agree_with_differences_in_double(void **unused)
{
    (void)unused;
    run_on("toy-d10", check_gelu);
    run_on("toy-d10", check_relu);
}

// ---- batches ------------------------------------------------------------------------------------

// A sequence has the gradients that it has alone, wherever it stands; what follows a row without a
// target, or stands in another sequence, does not reach it.
static void check_packing(struct fixture *f)
{
    struct mr_error err = {0};
    struct numbers b;
    struct mr_loss loss[3] = {0};
    struct mr_params sum, *each[] = {&f->gradient, &sum};
    check(mr_params_new(&sum, f->config, &err), &err);
    read_batch(f, 1, &b);
    check(mr_reference_run(f->reference, &b.batch, &loss[0], each[0], &err), &err);
    // The same in another order, in two batches; between them one of a different size.
    int lengths[MOST], tokens[MOST], targets[MOST], n = 0, last = b.batch.n_sequences - 1, at = 0;
    for (int s = last; s > 0; s--) {
        int begin = 0;
        for (int k = 0; k < s; k++)
            begin += b.lengths[k];
        memcpy(tokens + n, b.tokens + begin, (size_t)b.lengths[s] * sizeof *tokens);
        memcpy(targets + n, b.targets + begin, (size_t)b.lengths[s] * sizeof *targets);
        lengths[at++] = b.lengths[s];
        n += b.lengths[s];
    }
    struct mr_batch rest = {
        .n_sequences = last, .lengths = lengths, .tokens = tokens, .targets = targets};
    struct mr_batch first = {
        .n_sequences = 1, .lengths = b.lengths, .tokens = b.tokens, .targets = b.targets};
    check(mr_reference_run(f->reference, &first, &loss[1], &sum, &err), &err);
    check(mr_reference_run(f->reference, &b.batch, &loss[2], NULL, &err), &err);
    check(mr_reference_run(f->reference, &rest, &loss[1], &sum, &err), &err);
    assert_int_equal(loss[1].rows, loss[0].rows);
    assert_true(fabs(mr_loss_mean(&loss[1]) - mr_loss_mean(&loss[0])) < 1e-6);
    assert_true(fabs(mr_loss_mean(&loss[2]) - mr_loss_mean(&loss[0])) < 1e-6);
    double usual = size_of(sum.data, sum.first[sum.count]) / sqrt((double)sum.first[sum.count]);
    for (size_t k = 0; k < sum.first[sum.count]; k++)
        if (!(fabs((double)sum.data[k] - (double)f->gradient.data[k]) <=
              1e-5 * fmax(usual, fabs((double)sum.data[k]))))
            fail_msg("%s: parameter %zu has %g and %g", f->name, k, (double)sum.data[k],
                     (double)f->gradient.data[k]);
    mr_params_free(&sum);
}

static void packing_does_not_change_gradients(void **unused)
{
    (void)unused;
    on_every_decoder(check_packing);
}

// Only rows up to the last target get a gradient; tables' rows that no token looked up have none.
static void check_masks(struct fixture *f)
{
    struct mr_error err = {0};
    struct mr_loss loss = {0};
    int lengths[] = {5, 4}, tokens[] = {1, 2, 3, 4, 5, 1, 6, 7, 8}, targets[9];
    for (int i = 0; i < 9; i++)
        targets[i] = i == 2 ? 9 : MR_NO_TARGET;
    struct mr_batch b = {
        .n_sequences = 2, .lengths = lengths, .tokens = tokens, .targets = targets};
    check(mr_reference_run(f->reference, &b, &loss, &f->gradient, &err), &err);
    assert_int_equal(loss.rows, 1);
    const struct mr_arch *arch = mr_arch_of(f->config);
    bool tied = mr_item_tied(arch, &arch->tail.items[arch->tail.count - 1]);
    for (int t = 0; t < arch->tables.count; t++) {
        const struct mr_item *item = &arch->tables.items[t];
        size_t i = mr_params_index(f->config, f->config->n_layer, item, MR_WEIGHT);
        const float *g = mr_params_at(&f->gradient, i);
        int rows, cols;
        mr_params_shape(f->config, i, &rows, &cols);
        for (int r = 0; r < rows; r++) {
            bool used = item->by == MR_BY_POSITION ? r <= 2 : (r >= 1 && r <= 3) || tied;
            if ((size_of(g + (size_t)r * (size_t)cols, (size_t)cols) > 0) != used)
                fail_msg("%s: row %d of %s %s a gradient", f->name, r, item->name,
                         used ? "lacks" : "has");
        }
    }
}

static void masked_rows_have_no_gradient(void **unused)
{
    (void)unused;
    on_every_decoder(check_masks);
}

// The whole of it: a batch that is seen again and again is known by heart in the end.
static void check_learning(struct fixture *f)
{
    struct mr_error err = {0};
    struct mr_loop_options o = {.adamw = {0.9, 0.99, 1e-8, 0, false, MR_ADAMW},
                                .schedule = {MR_SCHEDULE_COSINE, 2e-2, 0, 5, 80}};
    struct mr_loop *loop;
    struct mr_loop_step done = {0};
    struct mr_loss after = {0};
    int lengths[] = {12, 9}, tokens[21], targets[21];
    for (int i = 0; i < 21; i++) {
        tokens[i] = (i * 5 + i * i) % 29;
        targets[i] = i == 2 ? MR_NO_TARGET : (i * 11 + 3) % 29;
    }
    struct mr_batch b = {
        .n_sequences = 2, .lengths = lengths, .tokens = tokens, .targets = targets};
    check(mr_loop_open(&loop, f->checkpoint, &o, &err), &err);
    double first = 0;
    for (int step = 0; step < o.schedule.steps; step++) {
        check(mr_loop_add(loop, &b, &err), &err);
        check(mr_loop_apply(loop, &done, &err), &err);
        first = step == 0 ? mr_loss_mean(&done.loss) : first;
    }
    check(mr_loop_evaluate(loop, &b, &after, &err), &err);
    print_message("# %s: loss from %.3f to %.4f\n", f->name, first, mr_loss_mean(&after));
    assert_true(first > 3 && mr_loss_mean(&after) < 0.05);
    assert_true(done.rate == 0);
    mr_loop_close(loop);
}

static void a_batch_is_learnt_by_heart(void **unused)
{
    (void)unused;
    on_every_decoder(check_learning);
}

// ---- what is refused ----------------------------------------------------------------------------

static void open_small(struct fixture *f)
{
    *f = (struct fixture){0};
    open_fixture(f, "gptj-d22-one-head");
}

static void refuse(struct fixture *f, const struct mr_batch *b, int status, const char *words)
{
    struct mr_error err = {0};
    struct mr_loss loss = {7, 3, 1};
    assert_int_equal(mr_reference_run(f->reference, b, &loss, &f->gradient, &err), status);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    assert_true(loss.sum == 7 && loss.rows == 3);
    for (size_t k = 0; k < f->gradient.first[f->gradient.count]; k++)
        assert_true(f->gradient.data[k] == 0);
}

static void refused_batches_change_nothing(void **unused)
{
    (void)unused;
    struct fixture f;
    struct numbers b;
    open_small(&f);
    read_batch(&f, 0, &b);
    int length = b.lengths[1], token = b.tokens[4], target = b.targets[4];
    b.lengths[1] = 0;
    refuse(&f, &b.batch, MR_ERR_USAGE, "sequence 1 of the batch has 0 tokens; 1 to 19");
    b.lengths[1] = f.config->n_positions + 1;
    refuse(&f, &b.batch, MR_ERR_USAGE, "sequence 1 of the batch has 20 tokens; 1 to 19");
    b.lengths[1] = length;
    b.tokens[4] = f.config->vocab_size;
    refuse(&f, &b.batch, MR_ERR_USAGE, "token 4 of the batch is 41; the vocabulary has 41");
    b.tokens[4] = -1;
    refuse(&f, &b.batch, MR_ERR_USAGE, "token 4 of the batch is -1");
    b.tokens[4] = token;
    b.targets[4] = f.config->vocab_size;
    refuse(&f, &b.batch, MR_ERR_USAGE, "target 4 of the batch is 41");
    b.targets[4] = -2;
    refuse(&f, &b.batch, MR_ERR_USAGE, "target 4 of the batch is -2");
    b.targets[4] = target;
    for (int i = 0; i < b.rows; i++)
        b.targets[i] = MR_NO_TARGET;
    refuse(&f, &b.batch, MR_ERR_USAGE, "no token of the batch has a target");
    close_fixture(&f);
}

// What an index of a row can be.
static void batches_have_an_end(void **unused)
{
    (void)unused;
    struct mr_config long_ones = {.n_positions = 1 << 24};
    const int lengths[] = {1 << 24, 1};
    struct mr_error err = {0};
    size_t rows;
    check(mr_batch_check_lengths(lengths, 1, &long_ones, &rows, &err), &err);
    assert_int_equal(rows, 1 << 24);
    assert_int_equal(mr_batch_check_lengths(lengths, 2, &long_ones, &rows, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "the batch has more than 16777216 tokens"));
}

static void refused_texts_change_nothing(void **unused)
{
    (void)unused;
    struct fixture f = {0};
    struct numbers b;
    open_fixture(&f, "bert-d4-labels");
    read_batch(&f, 0, &b);
    int type = b.types[4];
    b.types[4] = 2;
    refuse(&f, &b.batch, MR_ERR_USAGE, "token 4 of the batch has type 2; there are 2");
    b.types[4] = -1;
    refuse(&f, &b.batch, MR_ERR_USAGE, "token 4 of the batch has type -1; there are 2");
    b.types[4] = type;
    b.batch.targets = b.tokens;
    refuse(&f, &b.batch, MR_ERR_USAGE, "labels in place of targets");
    b.batch.targets = NULL;
    b.labels[1] = 3;
    refuse(&f, &b.batch, MR_ERR_USAGE, "text 1 of the batch has label 3; there are 3");
    b.labels[1] = -1;
    refuse(&f, &b.batch, MR_ERR_USAGE, "text 1 of the batch has label -1");
    b.batch.labels = NULL;
    refuse(&f, &b.batch, MR_ERR_USAGE, "labels in place of targets");
    close_fixture(&f);
}

// A text sees itself in both directions and nothing else: neither the order of texts nor their
// company moves a gradient. The number of those that are right is counted.
static void texts_do_not_see_each_other(void **unused)
{
    (void)unused;
    struct fixture f = {0};
    struct numbers b;
    struct mr_error err = {0};
    struct mr_loss all = {0}, each = {0};
    struct mr_params sum;
    open_fixture(&f, "bert-d4-labels");
    read_batch(&f, 1, &b);
    check(mr_params_new(&sum, f.config, &err), &err);
    check(mr_reference_run(f.reference, &b.batch, &all, &f.gradient, &err), &err);
    for (int s = b.batch.n_sequences - 1, row = b.rows; s >= 0; s--) {
        struct mr_batch one = b.batch;
        row -= b.lengths[s];
        one.n_sequences = 1;
        one.lengths += s;
        one.labels += s;
        one.tokens += row;
        one.types += row;
        check(mr_reference_run(f.reference, &one, &each, &sum, &err), &err);
    }
    assert_int_equal(all.rows, each.rows);
    assert_int_equal(all.right, each.right);
    size_t n = sum.first[sum.count];
    double usual = size_of(sum.data, n) / sqrt((double)n);
    for (size_t k = 0; k < n; k++)
        assert_true(fabs((double)sum.data[k] - (double)f.gradient.data[k]) <=
                    1e-5 * fmax(usual, fabs((double)sum.data[k])));
    mr_params_free(&sum);
    close_fixture(&f);
}

// A step whose loss or gradient is not finite leaves weights and moments, and says why.
static void steps_that_are_not_finite_change_no_weight(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct fixture f;
    struct numbers b;
    struct mr_loop *loop, *other;
    struct mr_loop_step done;
    open_small(&f);
    struct mr_loop_options o = options_of(&f);
    read_batch(&f, 0, &b);
    check(mr_loop_open(&loop, f.checkpoint, &o, &err), &err);
    check(mr_loop_open(&other, f.checkpoint, &o, &err), &err);
    struct mr_params *w = mr_loop_weights(loop);
    size_t bytes = w->first[w->count] * sizeof *w->data;

    assert_int_equal(mr_loop_apply(loop, &done, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "no micro-batch"));

    float was = w->data[100];
    w->data[100] = NAN;
    assert_int_equal(mr_loop_add(loop, &b.batch, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "the loss of row"));
    w->data[100] = was;

    check(mr_loop_add(loop, &b.batch, &err), &err);
    size_t i = mr_params_index(f.config, 0, &mr_items_of(f.config, 0)->items[6], MR_BIAS);
    mr_params_at(mr_loop_gradients(loop), i)[3] = INFINITY;
    assert_int_equal(mr_loop_apply(loop, &done, &err), MR_ERR_FORMAT);
    assert_non_null(
        strstr(err.text, "the gradient of transformer.h.0.mlp.fc_out.bias is infinite"));
    assert_memory_equal(w->data, f.weights.data, bytes);

    // After that it goes on like one to which nothing had happened.
    for (int step = 0; step < 2; step++) {
        read_batch(&f, step, &b);
        check(mr_loop_add(loop, &b.batch, &err), &err);
        check(mr_loop_apply(loop, &done, &err), &err);
        check(mr_loop_add(other, &b.batch, &err), &err);
        check(mr_loop_apply(other, &done, &err), &err);
        assert_int_equal(done.step, step + 1);
    }
    for (size_t k = 0; k < w->first[w->count]; k++)
        assert_true(fabs((double)w->data[k] - (double)mr_loop_weights(other)->data[k]) < 1e-6);
    mr_loop_close(other);
    mr_loop_close(loop);
    close_fixture(&f);
}

static void refuse_options(struct fixture *f, struct mr_loop_options o, const char *words)
{
    struct mr_error err = {0};
    struct mr_loop *loop;
    assert_int_equal(mr_loop_open(&loop, f->checkpoint, &o, &err), MR_ERR_USAGE);
    assert_null(loop);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void refuses_options_that_cannot_train(void **unused)
{
    (void)unused;
    struct fixture f;
    open_small(&f);
    const struct mr_loop_options good = options_of(&f);
    struct mr_loop_options o = good;
    o.adamw.beta1 = 1;
    refuse_options(&f, o, "betas are 1 and 0.95");
    o = good;
    o.adamw.epsilon = 0;
    refuse_options(&f, o, "epsilon is 0");
    o = good;
    o.adamw.decay = NAN;
    refuse_options(&f, o, "weight decay nan");
    o = good;
    o.schedule.rate = INFINITY;
    refuse_options(&f, o, "learning rate is inf");
    o = good;
    o.schedule.warmup = -1;
    refuse_options(&f, o, "warm-up -1");
    o = good;
    o.clip = -1;
    refuse_options(&f, o, "clip at is -1");
    close_fixture(&f);
}

// ---- which parameters decay ---------------------------------------------------------------------

static void only_matrices_decay(void **unused)
{
    (void)unused;
    static const char *const shown[] = {"gptj-d12-r4", "toy-d10"};
    // Of the last layer, and of the model.
    static const char *const want[] = {
        "lm_head.weight attn.q_proj.weight attn.k_proj.weight attn.v_proj.weight "
        "attn.out_proj.weight mlp.fc_in.weight mlp.fc_out.weight ",
        "attn.q.weight attn.k.weight attn.v.weight attn.proj.weight mlp.up.weight "
        "mlp.down.weight "};
    const struct mr_update_options some = {0}, all = {.decay_all = true};
    for (int m = 0; m < 2; m++) {
        struct fixture f = {0};
        char got[400] = "";
        open_fixture(&f, shown[m]);
        for (size_t i = 0; i < f.weights.count; i++) {
            struct mr_tensor_spec t = mr_tensor_spec(f.config, i);
            char name[MR_NAME];
            const char *full = name_of(f.config, i, name), *h = strstr(full, "h.1.");
            assert_true(mr_update_decays(&all, mr_arch_of(f.config), t.item, t.part));
            if (t.layer != 0 && mr_update_decays(&some, mr_arch_of(f.config), t.item, t.part)) {
                size_t n = strlen(got);
                (void)snprintf(got + n, sizeof got - n, "%s ", h ? h + 4 : full);
            }
        }
        assert_string_equal(got, want[m]);
        const struct mr_arch *arch = mr_arch_of(f.config);
        const struct mr_item *head = &arch->tail.items[arch->tail.count - 1];
        bool tied = mr_item_tied(arch, head);
        assert_int_equal(tied, m == 1);
        assert_int_equal(mr_update_decays(&some, arch, head, MR_WEIGHT), !tied);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_pytorch),
        cmocka_unit_test(ten_steps_of_adamw_agree_with_pytorch),
        cmocka_unit_test(accumulated_gradients_are_those_of_one_batch),
        cmocka_unit_test(gradients_agree_with_differences_in_double),
        cmocka_unit_test(other_functions_agree_with_differences_in_double),
        cmocka_unit_test(packing_does_not_change_gradients),
        cmocka_unit_test(masked_rows_have_no_gradient),
        cmocka_unit_test(a_batch_is_learnt_by_heart),
        cmocka_unit_test(refused_batches_change_nothing),
        cmocka_unit_test(refused_texts_change_nothing),
        cmocka_unit_test(batches_have_an_end),
        cmocka_unit_test(texts_do_not_see_each_other),
        cmocka_unit_test(steps_that_are_not_finite_change_no_weight),
        cmocka_unit_test(refuses_options_that_cannot_train),
        cmocka_unit_test(only_matrices_decay),
    };
    return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}
