# SPDX-License-Identifier: Apache-2.0
# Several engines by MPI (docs/train/engines.md): a module that `millrace train --engines` opens. It is
# built where Open MPI's headers are; nothing else needs them.
DEPS_MPI := openmpi-bin libopenmpi-dev
MPI_CFLAGS := $(shell pkg-config --cflags ompi-c 2>/dev/null)
MPI_LIBS   := $(shell pkg-config --libs ompi-c 2>/dev/null)
MPI_MODULE := $(if $(MPI_LIBS),$(BUILD)/libmillrace-mpi.so)

ifneq ($(MPI_MODULE),)
all: $(MPI_MODULE)
$(BUILD)/obj/host/mpi/ranks_mpi.o: override EXTRA_CFLAGS += $(patsubst -I%,-isystem %,$(filter -I%,$(MPI_CFLAGS)))
$(MPI_MODULE): $(BUILD)/obj/host/mpi/ranks_mpi.o
	@echo "LINK  $@"
	@$(CC) $(CFLAGS) $(EXTRA_CFLAGS) -shared -o $@ $< $(MPI_LIBS)
endif

.PHONY: deps-mpi demo-engines
## deps-mpi: installs what training on several engines needs
deps-mpi:
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_MPI)"

## demo-engines: two engines train the demo model, with the bytes of one
demo-engines: deps deps-mpi
	@$(MAKE) --no-print-directory -j$(JOBS) $(MILLRACE) $(BUILD)/libmillrace-mpi.so
	@MILLRACE=$(MILLRACE) bash tests/tools/demo-engines.sh
