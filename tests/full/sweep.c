// SPDX-License-Identifier: Apache-2.0
// Same bits over {tiny, sim, wide} x chunkings {1, 3, 32, all} x batch groupings x stalls, one pass
// and two, MXINT8 and MXFP4, every fixture: hashes of logits and KV store against the C model.
// SWEEP_TOKENS is the number of tokens a sequence, so that the whole takes minutes; there all
// tokens fit one run of 32. One fixture has sequences of LONG_TOKENS, for which 1, 3, 32 and all
// differ.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/fixtures.h"
#include "unit/simulated.h"

static const char *const stalls[] = {"", ",seed=11,stalls=25", ",seed=12,stalls=70,memory=hbm2"};
static const int chunks[] = {1, 3, 32, 0};
static const struct form {
    enum mr_format format;
    bool two_pass;
} forms[] = {{MR_FORMAT_MXINT8, false}, {MR_FORMAT_MXINT8, true}, {MR_FORMAT_MXFP4, false}};

enum { LONG_TOKENS = 40 };
static const char long_fixture[] = "fp16-d48-r16-buffers";

static int tokens(void)
{
    const char *s = getenv("SWEEP_TOKENS");
    return s ? atoi(s) : 6;
}

static void sweep_fixture(const char *config, const struct fixture *f, bool two_pass, int number,
                          int groupings)
{
    struct run_options o = {.two_pass = two_pass};
    struct ran want, got;
    char device[96];
    for (int g = 0; g < groupings; g++)
        for (int c = 0; c < 4; c++) {
            o.chunk = chunks[c];
            o.grouping = (enum grouping)g;
            (void)snprintf(device, sizeof device, "model:%s", config);
            o.device = device;
            assert_int_equal(simulate(f, &o, &want), 0);
            // Every grouping and chunking meets each of the stalls over the fixtures.
            (void)snprintf(device, sizeof device, "sim:%s%s", config, stalls[(number + g + c) % 3]);
            assert_int_equal(simulate(f, &o, &got), 0);
            if (got.logits != want.logits || got.kv != want.kv)
                fail_msg("%s on %s, chunk %d, grouping %d, %s: %s differ", f->name, device, o.chunk,
                         g, two_pass ? "two passes" : "one pass",
                         got.logits != want.logits ? "logits" : "keys and values");
        }
}

static void sweep(void **state)
{
    const char *config = *state;
    struct dirent **names;
    int n = fixture_names(&names);
    bool swept_long = false;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) {
            struct fixture f;
            open_fixture(&f, names[i]->d_name, forms[k].format);
            int all = f.n_tok;
            f.n_tok = tokens() < all ? tokens() : all;
            sweep_fixture(config, &f, forms[k].two_pass, i + k, GROUPINGS);
            if (k == 0 && strcmp(f.name, long_fixture) == 0) {
                assert_true(all >= LONG_TOKENS);
                f.n_tok = LONG_TOKENS; // two sequences: 80 rows, on tiny ten runs at least
                sweep_fixture(config, &f, forms[k].two_pass, i, INTERLEAVED + 1);
                swept_long = true;
            }
            close_fixture(&f);
        }
        free(names[i]);
    }
    free(names);
    assert_true(swept_long);
}

// A whole fixture, so that 32 tokens and more are resident, command by command on wide.
static void whole_on_wide(void **state)
{
    struct fixture f;
    struct ran want, got;
    struct run_options o = {"model:wide", 0, false, INTERLEAVED};
    (void)state;
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    assert_int_equal(simulate(&f, &o, &want), 0);
    o.device = "sim:wide,check,seed=21,stalls=10";
    assert_int_equal(simulate(&f, &o, &got), 0);
    assert_int_equal(got.logits, want.logits);
    assert_int_equal(got.kv, want.kv);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"tiny", sweep, NULL, NULL, (char[]){"tiny"}},
        {"sim", sweep, NULL, NULL, (char[]){"sim"}},
        {"wide", sweep, NULL, NULL, (char[]){"wide"}},
        cmocka_unit_test(whole_on_wide),
    };
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
