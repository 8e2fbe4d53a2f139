# SPDX-License-Identifier: Apache-2.0
# The commands of README and docs that take long (docs/inside/testing.md, "Documentation").
.PHONY: full-docs
full-docs: all deps-docs docs
	@BUILD=$(BUILD) SIM_CXX="$(SIM_CXX)" MARCH="$(MARCH)" CC="$(CC)" bash tests/docs/run.sh slow

# The page of the worked program runs on sim:tiny.
$(BUILD)/unit/test_worked_program: tests/unit/fixtures.h | $(BUILD)/sim/tiny/libmillrace-sim-tiny.so

## pictures: the pictures of docs/ from the texts in docs/pictures
.PHONY: pictures
pictures:
	@for f in docs/pictures/*.txt; do awk -f docs/pictures/draw.awk $$f >$$(ls docs/*/$$(basename $$f .txt).svg) || exit 1; done
