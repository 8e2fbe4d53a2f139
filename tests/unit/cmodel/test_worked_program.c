// SPDX-License-Identifier: Apache-2.0
// docs/inside/worked-program.md: its program runs on the C model and on the RTL, and leaves the
// numbers that the page shows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmodel/machine.h"
#include "unit/fixtures.h"

#define PAGE "docs/inside/worked-program.md"

enum { COMMANDS = 6, LANES = 64, COLUMNS = 4, STREAM_BEATS = 93, INPUT_BEATS = 9, BEAT = 64 };

struct page {
    uint32_t program[COMMANDS][MR_CMD_WORDS];
    int words;                    // rows of the program's table
    int code[2], even[2], odd[2]; // of activation memory
    float results[COLUMNS];
    int activations, n_results;
};

// The page's three tables, each behind its comment; a row is "| a | b | ...".
static void read_page(struct page *p)
{
    FILE *f = fopen(PAGE, "r");
    assert_non_null(f);
    char line[1000], table = 0;
    while (fgets(line, sizeof line, f)) {
        int a, b, c, d;
        unsigned value;
        double x;
        if (strncmp(line, "<!-- ", 5) == 0)
            table = line[5];
        else if (line[0] == '#')
            table = 0;
        if (table == 'p' && sscanf(line, "| %d | %d | 0x%x |", &a, &b, &value) == 3) {
            assert_in_range(a, 0, COMMANDS - 1);
            assert_in_range(b, 0, MR_CMD_WORDS - 1);
            assert_int_equal(p->program[a][b], 0);
            p->program[a][b] = value;
            p->words++;
        } else if (table == 'a' && sscanf(line, "| %d | %d | %d | %d |", &a, &b, &c, &d) == 4) {
            assert_in_range(a, 0, 1);
            p->code[a] = b, p->even[a] = c, p->odd[a] = d;
            p->activations++;
        } else if (table == 'r' && sscanf(line, "| %d | %lf |", &a, &x) == 2) {
            assert_in_range(a, 0, COLUMNS - 1);
            p->results[a] = (float)x;
            p->n_results++;
        }
    }
    fclose(f);
    assert_in_range(p->words, 20, 40);
    assert_int_equal(p->activations, 2);
    assert_int_equal(p->n_results, COLUMNS);
}

// The weight stream as the page's table of beats has it.
static void make_stream(uint8_t s[STREAM_BEATS][BEAT])
{
    static const uint8_t most[COLUMNS] = {127, 126, 128, 127};
    static const uint8_t second[COLUMNS] = {127, 126, 0, 0};
    static const float biases[COLUMNS] = {0.25f, 0, 0, -1};
    float gain[LANES];
    memset(s, 0, STREAM_BEATS * BEAT);
    for (int i = 0; i < LANES; i++)
        gain[i] = 1.5f;
    memcpy(s[0], gain, sizeof gain);
    memcpy(s[8], most, COLUMNS);
    memcpy(s[9], biases, sizeof biases);
    memcpy(s[13], most, COLUMNS);
    memcpy(s[13] + COLUMNS, second, COLUMNS);
    for (int k = 0; k < 2; k++) { // k-blocks: columns 0 and 1 in a beat, 2 and 3 in the next one
        int8_t *first = (int8_t *)s[14 + 2 * k], *next = (int8_t *)s[15 + 2 * k];
        for (int e = 0; e < 32; e++) {
            first[e] = e % 2 ? 0 : 64;
            first[32 + e] = 64;
        }
        if (k == 0) {
            next[0] = 64;
            next[32 + 1] = -64;
        }
    }
}

static void make_input(uint8_t in[INPUT_BEATS][BEAT])
{
    uint32_t row[4] = {0, 0, 1, 0}; // position 0 of a sequence at 0, wants logits
    float residual[LANES];
    for (int i = 0; i < LANES; i++)
        residual[i] = i % 2 ? -3.0f : 3.0f;
    memset(in, 0, INPUT_BEATS * BEAT);
    memcpy(in[0], row, sizeof row);
    memcpy(in[5], residual, sizeof residual);
}

static void set_window(uint32_t *desc, int lo, int beats_at, uint64_t addr, uint32_t beats)
{
    desc[lo] = (uint32_t)addr;
    desc[lo + 1] = (uint32_t)(addr >> 32);
    desc[beats_at] = beats;
}

struct windows {
    uint64_t run, program, input, result, weights, kv;
};

static void make_descriptor(uint32_t desc[32], const struct windows *w)
{
    memset(desc, 0, 32 * sizeof *desc);
    desc[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    desc[MR_RUN_N_CMDS] = COMMANDS;
    desc[MR_RUN_N_ROWS] = 1;
    set_window(desc, MR_RUN_PROG_LO, MR_RUN_PROG_BEATS, w->program, COMMANDS);
    set_window(desc, MR_RUN_INPUT_LO, MR_RUN_INPUT_BEATS, w->input, INPUT_BEATS);
    set_window(desc, MR_RUN_RESULT_LO, MR_RUN_RESULT_BEATS, w->result, 1);
    set_window(desc, 16, 18, w->weights, STREAM_BEATS);
    set_window(desc, 20, 22, w->kv, 1);
}

static void check_results(const struct page *p, const float *got)
{
    for (int i = 0; i < COLUMNS; i++)
        if (got[i] != p->results[i])
            fail_msg("column %d is %.9g; " PAGE " says %.9g", i, got[i], p->results[i]);
}

static void on_device(const char *uri)
{
    struct mr_error err = {0};
    struct mr_device *dev;
    struct page p = {0};
    struct windows w;
    uint8_t stream[STREAM_BEATS][BEAT], input[INPUT_BEATS][BEAT];
    uint32_t desc[32];
    float result[BEAT / 4];
    read_page(&p);
    make_stream(stream);
    make_input(input);
    check(mr_device_open(&dev, uri, &err), &err);
    check(mr_device_alloc(dev, 0, sizeof desc, NULL, &w.run, &err), &err);
    check(mr_device_alloc(dev, 0, sizeof p.program, NULL, &w.program, &err), &err);
    check(mr_device_alloc(dev, 0, sizeof input, NULL, &w.input, &err), &err);
    check(mr_device_alloc(dev, 0, BEAT, NULL, &w.result, &err), &err);
    check(mr_device_alloc(dev, 0, sizeof stream, NULL, &w.weights, &err), &err);
    check(mr_device_alloc(dev, 0, BEAT, NULL, &w.kv, &err), &err);
    make_descriptor(desc, &w);
    check(mr_device_write(dev, w.run, desc, sizeof desc, &err), &err);
    check(mr_device_write(dev, w.program, p.program, sizeof p.program, &err), &err);
    check(mr_device_write(dev, w.input, input, sizeof input, &err), &err);
    check(mr_device_write(dev, w.weights, stream, sizeof stream, &err), &err);
    check(mr_device_run(dev, w.run, &err), &err);
    check(mr_device_read(dev, w.result, result, sizeof result, &err), &err);
    check_results(&p, result);
    mr_device_close(dev);
}

static void program_of_the_page_on_the_c_model(void **state)
{
    (void)state;
    on_device("model:tiny");
}

static void program_of_the_page_on_the_rtl(void **state)
{
    (void)state;
    on_device("sim:tiny");
}

// A change of one word of what the run reads.
struct word {
    enum part { NONE, RUN, PROGRAM, INPUT } of;
    int at;
    uint32_t is;
};

#define WORD(command, word) ((command) * MR_CMD_WORDS + (word))

// What the device refuses of a run, with what it says.
static const struct refused {
    const char *what;
    struct word words[5];
    unsigned code, run_off;
    const char *said;
} refusals[] = {
    {"a run at no beat", {{NONE, 0, 0}}, MR_DEVERR_DESCRIPTOR, 4, "RUN_ADDR % BEAT_BYTES == 0"},
    {"a row table without memory",
     {{RUN, MR_RUN_INPUT_BEATS, 99}, {PROGRAM, WORD(0, 2), 50}},
     MR_DEVERR_READ,
     0,
     "device error 4 at command 0"},
    {"rotary rows that go on behind their memory",
     {{RUN, MR_RUN_INPUT_BEATS, 99}, {PROGRAM, WORD(0, 3), INPUT_BEATS - 1}},
     MR_DEVERR_READ,
     0,
     "device error 4 at command 0"},
    {"a last position behind the context",
     {{INPUT, 3, 513}},
     MR_DEVERR_COMMAND,
     0,
     "device error 2 at command 0"},
    {"a row that continues one with another last position",
     {{RUN, MR_RUN_N_ROWS, 2},
      {PROGRAM, WORD(0, 4), 1},
      {INPUT, 4 + 1, 1},
      {INPUT, 4 + 2, 3},
      {INPUT, 4 + 3, 5}},
     MR_DEVERR_COMMAND,
     0,
     "device error 2 at command 0"},
    {"two queues that wait for one semaphore",
     {{PROGRAM, WORD(4, 1), 0x00080006}},
     MR_DEVERR_COMMAND,
     0,
     "command 4: another queue waits for this semaphore"},
    {"a product of the rows with logits, of which there are none",
     {{INPUT, 2, 0}, {PROGRAM, WORD(4, 4), 0x20430000}},
     MR_DEVERR_COMMAND,
     0,
     "device error 2 at command 4"},
    {"attention over more positions than the KV window has",
     {{INPUT, 1, 1},
      {PROGRAM, WORD(3, 0), MR_OP_ATTEND},
      {PROGRAM, WORD(3, 2), 0x01010000},
      {PROGRAM, WORD(3, 3), 0}},
     MR_DEVERR_WINDOW,
     0,
     "device error 3 at command 3"},
};

// The program, on a machine by itself, whose memories can be looked at.
struct alone {
    struct mr_device *dev;
    struct mr_memory mem;
    struct mr_machine *m;
    struct windows w;
};

static void set_up(struct alone *a, const struct page *p, const char *uri)
{
    struct mr_error err = {0};
    struct windows *w = &a->w;
    *a = (struct alone){0};
    check(mr_device_open(&a->dev, uri, &err), &err);
    check(mr_memory_alloc(&a->mem, 0, 32 * sizeof(uint32_t), NULL, &w->run, &err), &err);
    check(mr_memory_alloc(&a->mem, 0, sizeof p->program, NULL, &w->program, &err), &err);
    check(mr_memory_alloc(&a->mem, 0, INPUT_BEATS * BEAT, NULL, &w->input, &err), &err);
    check(mr_memory_alloc(&a->mem, 0, BEAT, NULL, &w->result, &err), &err);
    check(mr_memory_alloc(&a->mem, 0, STREAM_BEATS * BEAT, NULL, &w->weights, &err), &err);
    check(mr_memory_alloc(&a->mem, 0, 2 * BEAT, NULL, &w->kv, &err), &err);
    make_descriptor(mr_memory_at(&a->mem, w->run, 32 * sizeof(uint32_t), true), w);
    memcpy(mr_memory_at(&a->mem, w->program, sizeof p->program, true), p->program,
           sizeof p->program);
    make_input(mr_memory_at(&a->mem, w->input, INPUT_BEATS * BEAT, true));
    make_stream(mr_memory_at(&a->mem, w->weights, STREAM_BEATS * BEAT, true));
    check(mr_machine_new(&a->m, &mr_device_info(a->dev)->g, &a->mem, &err), &err);
}

static void tear_down(struct alone *a)
{
    mr_machine_free(a->m);
    mr_memory_free(&a->mem);
    mr_device_close(a->dev);
}

static void activations_of_the_page(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_device_error bad = {0};
    struct page p = {0};
    struct alone a;
    read_page(&p);
    set_up(&a, &p, "model:tiny");
    check(mr_machine_run(a.m, a.w.run, &bad, &err), &err);
    for (int word = 0; word < 2; word++) {
        uint8_t code;
        const int8_t *q = mr_machine_act(a.m, 0, word, &code);
        assert_int_equal(code, p.code[word]);
        for (int e = 0; e < 32; e++)
            assert_int_equal(q[e], e % 2 ? p.odd[word] : p.even[word]);
    }
    check_results(&p, mr_memory_at(&a.mem, a.w.result, BEAT, false));
    tear_down(&a);
}

static void change(struct alone *a, const struct word *w)
{
    const uint64_t places[] = {0, a->w.run, a->w.program, a->w.input};
    uint32_t *word = mr_memory_at(&a->mem, places[w->of] + 4 * (uint64_t)w->at, 4, true);
    assert_non_null(word);
    *word = w->is;
}

static void runs_that_are_refused(void **state)
{
    (void)state;
    struct page p = {0};
    read_page(&p);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refused *r = &refusals[i];
        struct mr_error err = {0};
        struct mr_device_error bad = {0};
        struct alone a;
        set_up(&a, &p, "model:tinyt");
        change(&a, &(struct word){RUN, 22, 2}); // a position's keys
        for (const struct word *w = r->words; w < r->words + 5 && w->of; w++)
            change(&a, w);
        int rc = mr_machine_run(a.m, a.w.run + r->run_off, &bad, &err);
        if (rc != MR_ERR_DEVICE || bad.code != r->code || !strstr(err.text, r->said))
            fail_msg("%s: status %d, code %u, '%s', not code %u, '%s'", r->what, rc, bad.code,
                     err.text, r->code, r->said);
        tear_down(&a);
    }
}

static void results_into_memory_that_is_only_read(void **state)
{
    (void)state;
    static const uint8_t file[BEAT];
    struct mr_error err = {0};
    struct mr_device_error bad = {0};
    struct page p = {0};
    struct alone a;
    uint64_t addr;
    read_page(&p);
    set_up(&a, &p, "model:tiny");
    check(mr_memory_alloc(&a.mem, 0, BEAT, file, &addr, &err), &err);
    change(&a, &(struct word){RUN, MR_RUN_RESULT_LO, (uint32_t)addr});
    assert_int_equal(mr_machine_run(a.m, a.w.run, &bad, &err), MR_ERR_DEVICE);
    assert_int_equal(bad.code, MR_DEVERR_WRITE);
    assert_int_equal(bad.addr, addr);
    assert_int_equal(mr_memory_write(&a.mem, addr, &p, 4, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "no writable device buffer of 4 bytes"));
    tear_down(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_of_the_page_on_the_c_model),
        cmocka_unit_test(program_of_the_page_on_the_rtl),
        cmocka_unit_test(activations_of_the_page),
        cmocka_unit_test(runs_that_are_refused),
        cmocka_unit_test(results_into_memory_that_is_only_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
