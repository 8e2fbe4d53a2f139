# SPDX-License-Identifier: Apache-2.0
# Read after Verilator's Vcore.mk: the model and the run-time library as two archives to link.
.PHONY: objects
objects: Vcore__ALL.a Vruntime.a
Vruntime.a: $(VK_GLOBAL_OBJS)
	rm -f $@ && $(AR) rcs $@ $^
