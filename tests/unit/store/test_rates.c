// SPDX-License-Identifier: Apache-2.0
// Learning rates beside PyTorch's (tests/fixtures/schedules), the short form's bits, and text that
// is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <xxhash.h>

#include "store/rates.h"
#include "store/series.h"
#include "unit/check.h"

#define FIXTURES "tests/fixtures/schedules/"
enum { STEPS = 1000, LINE = 512 };

// ---- PyTorch ------------------------------------------------------------------------------------

// The largest relative difference. Where a rate is 0 to rounding, as a cosine at its end, it counts
// as 1e-9 of the highest one.
static double distance(const struct mr_rates *r, const float *want)
{
    double worst = 0, highest = 0;
    for (int i = 0; i < STEPS; i++)
        highest = fmax(highest, want[i]);
    for (int i = 0; i < STEPS; i++)
        worst = fmax(worst, fabs(mr_rates_at(r, i + 1) - want[i]) / fmax(want[i], 1e-9 * highest));
    return worst;
}

static void rates_are_those_of_pytorch(void **unused)
{
    (void)unused;
    FILE *texts = fopen(FIXTURES "schedules.txt", "r"),
         *file = fopen(FIXTURES "expected.f32", "rb");
    char line[LINE];
    float want[STEPS];
    int schedules = 0;
    bool seen[MR_RATE_ONE_CYCLE + 1] = {0};
    assert_true(texts && file);
    for (; fgets(line, sizeof line, texts); schedules++) {
        struct mr_rates r;
        struct mr_error err = {0};
        line[strcspn(line, "\n")] = 0;
        check(mr_rates_parse(&r, line, &err), &err);
        assert_int_equal(fread(want, sizeof *want, STEPS, file), STEPS);
        for (int i = 0; i < r.parts; i++)
            seen[r.part[i].kind] = true;
        double d = distance(&r, want);
        print_message("# %.1e of PyTorch's: %s\n", d, line);
        if (!(d < 1e-6))
            fail_msg("%s: %.2e beside PyTorch's", line, d);
    }
    assert_true(schedules == 21 && fgetc(file) == EOF);
    for (int kind = 0; kind <= MR_RATE_ONE_CYCLE; kind++)
        assert_true(seen[kind]);
    (void)fclose(texts); // only read
    (void)fclose(file);
}

// ---- the short form -----------------------------------------------------------------------------

// The hash is that of the two formulas before there were curves.
static void short_forms_keep_their_bits(void **unused)
{
    (void)unused;
    static const struct mr_schedule s[] = {{MR_SCHEDULE_CONSTANT, 0.5, 0, 4, 0},
                                           {MR_SCHEDULE_COSINE, 3e-4, 0.1, 10, 1010},
                                           {MR_SCHEDULE_COSINE, 1e-3, 0, 0, 777},
                                           {MR_SCHEDULE_COSINE, 2e-2, 0.3, 100, 100},
                                           {MR_SCHEDULE_CONSTANT, 7e-5, 0, 33, 1}};
    static double r[5][1500];
    for (int i = 0; i < 5; i++)
        for (int t = 1; t <= 1500; t++)
            r[i][t - 1] = mr_schedule_rate(&s[i], t);
    assert_true(XXH3_64bits(r, sizeof r) == 0xe71232ff2ca41766ULL);
}

// ---- beyond 1,000 steps -------------------------------------------------------------------------

static double at(const char *text, int step)
{
    struct mr_rates r;
    struct mr_error err = {0};
    check(mr_rates_parse(&r, text, &err), &err);
    return mr_rates_at(&r, step);
}

static void ends_hold(void **unused)
{
    (void)unused;
    const int last = INT32_MAX - 1;
    assert_true(at("Linear(learning_rate=0, end_lr=1e-3, steps=7)", 1) == 0);
    assert_true(at("Linear(learning_rate=0, end_lr=1e-3, steps=7)", last) == 1e-3);
    assert_true(at("CosineDecay(base_lr=1e-3,end_lr=1e-4,decay_steps=9)", last) == 1e-4);
    assert_true(at("OneCycle(base_lr=1e-3,max_lr=1e-2,total_steps=100)", last) == 1e-3 / 1e4);
    assert_true(at("Polynomial(base_lr=1e-3,end_lr=1e-4,steps=9,power=3)", last) == 1e-4);
    assert_true(at("Exponential(base_lr=1,gamma=0.5,steps=1)", last) == 0);
    assert_true(at("CosineAnnealing(base_lr=1,T_max=1073741824)", last) <= 1);
    // The Model Zoo's `cycle` changes nothing: behind total_iters its wrapper holds the end.
    assert_true(at("Linear(learning_rate=0, end_lr=1e-3, steps=7, cycle=true)", 20) == 1e-3);
    // A curve behind another begins at its own index 0; white space is free.
    assert_true(at(" constantlr ( val = 0.5 , steps = 3 ) ,\tStep(base_lr=1,gamma=.5,step_size=2)",
                   4) == 1);
    assert_true(at("CosineDecay(base_lr=1,end_lr=0,steps=3),Constant(val=.5)", 4) == 0.5);
    assert_true(at("Exponential(base_lr=1,gamma=.5,steps=3),Constant(val=1)", 4) == 1);
    assert_true(at("OneCycle(base_lr=.1,max_lr=1,total_steps=9),Constant(val=.5)", 10) == 0.5);
    assert_true(at("Constant(val=0.5,steps=3),Step(base_lr=1,gamma=.5,step_size=2)", 3) == 0.5);
}

static void powers_are_those_of_libm(void **unused)
{
    (void)unused;
    for (int i = 0; i <= 100; i++)
        for (int k = 0; k < 200; k++) {
            double b = i / 100.0, y = k < 199 ? k * k / 37.0 : 1e-9, want = pow(b, y);
            if (fabs(mr_power(b, y) - want) > 1e-13 * want + 1e-300)
                fail_msg("%g^%g is %.17g; expected %.17g", b, y, mr_power(b, y), want);
        }
}

// ---- refusals -----------------------------------------------------------------------------------

static void wrong_schedules_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "its end' where the name"},
        {"Cosinedecy(a=1)", "'Cosinedecy' is not known; did you mean CosineDecay"},
        {"Lambda(x=1)", "'Lambda' is not known; docs/train/options.md"},
        {"Constant", "'its end' where '(' should stand"},
        {"Constant()", "Constant lacks learning_rate"},
        {"Constant(learning_rate=1e-3", "'its end' where ')' should stand"},
        {"Constant(learning_rate=1e-3) x", "'x' behind its end"},
        {"Constant(learning_rate=1e-3,steps=5),", "its end' where the name"},
        {"Constant(learnin_rate=1e-3)", "no key 'learnin_rate'; did you mean learning_rate"},
        {"Constant(other=1e-3)", "the schedule Constant has no key 'other'"},
        {"OneCycle(other=1e-3)", "the schedule OneCycle has no key 'other'"},
        {"LR(val=1)", "'LR' is not known"},
        {"Constant(learning_rate=1e-3, base_lr=1)", "has learning_rate twice"},
        {"Constant(learning_rate=2)", "learning_rate of the schedule is '2'; a number from 0 to 1"},
        {"Constant(learning_rate=nan)", "'nan'"},
        {"Constant(learning_rate=1e-3x)", "'1e-3x'"},
        {"Constant(learning_rate=)", "')' where a value should stand"},
        {"Constant(=1)", "where a key should stand"},
        {"Constant(learning_rate=-1)", "'-1'"},
        {"Linear(base_lr=0,end_lr=1,steps=0)", "a whole number from 1 to 1073741824"},
        {"Linear(base_lr=0,end_lr=1,steps=1.5)", "a whole number"},
        {"Linear(base_lr=0,end_lr=1,steps=5,cycle=maybe)",
         "cycle of the schedule is 'maybe'; true"},
        {"Polynomial(base_lr=0,end_lr=1,steps=5,power=0)", "a number above 0 to 100"},
        {"Step(base_lr=1,step_size=1,gamma=1.1)", "gamma"},
        {"MultiStep(base_lr=1,gamma=0.1,milestones=5)", "where '[' should stand"},
        {"MultiStep(base_lr=1,gamma=0.1,milestones=[])", "where a number should stand"},
        {"MultiStep(base_lr=1,gamma=0.1,milestones=[5,5])", "5 is not above 5"},
        {"MultiStep(base_lr=1,gamma=0.1,milestones=[5,6)", "where ']' should stand"},
        {"PiecewiseConstant(values=[1,1],boundaries=[1,2])", "2 learning_rates and 2 milestones"},
        {"InverseSquareRootDecay(scale=100,warmup_steps=4)", "begins with a learning rate of 50"},
        {"OneCycle(base_lr=1e-3,max_lr=1,total_steps=3,pct_start=0.3)", "no step to go up in"},
        {"OneCycle(base_lr=1e-3,max_lr=1,pct_start=1)", "no step to come down in"},
        {"OneCycle(base_lr=1e-3,max_lr=1,anneal_strategy=log)", "'log'; cos|linear"},
        {"Step(base_lr=1,step_size=1,gamma=1),Constant(val=1)",
         "follows Step, which lacks total_iters"},
        {"Constant(val=1,steps=1073741824),Constant(val=1,steps=1),Constant(val=1)",
         "at most 1073741824"},
        {"\x01", "'?' where the name"},
        {"constantLr", "'its end' where '('"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_rates r;
        struct mr_error err = {0};
        assert_int_equal(mr_rates_parse(&r, rows[i].text, &err), MR_ERR_USAGE);
        if (!strstr(err.text, rows[i].words))
            fail_msg("%s: \"%s\" has no \"%s\"", rows[i].text, err.text, rows[i].words);
    }
}

// More parts, longer lists and longer words than there is room for.
static void long_schedules_are_refused(void **unused)
{
    (void)unused;
    static char text[40000];
    struct mr_rates r;
    struct mr_error err = {0};
    for (int i = 0; i < 33; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       "%sConstant(val=1e-3,steps=1)", i ? "," : "");
    assert_int_equal(mr_rates_parse(&r, text, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "more than 32 parts"));
    (void)snprintf(text, sizeof text, "MultiStep(base_lr=1,gamma=0.1,milestones=[1");
    for (int i = 2; i < 300; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i);
    assert_int_equal(mr_rates_parse(&r, text, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "more than 256 numbers"));
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(mr_rates_parse(&r, text, &err), MR_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_pytorch),
        cmocka_unit_test(short_forms_keep_their_bits),
        cmocka_unit_test(ends_hold),
        cmocka_unit_test(powers_are_those_of_libm),
        cmocka_unit_test(wrong_schedules_are_refused),
        cmocka_unit_test(long_schedules_are_refused),
    };
    return cmocka_run_group_tests_name("rates", tests, NULL, NULL);
}
