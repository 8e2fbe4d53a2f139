# SPDX-License-Identifier: Apache-2.0
# Trainings beside fp32: the demo model fine-tuned, and a small GPT-J from scratch.
$(BUILD)/train/learn: tests/train/learn.c $(REFERENCE_SRC) host/cli/data/train_data.c $(DATA_SRC) $(LIB)
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -Itests -o $@ $(filter %.c,$^) $(LIB) $(LIBS) $(DATA_LIBS)
# make test only builds it, so that it does not fall behind the interface.
unit-tests: $(BUILD)/train/learn

# What the small model reads: the King James Bible as a package of Debian has it, without the names of verses.
$(BUILD)/train/bible.txt:
	@$(MAKE) --no-print-directory deps DEPS=bible-kjv
	@mkdir -p $(@D)
	@bible -f gen1:1-rev22:21 2>/dev/null | sed 's/^[^ ]* //' | head -c 700000 >$@.new && [ -s $@.new ] && mv $@.new $@

## learns: does training on model: learn as in fp32? SEEDS="1 2 3" TUNE_STEPS=80 SCRATCH_STEPS=300; a quarter of an hour; curves in build/train/curves.svg
.PHONY: learns
SEEDS ?= 1 2 3
TUNE_STEPS ?= 80
SCRATCH_STEPS ?= 300
learns: $(BUILD)/train/learn $(BUILD)/train/bible.txt
	@rm -rf $(BUILD)/train/runs && mkdir -p $(BUILD)/train/runs && : >$(BUILD)/train/lines
	@for s in $(SEEDS); do for n in demo scratch; do d=$(BUILD)/train/runs/$$n-$$s; mkdir $$d || exit 1; \
	   [ $$n = demo ] && what="models/demo models/demo/heldout.txt 16 $(TUNE_STEPS) 1e-4" || \
	     what="scratch $(BUILD)/train/bible.txt 32 $(SCRATCH_STEPS) 4e-3"; \
	   $(BUILD)/train/learn $$n $$what $$s $$d >>$(BUILD)/train/lines || exit 1; rm -rf $$d; done; done
	@awk -F, -f tests/train/curves.awk $(BUILD)/train/lines >$(BUILD)/train/curves.svg
	@awk -F, -f tests/train/learn.awk $(BUILD)/train/lines

## demo-train: the demo model learns a page on the simulated RTL, three minutes on two cores (STEPS=, DEVICE=, ENGINES=)
.PHONY: demo-train demo-train-record
demo-train: deps deps-mpi deps-bench
	@$(MAKE) --no-print-directory -j$(JOBS) $(MILLRACE) $(BUILD)/libmillrace-mpi.so
	@$(BENCH_MAKE) SIM_PROFILER=$(MILLRACE) -j$(JOBS) $(call BENCH_SO,sim-train)
	@MILLRACE=$(MILLRACE) MILLRACE_SIM_DIR=$(BUILD)/bench/sim/sim-train bash tests/tools/demo-train.sh
# What fp32 makes of the same steps.
demo-train-record: $(BUILD)/train/learn
	@rm -rf $(BUILD)/train/pages && mkdir -p $(BUILD)/train/pages
	@$(BUILD)/train/learn pages models/demo examples/train/pages.txt 4 20 1e-3 1 $(BUILD)/train/pages >$(BUILD)/train/pages.lines
	@awk -F, -f tests/train/record.awk $(BUILD)/train/pages.lines >examples/train/pages-fp32.csv
	@rm -rf $(BUILD)/train/pages
