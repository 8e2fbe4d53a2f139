# SPDX-License-Identifier: Apache-2.0
# The program fuzzer: sanitized host code, the kernels of the C model too.
PROGRAMS_SRC := $(wildcard tests/programs/*.c)
PROGRAMS_KERNELS := $(wildcard host/cmodel/kernel*.c)
# Fields and rules as lists.
$(BUILD)/gen/mr_rules.inc: rtl/spec/device.def rtl/spec/gen_legal.awk
	@mkdir -p $(@D)
	@awk -v out=rules -f rtl/spec/gen_legal.awk $< >$@.tmp && mv $@.tmp $@
$(BUILD)/programs/fuzz: $(PROGRAMS_SRC) $(wildcard tests/programs/*.h) $(BUILD)/gen/mr_rules.inc $(BUILD)/gen/mr_training.inc $(PROGRAMS_KERNELS) $(BUILD)/libmillrace-san.a
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -MF $@.d -O1 $(SAN) -Itests/programs -o $@ $(PROGRAMS_SRC) $(PROGRAMS_KERNELS) $(BUILD)/libmillrace-san.a $(LIBS)
$(BUILD)/programs/fuzz: | $(BUILD)/sim/tiny/libmillrace-sim-tiny-view.so $(BUILD)/sim/tinyt/libmillrace-sim-tinyt.so \
    $(BUILD)/sim/tinyt/libmillrace-sim-tinyt-view.so
unit-tests: $(BUILD)/programs/fuzz
-include $(BUILD)/programs/fuzz.d
