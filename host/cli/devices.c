// SPDX-License-Identifier: Apache-2.0
#include "cli/parse.h"
#include "cli/shared_options.h"
#include "device/configs.h"
#include "device/device.h"
#include "device/open.h"

struct args {
    struct cli_common c;
};

static json_t *device_json(const char *uri, const struct mr_config_entry *c)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "uri", uri, "channels", c->g.n, "rows",
                     c->g.r, "tokens", c->g.t, "n_embd_max", c->g.d_max, "attention_width_max",
                     c->g.w_max, "positions_max", c->g.ctx_max);
}

static bool opens(const char *uri)
{
    struct mr_device *dev;
    struct mr_error err = {0};
    if (mr_device_open(&dev, uri, &err) < 0)
        return false;
    mr_device_close(dev);
    return true;
}

static int run(int argc, char **argv)
{
    struct args a = {0};
    int status;
    if (!cli_parse(&cmd_devices, argc, argv, &a, &status))
        return status;
    json_t *list = json_array();
    if (a.c.json)
        json_array_append_new(list, json_pack("{s:s}", "uri", "cpu:"));
    if (!a.c.json)
        printf("%-14s %s\n", "cpu:", "fp32 reference on the checkpoint (OpenBLAS)");
    const struct mr_config_entry *e;
    for (int i = 0; (e = mr_config_at(i)); i++)
        for (int sim = 0; sim < 2; sim++) {
            char uri[64];
            snprintf(uri, sizeof uri, "%s:%s", sim ? "sim" : "model", e->name);
            if (sim && !opens(uri))
                continue;
            if (a.c.json)
                json_array_append_new(list, device_json(uri, e));
            else
                printf("%-14s %s; %d channel%s, %d x %d array, %d tokens, n_embd up to %d\n", uri,
                       sim ? "Verilated RTL" : "bit-exact C model", e->g.n, e->g.n == 1 ? "" : "s",
                       e->g.r, 4 * e->g.n, e->g.t, e->g.d_max);
        }
    if (a.c.json)
        return cli_print_json(list);
    json_decref(list);
    return EXIT_OK;
}

#define ARGS struct args

static const struct cli_option options[] = {CLI_JSON(ARGS), {0}};

const struct cli_command cmd_devices = {
    .name = "devices",
    .summary = "what a model can run on here",
    .synopsis = "[OPTIONS]",
    .about = "Lists the devices that can be opened: the C model in each configuration and the "
             "simulators that are there ('make all').",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace devices --json",
    .run = run,
};
