// SPDX-License-Identifier: Apache-2.0
#include "cli/base/watch.h"

#include <string.h>

#include "cli/base/forecast.h"
#include "common/clock.h"

enum { LINE = 256 };

static void add(char *line, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *line, size_t size, const char *fmt, ...)
{
    size_t n = strlen(line);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line + n, size - n, fmt, ap);
    va_end(ap);
}

void cli_watch_done(char *line, size_t size, double done, size_t total)
{
    if (total == 1)
        add(line, size, "%.0f %% of a token", 100 * done);
    else
        add(line, size, "%.0f of %zu tokens", done, total);
}

static void add_cycles(char *line, size_t size, double cycles)
{
    static const struct {
        double below, unit;
        int digits;
        const char *name;
    } units[] = {{1e3, 1, 0, ""},
                 {1e6, 1e3, 0, "thousand "},
                 {1e9, 1e6, 1, "million "},
                 {1e30, 1e9, 2, "billion "}};
    int i = 0;
    while (cycles >= units[i].below)
        i++;
    add(line, size, ", %.*f %scycles", units[i].digits, cycles / units[i].unit, units[i].name);
}

void cli_watch_where(char *line, size_t size, const struct mr_progress *p, uint64_t cycles)
{
    if (p->commands > 0 && p->layer < p->layers)
        add(line, size, ", layer %d of %d", p->layer + 1, p->layers);
    else if (p->commands > 0)
        add(line, size, ", behind layer %d", p->layers);
    if (p->cycles > 0)
        add_cycles(line, size, (double)(cycles + p->cycles));
}

void cli_watch_left(char *line, size_t size, double seconds)
{
    static const struct {
        double below, unit;
        const char *name;
    } units[] = {{120, 1, "s"}, {7200, 60, "min"}, {172800, 3600, "h"}, {1e30, 86400, "days"}};
    int i = 0;
    if (!(seconds >= 0 && seconds < 1e30))
        return;
    while (seconds >= units[i].below)
        i++;
    add(line, size, ", %.0f %s left", seconds / units[i].unit, units[i].name);
}

void cli_watch_since(char *line, size_t size, double start)
{
    add(line, size, ", %.0f s", mr_seconds() - start);
}

void cli_watch_open(struct cli_watch *w, const struct cli_common *c, bool text)
{
    *w = (struct cli_watch){.common = c};
    cli_line_open(&w->line, c->quiet, text);
}

static double share_of(double whole, double part)
{
    return part < whole ? part / whole : 1;
}

// Of a text, by what has been measured, or by the plan while there is nothing to measure.
static double text_left(const struct cli_watch *w, const struct mr_progress *p, double done)
{
    double now = mr_seconds(), after = w->count > 0 ? (double)w->count - 1 + p->share : 0;
    double to_come = (double)w->most - (double)w->count - (w->count > 0 ? p->share : 1);
    if (w->count > 1)
        return (now - w->first) / after * to_come;
    double all = w->plan_prompt + ((double)w->most - 1) * w->plan_token;
    double made = w->plan_prompt * (w->count > 0 ? 1 : share_of((double)w->prompt, done)) +
                  w->plan_token * after;
    return made > 0 ? (now - w->start) * (all - made) / made : -1;
}

static int show(void *arg, const struct mr_progress *p)
{
    struct cli_watch *w = arg;
    double now = mr_seconds(), left = -1;
    double done = (double)(p->tokens - w->before) + p->share * p->rows;
    char line[LINE] = "";
    struct mr_stats s;
    if ((w->count == 0 ? now - w->start : p->seconds) < CLI_WATCH_AFTER)
        return 0; // text is coming
    if (w->name)
        add(line, sizeof line, "%s ", w->name);
    if (w->total) {
        cli_watch_done(line, sizeof line, done, w->total);
        left = done > 0 ? (now - w->start) * ((double)w->total - done) / done : -1;
    } else if (w->count == 0) {
        add(line, sizeof line, "prompt: %.0f of %zu tokens", done, w->prompt);
        left = text_left(w, p, done);
    } else {
        add(line, sizeof line, "token %zu of %zu", w->count + 1, w->most);
        left = text_left(w, p, done);
    }
    mr_session_get_stats(w->session, &s);
    cli_watch_where(line, sizeof line, p, cli_counter(&s, "cycles"));
    cli_watch_left(line, sizeof line, left);
    if (left < 0)
        cli_watch_since(line, sizeof line, w->start);
    cli_line_show(&w->line, line);
    return 0;
}

static void begin(struct cli_watch *w, struct mr_session *session)
{
    struct mr_stats s;
    w->session = session;
    w->start = mr_seconds();
    w->count = 0;
    if (!cli_line_wanted(&w->line))
        return;
    mr_session_get_stats(session, &s);
    w->before = s.tokens;
    mr_session_watch(session, show, w);
}

void cli_watch_text(struct cli_watch *w, struct mr_session *session, size_t prompt, size_t most)
{
    struct cli_work one = {(double)prompt, 1, 1, 0}, two = {(double)prompt, 2, 1, 0};
    struct cli_forecast a, b;
    w->prompt = prompt;
    w->most = most;
    w->total = 0;
    w->plan_prompt = w->plan_token = 0;
    if (cli_line_wanted(&w->line) && cli_forecast(&a, w->common, &one) &&
        cli_forecast(&b, w->common, &two)) {
        w->plan_prompt = a.seconds;
        w->plan_token = b.seconds - a.seconds;
    }
    begin(w, session);
}

void cli_watch_total(struct cli_watch *w, struct mr_session *session, size_t total)
{
    w->total = total;
    begin(w, session);
}

void cli_watch_token(struct cli_watch *w)
{
    if (w->count++ == 0)
        w->first = mr_seconds();
}

void cli_watch_end(struct cli_watch *w)
{
    mr_session_watch(w->session, NULL, NULL);
    cli_line_wipe(&w->line);
}
