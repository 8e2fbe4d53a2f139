# SPDX-License-Identifier: Apache-2.0
# Trainings beside fp32: the demo model fine-tuned, and a small GPT-J from scratch.
$(BUILD)/train/learn: tests/train/learn.c host/cli/train_data.c $(LIB)
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(LIB) $(LIBS)

## learns: does training on model: learn as in fp32? SEEDS="1 2 3" TUNE_STEPS=80 SCRATCH_STEPS=300; minutes; curves in build/train/curves.svg
.PHONY: learns
SEEDS ?= 1 2 3
TUNE_STEPS ?= 80
SCRATCH_STEPS ?= 300
learns: $(BUILD)/train/learn
	@rm -rf $(BUILD)/train/runs && mkdir -p $(BUILD)/train/runs && : >$(BUILD)/train/lines
	@for s in $(SEEDS); do for n in demo scratch; do d=$(BUILD)/train/runs/$$n-$$s; mkdir $$d || exit 1; \
	   [ $$n = demo ] && what="models/demo models/demo/heldout.txt $(TUNE_STEPS) 3e-4" || \
	     what="scratch models/demo/heldout.txt $(SCRATCH_STEPS) 4e-3"; \
	   $(BUILD)/train/learn $$n $$what $$s $$d >>$(BUILD)/train/lines || exit 1; rm -rf $$d; done; done
	@awk -F, -v svg=$(BUILD)/train/curves.svg -f tests/train/learn.awk $(BUILD)/train/lines
