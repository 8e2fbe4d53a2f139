// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

// The next line of standard input in new memory, without its end; NULL at the end. On a terminal it
// can be edited, earlier lines are there, and Ctrl-C ends the program.
char *chat_line(const char *prompt, bool terminal);
