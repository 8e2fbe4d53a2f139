// SPDX-License-Identifier: Apache-2.0
// A case of the program fuzzer: all that a run reads, made from one seed.
#ifndef MILLRACE_TESTS_PROGRAMS_H
#define MILLRACE_TESTS_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmodel/command.h"
#include "device/device.h"

// Bytes of the buffers of configuration tiny, and the room before and behind the windows in them:
// a window that is moved or grows a little still lies in memory.
enum { DESC, PROGRAM, INPUT, RESULT, WEIGHTS, KV, PARTS };
enum { ROOM = 4096, MOST_COMMANDS = 96, DESC_WORDS = 32, DESC_SKEW = 64 };
extern const uint32_t part_bytes[PARTS];

struct program_case {
    uint64_t seed;
    struct mr_command cmds[MOST_COMMANDS];
    int count;
    bool chained; // each command waits for the one before it: nothing is left to chance
    uint32_t desc[DESC_WORDS];
    uint32_t streamed;     // desc[18], the weights' beats, as the commands need them
    uint32_t run_skew;     // bytes that RUN_ADDR lies behind the descriptor's place
    uint8_t *bytes[PARTS]; // part_bytes each; DESC and PROGRAM are filled from the above
    const char *what;      // how it was made
    char limit[160];       // what limits.c says of it
};

// Fills a case (whose `bytes` are there) for buffers at these addresses.
void make_case(struct program_case *c, uint64_t seed, const uint64_t at[PARTS]);

// Known fault number 0.. and how it must end; false: there are no more.
bool make_known(struct program_case *c, int number, const uint64_t at[PARTS], unsigned *code,
                unsigned *command);

// Small legal program number 0.., chained, for limits.c to change; false: there are no more.
// refill(): the stream and the bytes again, behind a change of commands or descriptor.
bool make_base(struct program_case *c, int number, const uint64_t at[PARTS]);
void refill(struct program_case *c);

// Whether the run of a device, model: or sim:, has set STICKY's bit for NaN.
bool saw_nan(struct mr_device *dev);

// Programs of training (training.c): false if one ended otherwise the second time, or on sim:tinyt,
// which is opened with these options.
bool training_programs(uint64_t cases, uint64_t seed, const char *options);

// ---- for those who make one
uint64_t random64(uint64_t *state);
void mutate(struct program_case *c, uint64_t *rng, const uint64_t at[PARTS]);
void chain(struct program_case *c);

#endif
