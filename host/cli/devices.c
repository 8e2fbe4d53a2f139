// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "device/configs.h"
#include "device/device.h"
#include "device/open.h"

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
    static const struct option options[] = {{"json", no_argument, NULL, OPT_JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct cli_common c = {0};
    int opt, status;
    while ((opt = cli_next_option(&cmd_devices, argc, argv, "h", options)) != -1)
        if (cli_common_option(&c, &cmd_devices, opt, &status) < 0)
            return status;
    if (optind < argc)
        return cli_usage(&cmd_devices, "'%s' is one argument too many", argv[optind]);
    json_t *list = json_array();
    if (c.json)
        json_array_append_new(list, json_pack("{s:s}", "uri", "cpu:"));
    if (!c.json)
        printf("%-14s %s\n", "cpu:", "fp32 reference on the checkpoint (OpenBLAS)");
    const struct mr_config_entry *e;
    for (int i = 0; (e = mr_config_at(i)); i++)
        for (int sim = 0; sim < 2; sim++) {
            char uri[64];
            snprintf(uri, sizeof uri, "%s:%s", sim ? "sim" : "model", e->name);
            if (sim && !opens(uri))
                continue;
            if (c.json)
                json_array_append_new(list, device_json(uri, e));
            else
                printf("%-14s %s; %d channel%s, %d x %d array, %d tokens, n_embd up to %d\n", uri,
                       sim ? "Verilated RTL" : "bit-exact C model", e->g.n, e->g.n == 1 ? "" : "s",
                       e->g.r, 4 * e->g.n, e->g.t, e->g.d_max);
        }
    if (c.json)
        return cli_print_json(list);
    json_decref(list);
    return EXIT_OK;
}

const struct cli_command cmd_devices = {
    "devices",
    "what a model can run on here",
    "[OPTIONS]\n\n"
    "Lists the devices that can be opened: the C model in each configuration and the simulators\n"
    "that are there ('make all').\n\n"
    "      --json            as JSON\n\n"
    "example:\n  millrace devices --json\n",
    run,
};
