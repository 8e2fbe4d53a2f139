// SPDX-License-Identifier: Apache-2.0
// A process as one of several ranks: its device, its module of MPI, its signals.
#include "cli/train/engines.h"

#include <ctype.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "common/file.h"
#include "mpi/ranks_mpi.h"

// What Open MPI tells its processes; 0 if it has not started this one.
static int told(const char *name)
{
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

bool engines_is_rank(void)
{
    return told("OMPI_COMM_WORLD_SIZE") > 0;
}

// ---- devices -----------------------------------------------------------------------------------

// Does an entry begin here?
static bool begins(const char *at)
{
    const char *end = at;
    while (islower((unsigned char)*end))
        end++;
    return end > at && *end == ':';
}

// Behind the entry: its comma or the end of the list.
static const char *end_of(const char *entry)
{
    const char *comma = strchr(entry, ',');
    while (comma && !begins(comma + 1))
        comma = strchr(comma + 1, ',');
    return comma ? comma : entry + strlen(entry);
}

int engines_device(const char *list, int rank, int count, char **device, struct mr_error *err)
{
    int entries = 1;
    *device = NULL;
    for (const char *end = end_of(list); *end; end = end_of(end + 1))
        entries++;
    if (entries > count)
        return mr_fail(err, MR_ERR_USAGE, "-d has %d devices, and there %s %d %s; --engines %d",
                       entries, count == 1 ? "is" : "are", count, count == 1 ? "engine" : "engines",
                       entries);
    const char *entry = list;
    for (int k = rank % entries; k > 0; k--)
        entry = end_of(entry) + 1;
    *device = strndup(entry, (size_t)(end_of(entry) - entry));
    return *device ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for the device's name");
}

// ---- joining -----------------------------------------------------------------------------------

// Beside the program, where it was built, or where it is installed. RTLD_GLOBAL: Open MPI's parts
// look for its symbols.
static void *open_module(void)
{
    static const char *const places[] = {"/" MR_MPI_LIBRARY, "/../" MR_MPI_LIBRARY,
                                         "/../lib/millrace/" MR_MPI_LIBRARY};
    char path[4096];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (mr_program_beside(path, sizeof path, places[i]) && access(path, R_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    return dlopen(MR_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
}

static int check_count(int count, struct mr_error *err)
{
    int size = told("OMPI_COMM_WORLD_SIZE");
    if (getenv("MILLRACE_ENGINES") && size == 0)
        return mr_fail(err, MR_ERR_DEVICE,
                       "--engines: this mpirun is not Open MPI's; install the package openmpi-bin, "
                       "or put its mpirun first in PATH");
    if (count > 0 && size != count)
        return mr_fail(err, MR_ERR_USAGE, "--engines %d: mpirun has started %d", count, size);
    return 0;
}

int engines_join(struct mr_ranks *ranks, int count, struct mr_error *err)
{
    char host[128] = "";
    int rc = check_count(count, err);
    if (rc < 0)
        return rc;
    (void)gethostname(host, sizeof host - 1); // empty: it has none
    cli_fail_as(told("OMPI_COMM_WORLD_RANK"), host);
    void *so = open_module();
    mr_ranks_mpi_fn *join;
    *(void **)&join = so ? dlsym(so, "mr_ranks_mpi") : NULL;
    if (!join)
        return mr_fail(err, MR_ERR_DEVICE,
                       "--engines: " MR_MPI_LIBRARY " cannot be opened; install the package "
                       "libopenmpi3, and build with libopenmpi-dev (%.200s)",
                       dlerror());
    join(ranks);
    cli_catch_as_rank(ranks->rank);
    return 0;
}
