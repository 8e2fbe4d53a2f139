// SPDX-License-Identifier: Apache-2.0
// Semaphores from what commands read and write: those that are needed, and no more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/depend.h"
#include "unit/check.h"

enum { COMMANDS = 80, A = 1u << MR_MEM_ROWS, B = 1u << MR_MEM_KV };

// A command of each queue.
static const unsigned opcodes[MR_QUEUES] = {
    [MR_QUEUE_READER] = MR_OP_STREAM_VEC, [MR_QUEUE_ARRAY] = MR_OP_MATMUL,
    [MR_QUEUE_VECTOR] = MR_OP_LAYERNORM,  [MR_QUEUE_ATTENTION] = MR_OP_ATTEND,
    [MR_QUEUE_WRITER] = MR_OP_STORE_RES,
};

struct program {
    struct mr_depend *depend;
    struct mr_command commands[COMMANDS];
    int count;
};

static void open_program(struct program *p)
{
    memset(p, 0, sizeof *p);
    p->depend = mr_depend_new(COMMANDS);
    assert_non_null(p->depend);
}

static int add(struct program *p, int queue, unsigned reads, unsigned writes, struct mr_error *err)
{
    assert_true(p->count < COMMANDS);
    mr_command_set(&p->commands[p->count], MR_F_CMD_OPCODE, opcodes[queue]);
    return mr_depend_note(p->depend, p->commands, p->count++, reads, writes, err);
}

static void added(struct program *p, int queue, unsigned reads, unsigned writes)
{
    struct mr_error err = {0};
    check(add(p, queue, reads, writes, &err), &err);
}

static unsigned waits(const struct program *p, int command)
{
    return mr_command_get(&p->commands[command], MR_F_CMD_WAIT);
}

static unsigned signals(const struct program *p, int command)
{
    return mr_command_get(&p->commands[command], MR_F_CMD_SIGNAL);
}

static void what_is_read_has_been_written(void **state)
{
    (void)state;
    struct program p;
    open_program(&p);
    added(&p, MR_QUEUE_VECTOR, 0, A);
    added(&p, MR_QUEUE_ATTENTION, A, 0);
    added(&p, MR_QUEUE_ATTENTION, A, 0); // behind the one that waits already
    added(&p, MR_QUEUE_VECTOR, A, 0);    // behind its own queue's
    added(&p, MR_QUEUE_ATTENTION, B, 0); // which nobody writes
    assert_int_equal(signals(&p, 0), 1);
    assert_int_equal(waits(&p, 1), 1);
    for (int i = 0; i < p.count; i++) {
        assert_true(i == 0 || signals(&p, i) == 0);
        assert_true(i == 1 || waits(&p, i) == 0);
    }
    mr_depend_free(p.depend);
}

static void what_is_written_has_been_read(void **state)
{
    (void)state;
    struct program p;
    open_program(&p);
    added(&p, MR_QUEUE_VECTOR, A, 0);
    added(&p, MR_QUEUE_VECTOR, A, 0); // the last reader of its queue: one is enough
    added(&p, MR_QUEUE_WRITER, A, 0);
    added(&p, MR_QUEUE_ATTENTION, 0, A);
    assert_int_equal(signals(&p, 0), 0);
    assert_true(signals(&p, 1) != 0 && signals(&p, 2) != 0);
    assert_int_equal(waits(&p, 3), signals(&p, 1) | signals(&p, 2));
    mr_depend_free(p.depend);
}

// A wait that another implies, through a third queue, is none.
static void an_implied_wait_is_none(void **state)
{
    (void)state;
    struct program p;
    open_program(&p);
    added(&p, MR_QUEUE_VECTOR, 0, A);
    added(&p, MR_QUEUE_ATTENTION, A, B);
    added(&p, MR_QUEUE_WRITER, A | B, 0);
    assert_int_equal(signals(&p, 0), waits(&p, 1));
    assert_int_equal(signals(&p, 1), waits(&p, 2));
    mr_depend_free(p.depend);
}

// Its next command starts while the one before still drains.
static void the_array_waits_for_its_own_results(void **state)
{
    (void)state;
    struct program p;
    open_program(&p);
    added(&p, MR_QUEUE_ARRAY, 0, A);
    added(&p, MR_QUEUE_ARRAY, 0, A); // results come in order
    assert_int_equal(signals(&p, 0), 0);
    added(&p, MR_QUEUE_ARRAY, A, 0);
    assert_true(signals(&p, 1) != 0);
    assert_int_equal(signals(&p, 1), waits(&p, 2));
    mr_depend_free(p.depend);
}

// Two commands of a pair of queues that share nothing with others, `i` being any memory.
static int pair(struct program *p, int from, int to, int i, struct mr_error *err)
{
    int rc = add(p, from, 0, 1u << i % MR_MEMORIES, err);
    return rc < 0 ? rc : add(p, to, 1u << i % MR_MEMORIES, 0, err);
}

// More pairs of queues than semaphores, each of which tells the other something.
static void more_pairs_than_semaphores_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct program p;
    int rc = 0, pairs = 0;
    open_program(&p);
    for (int from = 0; from < (int)MR_QUEUES; from++)
        for (int to = 0; to < (int)MR_QUEUES && rc == 0; to++)
            if (to != from)
                rc = pair(&p, from, to, pairs++, &err);
    assert_int_equal(rc, MR_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "the model's program needs more than 16 semaphores");
    mr_depend_free(p.depend);
}

// The last semaphores are for pairs of queues without one: one has all memories of such a pair. It
// counts what has been written and read again before the other queue begins.
static void a_count_beyond_fifteen_is_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct program p;
    for (int memories = 7; memories <= 8; memories++) {
        open_program(&p);
        int pairs = 0;
        for (int from = 0; from < (int)MR_QUEUES; from++)
            for (int to = 0; to < (int)MR_QUEUES && pairs < 12; to++)
                if (to != from && !(from == MR_QUEUE_VECTOR && to == MR_QUEUE_WRITER))
                    check(pair(&p, from, to, pairs++, &err), &err);
        for (int k = 0; k < 2; k++) // written, then read
            for (int m = 0; m < memories; m++)
                added(&p, MR_QUEUE_VECTOR, k ? 1u << m : 0, k ? 0 : 1u << m);
        for (int k = 0; k < 2; k++)
            for (int m = 0; m < memories; m++)
                added(&p, MR_QUEUE_WRITER, k ? 0 : 1u << m, k ? 1u << m : 0);
        int rc = mr_depend_check(p.depend, &err);
        assert_int_equal(rc, memories == 7 ? 0 : MR_ERR_UNSUPPORTED);
        mr_depend_free(p.depend);
    }
    assert_non_null(strstr(err.text, "of the model's program could count beyond 15"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_has_been_written),
        cmocka_unit_test(what_is_written_has_been_read),
        cmocka_unit_test(an_implied_wait_is_none),
        cmocka_unit_test(the_array_waits_for_its_own_results),
        cmocka_unit_test(more_pairs_than_semaphores_are_refused),
        cmocka_unit_test(a_count_beyond_fifteen_is_refused),
    };
    return cmocka_run_group_tests_name("depend", tests, NULL, NULL);
}
