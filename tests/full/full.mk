# SPDX-License-Identifier: Apache-2.0
# demo, bench, formal and test-full; tests/full/run.sh has the parts of the last.
SIM_VIEW = $(BUILD)/sim/$(1)/libmillrace-sim-$(1)-view.so
SIM_SO   = $(BUILD)/sim/$(1)/libmillrace-sim-$(1).so

# Of boards and cards.
CARD_CONFIGS := kv260 u50 u250 u280

.PHONY: demo bench bench-quick formal test-full full-sweep full-plan full-gates full-fp full-accuracy full-benches full-pack24 full-waves
## demo: the demo model writes text, token by token, on the simulated RTL (PROMPT=, TOKENS=, TEMPERATURE=, SEED=)
demo: deps
	@$(MAKE) --no-print-directory -j$(JOBS) $(MILLRACE) $(call SIM_VIEW,sim)
	@MILLRACE=$(MILLRACE) bash tests/tools/demo.sh

# The simulators of the benchmarks are for this machine only, so they stand apart.
BENCH_MAKE = $(MAKE) --no-print-directory BUILD=$(BUILD)/bench MARCH=native SIM_PGO="sim sim-train" SIM_X=fast
# Profile-guided optimisation of the simulator wants the tool that merges profiles.
DEPS_BENCH := llvm-19
.PHONY: deps-bench
deps-bench:
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_BENCH)"
BENCH_SO   = $(foreach c,$(1),$(BUILD)/bench/sim/$(c)/libmillrace-sim-$(c).so)
## bench: the figures at GPT-J-6B's size against their bars, and two parts of a step of training against their plan (20 minutes; JSON in build/bench/full.json)
bench: deps deps-bench
	@$(BENCH_MAKE) -j$(JOBS) JOBS=1 $(BUILD)/bench/suite $(BUILD)/bench/millrace \
	  $(call BENCH_SO,sim sim2 sim4 wide sim-train $(CARD_CONFIGS))
	@$(BUILD)/bench/suite full $(BUILD)/bench/full.json
	@BENCH_TRAIN=gptj-short BENCH_PARTS="attention LayerNorm" BUILD=$(BUILD) MILLRACE=$(BUILD)/bench/millrace \
	  JOBS=$(JOBS) tests/bench/train.sh
## bench-quick: a part of them (3 minutes)
bench-quick: deps deps-bench
	@$(BENCH_MAKE) -j$(JOBS) $(BUILD)/bench/suite $(call BENCH_SO,sim)
	@$(BUILD)/bench/suite quick $(BUILD)/bench/quick.json

## formal: proofs of handshakes, credits and order
formal:
	@bash tests/formal/run.sh

# The simulated devices of the unit tests.
SIM_TESTS := $(addprefix $(BUILD)/unit/test_,sim sim_errors clk_gate)
$(SIM_TESTS): | $(call SIM_SO,sim) $(call SIM_VIEW,sim) \
    $(call SIM_SO,tiny) $(call SIM_VIEW,tiny)
$(SIM_TESTS): tests/unit/fixtures.h tests/unit/simulated.h
$(BUILD)/unit/test_memory: | $(call SIM_SO,tiny) $(call SIM_VIEW,tiny)
$(BUILD)/unit/test_memory_open $(BUILD)/unit/test_memory_tools: | $(call SIM_VIEW,tiny)
$(BUILD)/unit/test_plan: | $(call SIM_SO,sim) $(call SIM_SO,tiny)
$(BUILD)/test-list: $(call SIM_VIEW,sim)

# The host's code as the library has it, without sanitizers: hours of simulation go through it.
$(BUILD)/full/sweep: tests/full/sweep.c tests/unit/fixtures.h tests/unit/simulated.h $(LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests -o $@ $< $(LIB) -lcmocka $(LIBS)
full-sweep: $(BUILD)/full/sweep $(foreach c,tiny sim wide,$(call SIM_SO,$(c))) $(call SIM_VIEW,wide)
	CMOCKA_MESSAGE_OUTPUT=TAP $(BUILD)/full/sweep
# A million programs, also as four parts of a quarter each.
PROGRAMS_CASES := 1000000
$(BUILD)/full/programs: $(wildcard tests/programs/*.c tests/programs/*.h) $(BUILD)/gen/mr_rules.inc $(BUILD)/gen/mr_training.inc $(LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests/programs -o $@ $(wildcard tests/programs/*.c) $(LIB) $(LIBS)
PROGRAMS_PARTS := $(addprefix full-programs,1 2 3 4)
.PHONY: full-programs $(PROGRAMS_PARTS)
full-programs: $(BUILD)/full/programs $(call SIM_SO,tiny) $(call SIM_SO,tinyt)
	JOBS=$(JOBS) bash tests/full/programs.sh $< $(PROGRAMS_CASES)
$(PROGRAMS_PARTS): full-programs%: $(BUILD)/full/programs $(call SIM_SO,tiny) $(call SIM_SO,tinyt)
	JOBS=$(JOBS) SHARD=$*/4 bash tests/full/programs.sh $< $(PROGRAMS_CASES)
# Each allocation of the library's calls fails once.
.PHONY: full-memory
full-memory: $(addprefix $(BUILD)/unit/,test_memory test_memory_open test_memory_tools)
	for t in $^; do MEMORY_EVERY=1 CMOCKA_MESSAGE_OUTPUT=TAP $$t || exit 1; done
# The analytic model at more points, and with more channels.
full-plan: $(BUILD)/unit/test_plan $(foreach c,sim tiny wide gw5a,$(call SIM_SO,$(c)))
	for c in sim,7,40 tiny,7,40 wide,3,12 gw5a,7,12; do \
	  IFS=, read -r config seed points <<<"$$c"; \
	  PLAN_CONFIG=$$config PLAN_SEED=$$seed PLAN_POINTS=$$points CMOCKA_MESSAGE_OUTPUT=TAP $(BUILD)/unit/test_plan || exit 1; done
# The configurations whose figures make bench gives beside sim: with and without clock gates.
GATED := wide sim2 sim4
full-gates: $(BUILD)/unit/test_clk_gate $(foreach c,$(GATED),$(call SIM_SO,$(c)) $(call SIM_VIEW,$(c)))
	for c in $(GATED); do CLK_GATE_CONFIG=$$c CMOCKA_MESSAGE_OUTPUT=TAP $(BUILD)/unit/test_clk_gate || exit 1; done
# Random programs of training, faults and whole passes, on one channel and on eight.
.PHONY: full-train
full-train: $(BUILD)/unit/test_train_rtl $(BUILD)/unit/test_train_works $(BUILD)/unit/test_train_faults $(BUILD)/unit/test_pass $(foreach c,sim wide,$(call SIM_SO,$(c)-train) $(call SIM_VIEW,$(c)-train))
	for c in sim wide; do export TRAIN_CONFIG=$$c,train CMOCKA_MESSAGE_OUTPUT=TAP; \
	  $(BUILD)/unit/test_train_rtl && $(BUILD)/unit/test_train_works && $(BUILD)/unit/test_train_faults && \
	  $(BUILD)/unit/test_pass the_rtl_gives_the_same_bits || exit 1; done
# A step of a model of 124 million parameters on the RTL.
.PHONY: full-whole
full-whole: $(MILLRACE) $(call SIM_SO,sim-train)
	MILLRACE=$(MILLRACE) bash tests/full/whole.sh
# The configurations of boards and cards, at full width.
.PHONY: full-cards
full-cards: $(MILLRACE) $(foreach c,$(CARD_CONFIGS) gw5a,$(call SIM_SO,$(c)))
	MILLRACE=$(MILLRACE) bash tests/full/cards.sh $(CARD_CONFIGS) gw5a
full-fp: $(filter $(BUILD)/rtl/fp@%,$(BENCH_BIN))
	for b in $^; do $$b --cases 10000000 || exit 1; done

## bench-tokenizer: MB/s of the tokenizer on one core
.PHONY: bench-tokenizer
$(BUILD)/full/tokenizer: tests/full/tokenizer.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -o $@ $< $(LIB) $(LIBS)
bench-tokenizer: $(BUILD)/full/tokenizer
	@$< models/demo models/demo/heldout.txt

## test-full: test, and all that takes longer; result in docs/results/test-full.txt (three to four hours)
test-full: deps
	@BUILD=$(BUILD) JOBS=$(JOBS) MAKE="$(MAKE)" bash tests/full/run.sh
## test-full-stale: the parts whose last result is older than their sources
.PHONY: test-full-stale
test-full-stale:
	@bash tests/full/stale.sh
# What parts that run side by side would otherwise build twice.
.PHONY: full-prepare
full-prepare: all $(BUILD)/full/sweep $(BUILD)/full/programs $(SIM_TESTS) rtl-benches $(foreach c,tiny sim wide,$(call SIM_SO,$(c))) \
    $(call SIM_VIEW,wide) $(SLOW_BENCHES:%=$(BUILD)/rtl/%/tb)
full-accuracy: $(MILLRACE)
	TEST_FULL=1 MILLRACE=$(MILLRACE) bash tests/e2e/eval/accuracy.sh
.PHONY: full-dist
full-dist: $(MILLRACE)
	MILLRACE=$(MILLRACE) BUILD=$(BUILD) JOBS=$(JOBS) bash tests/full/dist.sh
full-waves: $(MILLRACE) $(BUILD)/sim/tiny/libmillrace-sim-tiny-trace.so
	MILLRACE=$(MILLRACE) bash tests/full/waves.sh
# The size and the disk are the test; the program under test is the one that people run.
$(BUILD)/full/pack24: tests/full/pack24.c tests/unit/checkpoint/archive.h tests/unit/files.h $(LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests -o $@ $< $(LIB) -lcmocka $(LIBS)
full-pack24: $(BUILD)/full/pack24 $(MILLRACE)
	CMOCKA_MESSAGE_OUTPUT=TAP $(BUILD)/full/pack24 $(MILLRACE)
## bench-pack: packing GB/s from the page cache beside a plain read, and the time to open the file (6 layers, 9 GB in TMPDIR)
.PHONY: bench-pack
bench-pack: $(BUILD)/full/pack24 $(MILLRACE)
	@$(BUILD)/full/pack24 $(MILLRACE) "$${TMPDIR:-/tmp}" 6
full-benches: $(SLOW_BENCHES:%=$(BUILD)/rtl/%/tb)
	@for b in $(SLOW_BENCHES); do printf 'rtl-%s\t$(BUILD)/rtl/%s/tb\n' $$b $$b; done >$(BUILD)/full-list
	@tests/run.sh $(BUILD)/full-list $(BUILD)/full/benches $(JOBS)
