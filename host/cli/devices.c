// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/shared_options.h"
#include "device/configs.h"
#include "device/open.h"

struct args {
    struct cli_common c;
};

enum { MOST_BOARDS = 16 };

struct list {
    bool json;
    json_t *all;
};

// What it is, or why it is not there: the error's text without the name in front.
static void show(const struct list *l, const char *uri, const char *what,
                 const struct mr_config_entry *c, const struct mr_error *err)
{
    size_t n = strlen(uri);
    const char *reason = err->text;
    if (err->status < 0 && strncmp(reason, uri, n) == 0 && strncmp(reason + n, ": ", 2) == 0)
        reason += n + 2;
    if (l->json) {
        json_t *o = json_pack("{s:s, s:b}", "uri", uri, "available", err->status == 0);
        if (o && err->status < 0)
            json_object_set_new(o, "reason", json_string(reason));
        else if (o && c)
            json_object_update_new(o, json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "channels",
                                                c->g.n, "rows", c->g.r, "tokens", c->g.t,
                                                "n_embd_max", c->g.d_max, "attention_width_max",
                                                c->g.w_max, "positions_max", c->g.ctx_max));
        json_array_append_new(l->all, o);
    } else if (err->status < 0) {
        printf("%-14s not here: %s\n", uri, reason);
    } else if (c) {
        printf("%-14s %s; %d channel%s, %d x %d array, %d tokens, n_embd up to %d\n", uri, what,
               c->g.n, c->g.n == 1 ? "" : "s", c->g.r, 4 * c->g.n, c->g.t, c->g.d_max);
    } else {
        printf("%-14s %s\n", uri, what);
    }
}

static void probe(const struct list *l, const char *uri, const char *what,
                  const struct mr_config_entry *c)
{
    struct mr_error err = {0};
    err.status = mr_device_probe(uri, &err);
    show(l, uri, what, c, &err);
}

static void show_configurations(const struct list *l)
{
    const char *name;
    char uri[64];
    for (int i = 0; (name = mr_config_name(i)); i++) {
        const struct mr_config_entry *c = mr_config_named(name);
        (void)snprintf(uri, sizeof uri, "model:%s", name);
        show(l, uri, c->g.train ? "bit-exact C model, trains" : "bit-exact C model", c,
             &(struct mr_error){0});
        (void)snprintf(uri, sizeof uri, "sim:%s", name);
        probe(l, uri, c->g.train ? "Verilated RTL, trains" : "Verilated RTL", c);
    }
}

static void show_xrt(const struct list *l)
{
    char what[128];
    struct mr_error err = {0};
    int units = 0;
    err.status = mr_device_probe("xrt:0", &err);
    if (err.status == 0)
        err.status = mr_device_units("xrt:0", &units, &err);
    (void)snprintf(what, sizeof what, "%s with an xclbin of %d compute unit%s; not opened here",
                   getenv("XCL_EMULATION_MODE") ? "hardware emulation" : "Alveo card", units,
                   units == 1 ? "" : "s");
    show(l, "xrt:0", what, NULL, &err);
}

// The boards that the driver has; without one, why there is none.
static void show_boards(const struct list *l)
{
    char uri[32], path[64];
    for (int i = 0; i < MOST_BOARDS; i++) {
        (void)snprintf(path, sizeof path, "/dev/millrace%d", i);
        (void)snprintf(uri, sizeof uri, "pci:%d", i);
        if (i == 0 || access(path, F_OK) == 0)
            probe(l, uri, "board of the driver", NULL);
    }
}

static int run(void *args)
{
    const struct args *a = args;
    struct list l = {a->c.json, json_array()};
    show(&l, "cpu:", "fp32 reference on the checkpoint (OpenBLAS)", NULL, &(struct mr_error){0});
    show_configurations(&l);
    show_xrt(&l);
    show_boards(&l);
    if (l.json)
        return cli_print_json(l.all);
    json_decref(l.all);
    return EXIT_OK;
}

#define ARGS struct args

static const struct cli_option options[] = {CLI_JSON, {0}};

const struct cli_command cmd_devices = {
    .name = "devices",
    .summary = "what a model can run on here",
    .synopsis = "[OPTIONS]",
    .about =
        "Lists every kind of device: the fp32 reference, the C model and the simulator in each "
        "configuration, cards through XRT, and boards with the driver. Of what is not there it "
        "says why and what to do. Cards and emulations are not opened for that.",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace devices --json",
    .run = run,
};
