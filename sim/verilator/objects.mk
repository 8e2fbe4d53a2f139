# SPDX-License-Identifier: Apache-2.0
# Read after Verilator's Vcore.mk: the model and the run-time library as two archives to link. The
# model's hot part is one translation unit, so that the compiler sees all of a cycle at once.
HOT  := $(VM_CLASSES_FAST) $(VM_SUPPORT_FAST)
COLD := $(VM_CLASSES_SLOW) $(VM_SUPPORT_SLOW)
.PHONY: objects
objects: Vcore__ALL.a Vruntime.a
Vhot.cpp:
	printf '#include "%s.cpp"\n' $(HOT) >$@
Vhot.o: Vhot.cpp $(HOT:%=%.cpp)
	$(OBJCACHE) $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(OPT_FAST) -c -o $@ $<
# Not $^: Verilator's rules add prerequisites, which have the same code once more.
Vcore__ALL.a: Vhot.o $(COLD:%=%.o)
	rm -f $@ && $(AR) rcs $@ Vhot.o $(COLD:%=%.o)
Vruntime.a: $(VK_GLOBAL_OBJS)
	rm -f $@ && $(AR) rcs $@ $^
