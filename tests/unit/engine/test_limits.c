// SPDX-License-Identifier: Apache-2.0
// docs/use/checkpoints.md says which models the configurations hold: here the page is held to what
// the program refuses, by trying each limit and one more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "checkpoint/synthetic.h"
#include "device/configs.h"
#include "engine/engine.h"
#include "millrace.h"
#include "unit/files.h"

static char *page;

static int setup(void **state)
{
    size_t size;
    page = files_read("docs/use/checkpoints.md", &size);
    return page ? files_setup(state) : -1;
}

static int teardown(void **state)
{
    free(page);
    return files_teardown(state);
}

static void stands(const char *row)
{
    if (!strstr(page, row))
        fail_msg("docs/use/checkpoints.md lacks the row: %s", row);
}

// ---- config.json ----

static bool reads(const char *key, long value)
{
    // Each key with company that allows the largest value of it.
    static const char rest[] = "\"model_type\":\"gptj\",\"rotary_dim\":2";
    static const struct {
        const char *key;
        long usual;
    } keys[] = {{"vocab_size", 1000}, {"n_positions", 8}, {"n_layer", 1},
                {"n_head", 1},        {"n_embd", 2048},   {"n_inner", 64}};
    struct mr_config c;
    struct mr_error err = {0};
    char text[400];
    int n = snprintf(text, sizeof text, "{%s,\"eos_token_id\":null,\"bos_token_id\":null", rest);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ",\"%s\":%ld", keys[i].key,
                      strcmp(key, keys[i].key) == 0 ? value : keys[i].usual);
    n += snprintf(text + n, sizeof text - (size_t)n, "}");
    return mr_config_parse(&c, text, (size_t)n, MR_DECODER, "config.json", &err) == 0;
}

static void page_has_the_ranges_of_config_json(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        long most;
    } keys[] = {{"vocab_size", MR_MAX_VOCAB}, {"n_positions", MR_MAX_POSITIONS},
                {"n_layer", MR_MAX_LAYER},    {"n_head", MR_MAX_HEAD},
                {"n_embd", MR_MAX_EMBD},      {"n_inner", MR_MAX_INNER}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char row[100];
        (void)snprintf(row, sizeof row, "\n| `%s` | 1 | %ld |\n", keys[i].key, keys[i].most);
        stands(row);
        assert_true(reads(keys[i].key, keys[i].most));
        assert_false(reads(keys[i].key, keys[i].most + 1));
        assert_false(reads(keys[i].key, 0));
    }
}

static bool reads_epsilon(const char *value)
{
    struct mr_config c;
    struct mr_error err = {0};
    char text[300];
    int n = snprintf(text, sizeof text,
                     "{\"model_type\":\"gptj\",\"vocab_size\":50257,\"n_embd\":128,\"n_layer\":1,"
                     "\"n_head\":2,\"layer_norm_epsilon\":%s}",
                     value);
    return mr_config_parse(&c, text, (size_t)n, MR_DECODER, "config.json", &err) == 0;
}

static void page_has_the_range_of_epsilon(void **state)
{
    (void)state;
    stands("`layer_norm_epsilon` is at least 1.18e-38");
    assert_true(reads_epsilon("1.18e-38") && reads_epsilon("0.999"));
    assert_false(reads_epsilon("1.17e-38") || reads_epsilon("1") || reads_epsilon("0"));
}

// ---- configurations ----

enum what { POSITIONS, HEADS, HEAD, ROTARY, D, W, F, SUM, WHATS };

// The smallest model with `value` in one place. Padded sizes are multiples of 64.
static struct mr_config model_with(enum what what, int value)
{
    struct mr_config c = {.vocab_size = 64,
                          .n_positions = 1,
                          .n_embd = 64,
                          .n_layer = 1,
                          .n_head = 1,
                          .head_dim = 64,
                          .rotary_dim = 2,
                          .n_inner = 64,
                          .eos_token_id = -1,
                          .bos_token_id = -1};
    switch (what) {
    case POSITIONS:
        c.n_positions = value;
        break;
    case HEADS: // of 2 elements, stored as 64
        c.n_head = value;
        c.head_dim = 2;
        c.n_embd = 2 * value;
        break;
    case HEAD:
        c.n_embd = c.head_dim = value;
        break;
    case ROTARY:
        c.n_embd = c.head_dim = 256;
        c.rotary_dim = value;
        break;
    case D: // one wide head would be too wide; many narrow ones make W as large
        c.n_embd = value;
        c.n_head = 1;
        c.head_dim = 64;
        break;
    case W:
        c.n_head = value / 64;
        break;
    case F:
        c.n_inner = value;
        break;
    default: // D and W are 64 each
        c.n_inner = value - 128;
    }
    return c;
}

// The limits of which the page does not speak by themselves, since a row of it is as strict.
static bool holds(const struct mr_config_entry *e, const struct mr_config *c, enum what what)
{
    struct mr_engine_limit l[MR_ENGINE_LIMITS];
    mr_engine_limits(&e->g, c, false, l);
    for (int i = 0; i < MR_ENGINE_LIMITS; i++) {
        bool sum = strcmp(l[i].what, "activation words") == 0;
        if (sum != (what == SUM) && (sum || what == SUM))
            continue; // D + W + F has a row of its own
        if (l[i].need > l[i].have)
            return false;
    }
    return true;
}

// The largest value that fits.
static int largest(const struct mr_config_entry *e, enum what what)
{
    bool one = what == POSITIONS || what == HEADS;
    int step = one ? 1 : 64, best = 0;
    for (int v = what == SUM ? 192 : step; v <= 1 << 17; v += step) {
        struct mr_config c = model_with(what, v);
        if (!holds(e, &c, what))
            break;
        best = v;
    }
    return best;
}

static void page_has_the_limits_of_the_configurations(void **state)
{
    (void)state;
    static const char *const names[WHATS] = {"positions",       "heads",
                                             "width of a head", "`rotary_dim`",
                                             "D: `n_embd`",     "W: heads times width of a head",
                                             "F: `n_inner`",    "D + W + F"};
    const struct mr_config_entry *e;
    char row[400];
    int n = snprintf(row, sizeof row, "\n| |");
    for (int i = 0; (e = mr_config_at(i)); i++)
        n += snprintf(row + n, sizeof row - (size_t)n, " %s |", e->name);
    stands(row);
    for (int what = 0; what < WHATS; what++) {
        n = snprintf(row, sizeof row, "\n| %s |", names[what]);
        for (int i = 0; (e = mr_config_at(i)); i++)
            n += snprintf(row + n, sizeof row - (size_t)n, " %d |", largest(e, what));
        (void)snprintf(row + n, sizeof row - (size_t)n, "\n");
        stands(row);
    }
}

// ---- what pack says ----

static void packing_names_the_limits_that_all_configurations_exceed(void **state)
{
    (void)state;
    struct mr_config c = {.vocab_size = 257,
                          .n_positions = 16,
                          .n_embd = 320,
                          .n_layer = 1,
                          .n_head = 1,
                          .rotary_dim = 8,
                          .n_inner = 64,
                          .eos_token_id = -1};
    struct mr_error err = {0};
    struct mr_pack_stats stats;
    struct mr_model *model;
    struct mr_session *session;
    const char *path = files_path("m.mill");
    for (int heads = 1; heads <= 2; heads++) {
        c.n_head = heads;
        if (mr_synthetic_write(files_dir, &c, 1, &err) < 0 ||
            mr_model_pack(files_dir, path, NULL, &stats, &err) < 0 ||
            mr_model_load(&model, path, NULL, &err) < 0)
            fail_msg("%s", err.text);
        int rc = mr_session_open(&session, model, "model:sim", NULL, &err);
        if (heads == 1) { // it is packed, and cannot run
            assert_string_equal(stats.exceeds, "head_dim (padded) is 320, 'sim' has 256");
            assert_refused(rc, MR_ERR_FIT, &err, "head_dim (padded) is 320");
        } else {
            assert_string_equal(stats.exceeds, "");
            assert_int_equal(rc, 0);
            mr_session_close(session);
        }
        mr_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_has_the_ranges_of_config_json),
        cmocka_unit_test(page_has_the_range_of_epsilon),
        cmocka_unit_test(page_has_the_limits_of_the_configurations),
        cmocka_unit_test(packing_names_the_limits_that_all_configurations_exceed),
    };
    return cmocka_run_group_tests_name("limits", tests, setup, teardown);
}
