# SPDX-License-Identifier: Apache-2.0
# Not a part of `make test`: needs Python and the network once (tests/interop/run.sh).
INTEROP_BIN := $(addprefix $(BUILD)/interop/,helper lora training words)
# The reference of training is the tests'.
$(BUILD)/interop/lora: override EXTRA_CFLAGS += -Itests
$(INTEROP_BIN): $(BUILD)/interop/%: tests/interop/%.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -o $@ $< $(if $(filter lora,$(@F)),$(wildcard tests/reference/*.c)) $(LIB) $(LIBS)
.PHONY: test-interop
## test-interop: unpacked models and the tokenizers against transformers and tokenizers, encoders beside transformers, with random and trained weights, the Python binding, eval against lm-evaluation-harness, learning rates, configurations of the Model Zoo, training data with h5py, speed beside ggml, training beside PyTorch, LoRA beside PEFT, in a Python environment of its own
test-interop: $(MILLRACE) $(BUILD)/libmillrace.so $(BUILD)/sim/tiny/libmillrace-sim-tiny.so $(INTEROP_BIN)
	@BUILD=$(BUILD) INTEROP_PIP="$(INTEROP_PIP)" INTEROP_TESTS="$(INTEROP_TESTS)" bash tests/interop/run.sh
.PHONY: test-weights
## test-weights: an encoder with trained weights on the C model beside cpu:, WEIGHTS=directory TEXTS=file
test-weights: $(MILLRACE)
	@MILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/interop/weights.sh "$(WEIGHTS)" "$(TEXTS)"
.PHONY: test-finetune
## test-finetune: a classifier fine-tuned on model: and in PyTorch, WEIGHTS=directory, TRAIN= and HELDOUT= files of `millrace data`, SEEDS="1 2 3"; what is computed stays in FINETUNE=build/finetune
FINETUNE ?= $(BUILD)/finetune
test-finetune: $(MILLRACE)
	@PIP_OPTIONS="$(INTEROP_PIP)" tests/tools/venv.sh $(BUILD)/interop-venv tests/interop/requirements.txt $@
	@$(BUILD)/interop-venv/bin/python tests/interop/finetune.py $(BUILD) "$(WEIGHTS)" "$(TRAIN)" "$(HELDOUT)" "$(FINETUNE)" $(SEEDS)
