# SPDX-License-Identifier: Apache-2.0
# The commands of README and docs that take long (docs/testing.md, "Documentation").
.PHONY: full-docs
full-docs: all $(MILLRACE)
	@BUILD=$(BUILD) SIM_CXX="$(SIM_CXX)" MARCH="$(MARCH)" CC="$(CC)" bash tests/docs/run.sh slow
