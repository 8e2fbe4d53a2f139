// SPDX-License-Identifier: Apache-2.0
// What libmillrace-mpi.so exports. Its name has the version: one of another is not found.
#pragma once

#include "common/ranks.h"

#define MR_MPI_LIBRARY "libmillrace-mpi.so"

// Joins the processes that mpirun has started. *r is borrowed until its leave() or quit().
typedef void mr_ranks_mpi_fn(struct mr_ranks *r);
mr_ranks_mpi_fn mr_ranks_mpi;
