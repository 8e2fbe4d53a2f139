# SPDX-License-Identifier: Apache-2.0
# Read after Verilator's Vcore.mk: the model and the run-time library as two archives to link. The
# model's hot part is one translation unit, so that the compiler sees all of a cycle at once; the cold
# part is another, so that Verilator's headers are read once. RUNTIME: the run-time library, where it is
# there already.
HOT  := $(VM_CLASSES_FAST) $(VM_SUPPORT_FAST)
COLD := $(VM_CLASSES_SLOW) $(VM_SUPPORT_SLOW)
.PHONY: objects
objects: Vcore__ALL.a Vruntime.a
Vhot.cpp:
	printf '#include "%s.cpp"\n' $(HOT) >$@
Vcold.cpp:
	printf '#include "%s.cpp"\n' $(COLD) >$@
Vhot.o: Vhot.cpp $(HOT:%=%.cpp)
	$(OBJCACHE) $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(OPT_FAST) -c -o $@ $<
Vcold.o: Vcold.cpp $(COLD:%=%.cpp)
	$(OBJCACHE) $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(OPT_SLOW) -c -o $@ $<
# Not $^: Verilator's rules add prerequisites, which have the same code once more.
Vcore__ALL.a: Vhot.o Vcold.o
	rm -f $@ && $(AR) rcs $@ Vhot.o Vcold.o
Vruntime.a: $(if $(RUNTIME),$(RUNTIME),$(VK_GLOBAL_OBJS))
	rm -f $@ && $(if $(RUNTIME),cp $(RUNTIME) $@,$(AR) rcs $@ $^)
