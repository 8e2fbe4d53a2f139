// SPDX-License-Identifier: Apache-2.0
// Ranks (common/ranks.h) by MPI. A library of its own, which the command line opens when it is a
// rank: so nothing else needs MPI.
#include <mpi.h>
#include <stddef.h>

#include "mpi/ranks_mpi.h"

// Counts of MPI are int, and pieces are what flows at the same time.
enum { PIECE = 4 << 20 };

// An error of MPI's ends all ranks with its own message (MPI_ERRORS_ARE_FATAL).

static void send(void *arg, void *data, size_t bytes)
{
    (void)arg;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        MPI_Bcast((char *)data + at, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

static void sum(void *arg, int32_t *data, size_t count)
{
    const struct mr_ranks *r = arg;
    const size_t most = PIECE / sizeof *data;
    for (size_t at = 0, n; at < count; at += n) {
        n = count - at < most ? count - at : most;
        MPI_Reduce(r->rank == 0 ? MPI_IN_PLACE : data + at, r->rank == 0 ? data + at : NULL, (int)n,
                   MPI_UINT32_T, MPI_SUM, 0, MPI_COMM_WORLD);
    }
}

static void gather(void *arg, const void *own, void *all, size_t bytes)
{
    (void)arg;
    MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void quit(void *arg, int status)
{
    (void)arg;
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void leave(void *arg)
{
    (void)arg;
    MPI_Finalize();
}

void mr_ranks_mpi(struct mr_ranks *r)
{
    MPI_Init(NULL, NULL);
    *r = (struct mr_ranks){
        .arg = r, .send = send, .sum = sum, .gather = gather, .quit = quit, .leave = leave};
    MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r->count);
}
