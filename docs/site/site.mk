# SPDX-License-Identifier: Apache-2.0
# The documentation as HTML with a search field: build/site, from the pages by pandoc.
SITE      := $(BUILD)/site
DEPS_DOCS := pandoc
.PHONY: docs deps-docs
## deps-docs: installs pandoc, for `make docs`
deps-docs:
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_DOCS)"
## docs: the documentation as HTML with a search field, in build/site
docs:
	@bash docs/site/build.sh $(SITE)
