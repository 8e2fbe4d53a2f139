# SPDX-License-Identifier: Apache-2.0
# The page of `millrace serve` in a real browser. Not a part of `make test`, which holds the page's
# bytes and headers to their promises without one (tests/serve/serve.sh). The search field of
# `make docs` too, whose index tests/docs/search.sh looks at.
PAGE_DEPS := chromium chromium-driver python3 pandoc

.PHONY: deps-page test-page
deps-page:
	@$(MAKE) --no-print-directory deps DEPS="$(PAGE_DEPS)"

## test-page: the page of 'millrace serve' and the search of the docs in headless Chromium, which it installs; pictures in build/page
test-page: deps-page $(MILLRACE) $(BUILD)/sim/tiny/libmillrace-sim-tiny.so docs
	@python3 tests/page/page.py $(BUILD)
