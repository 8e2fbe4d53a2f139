# SPDX-License-Identifier: Apache-2.0
# Programs that drive `millrace serve` (tests/serve/*.sh).
SERVE_TESTS := $(BUILD)/serve/load $(BUILD)/serve/check
$(SERVE_TESTS): $(BUILD)/serve/%: tests/serve/%.c $(LIB)
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -o $@ $< $(LIB) $(LIBS)
unit-tests: $(SERVE_TESTS)
-include $(wildcard $(BUILD)/serve/*.d)

.PHONY: full-serve
# 100,000 requests; a few under ThreadSanitizer.
full-serve: $(MILLRACE) $(SERVE_TESTS)
	@MILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/serve/many.sh
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/tsan CFLAGS="-O1 -g -fsanitize=thread" $(BUILD)/tsan/millrace
	@MILLRACE=$(BUILD)/tsan/millrace BUILD=$(BUILD) bash tests/serve/threads.sh
