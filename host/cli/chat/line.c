// SPDX-License-Identifier: Apache-2.0
// Lines for `millrace chat`: libedit on a terminal, else as they come.
#include <editline/readline.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <termios.h>
#include <unistd.h>

#include "cli/chat/conversation.h"
#include "cli/base/cli.h"
#include "common/error.h"

static struct termios before;

// While a line is edited there is nothing to end in good order but the terminal.
static void on_signal(int sig)
{
    (void)sig;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    ssize_t ignored = write(STDOUT_FILENO, "\n", 1);
    (void)ignored;
    _exit(EXIT_INTERRUPTED);
}

static char *edited_line(const char *prompt)
{
    struct sigaction ours = {.sa_handler = on_signal}, interrupt, terminate;
    sigemptyset(&ours.sa_mask);
    rl_catch_signals = 0;
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return NULL;
    (void)sigaction(SIGINT, &ours, &interrupt); // as in cli_catch_signals()
    (void)sigaction(SIGTERM, &ours, &terminate);
    char *line = readline(prompt);
    (void)sigaction(SIGINT, &interrupt, NULL);
    (void)sigaction(SIGTERM, &terminate, NULL);
    if (line && *line)
        (void)add_history(line);
    return line;
}

int chat_line(struct cli_lines *input, const char *prompt, bool terminal, char **line,
              struct mr_error *err)
{
    const char *text;
    size_t size;
    if (terminal) {
        *line = edited_line(prompt);
        return *line != NULL;
    }
    int rc = cli_lines_next(input, &text, &size, err);
    if (rc <= 0)
        return rc;
    if (memchr(text, 0, size))
        return mr_fail(err, MR_ERR_FORMAT, "standard input: line %llu has a NUL byte",
                       (unsigned long long)input->number);
    *line = strndup(text, size);
    return *line ? 1 : mr_fail(err, MR_ERR_MEMORY, "no memory for a line");
}
