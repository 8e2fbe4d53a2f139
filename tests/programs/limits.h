// SPDX-License-Identifier: Apache-2.0
// Programs on both sides of every rule of rtl/spec/device.def.
#ifndef MILLRACE_TESTS_LIMITS_H
#define MILLRACE_TESTS_LIMITS_H

#include "programs.h"

// A case, with the code (and command) by which the rules refuse it; 0: they do not.
typedef void limit_run(void *arg, struct program_case *c, unsigned code, unsigned command);
// The code by which the C model ends it.
typedef unsigned limit_probe(void *arg, struct program_case *c);

// False, after saying which on stdout: a rule has no case that breaks it.
bool each_limit(struct program_case *c, const uint64_t at[PARTS], limit_run *run,
                limit_probe *probe, void *arg, unsigned long *cases);

#endif
