// SPDX-License-Identifier: Apache-2.0
// A simulator that dies: libmillrace-sim-CONFIG.so around the real one, which MILLRACE_DYING_SIM
// names. A device that is opened with seed=7 fails in its next run as soon as the file
// MILLRACE_DYING_WHEN is there; others never do.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/verilator/simlib.h"

static const struct mr_sim_api *real;
static struct mr_sim *mortal;

static struct mr_sim *open_one(const struct mr_sim_options *options, struct mr_error *err)
{
    struct mr_sim *sim = real->open(options, err);
    if (options->seed == 7)
        mortal = sim;
    return sim;
}

static int64_t run(struct mr_sim *sim, int64_t max_cycles, enum mr_sim_stop *stop,
                   struct mr_error *err)
{
    const char *when = getenv("MILLRACE_DYING_WHEN");
    if (sim == mortal && when && access(when, F_OK) == 0)
        return mr_fail(err, MR_ERR_DEVICE, "the device has died");
    return real->run(sim, max_cycles, stop, err);
}

const struct mr_sim_api *mr_sim_get_api(void)
{
    static struct mr_sim_api api;
    const char *path = getenv("MILLRACE_DYING_SIM");
    void *so = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    mr_sim_get_api_fn *get;
    *(void **)&get = so ? dlsym(so, "mr_sim_get_api") : NULL;
    if (!get)
        return NULL;
    real = get();
    api = *real;
    api.open = open_one;
    api.run = run;
    return &api;
}
