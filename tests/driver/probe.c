// SPDX-License-Identifier: Apache-2.0
// Devices that the driver must not take, inside the virtual machine: the function lies while the
// driver probes. Each ends in one line that says what is wrong, without a device; and when the
// fault is over the driver takes it.
#include "mr_device.h"
#include "tests/driver/work.h"

enum {
    CAPS = MR_PCIE_CAPS,
    CAP_ENGINE = CAPS,
    CAP_QUEUES = CAPS + 0x10,
    CAP_MEMORY = CAPS + 0x20,
    CAP_COPY = CAPS + 0x30,
    CAP_SCRUB = CAPS + 0x40,
    ENGINE = MR_PCIE_ENGINE,
    NEXT = 0, // words of a capability
    OFFSET = 4,
    FIRST = 8,
    SECOND = 12,
};

static void probe(const char *name, struct fault f, const char *text)
{
    bool found, there;
    int log = log_open();
    fault_end();
    fault_arm(f);
    int64_t begun = now_ns();
    (void)tell_driver("bind"); // whose write may succeed when the probe has not
    int ms = (int)((now_ns() - begun) / 1000000);
    uint32_t struck = fault_struck();
    there = access(NODE, F_OK) == 0;
    int lines = log_lines(log, text, &found);
    ok(struck && !there && found && lines == 1, "%s: \"%s\" (%d lines, %d ms, struck %u times)",
       name, text, lines, ms, struck);
    fault_end();
    if (there)
        tell_driver("unbind");
    close(log);
}

// A register that always gives a value.
static void reads(const char *name, uint32_t at, uint32_t value, const char *text)
{
    probe(name,
          (struct fault){.code = VM_FAULT_READ, .at = at, .value = value, .times = VM_TIMES_ALWAYS},
          text);
}

static void identity(void)
{
    reads("all ones", MR_PCIE_REG_MAGIC, ~0u, "device does not answer");
    reads("wrong magic", MR_PCIE_REG_MAGIC, 0x12345678, "not a Millrace device");
    reads("later version", MR_PCIE_REG_VERSION, 2 << 16, "register interface 2.0");
    reads("no version", MR_PCIE_REG_VERSION, ~0u, "register interface 65535.65535");
    reads("writes that do not arrive", MR_PCIE_REG_SCRATCH, 0, "writes do not arrive");
    reads("busy for ever", MR_PCIE_REG_STATUS, MR_PCIE_STATUS_BUSY, "device is busy");
}

static void capabilities(void)
{
    const char *text = "bad capability list";
    reads("no capabilities", MR_PCIE_REG_CAPS, 0, text);
    reads("capabilities at no word", MR_PCIE_REG_CAPS, CAPS + 1, text);
    reads("capabilities behind the end", MR_PCIE_REG_CAPS, MR_PCIE_BAR_BYTES - 12, text);
    reads("capabilities far away", MR_PCIE_REG_CAPS, 0xFFFFFFF0, text);
    reads("capabilities in a circle", CAP_ENGINE + NEXT, CAP_ENGINE << 16 | MR_PCIE_CAP_ENGINE,
          text);
    reads("capabilities without the engine", CAP_ENGINE + NEXT, CAP_QUEUES << 16 | 99, text);
    reads("a list that ends early", CAP_QUEUES + NEXT, MR_PCIE_CAP_QUEUES, text);
    reads("engine behind the end", CAP_ENGINE + OFFSET, 0xF004, text);
    reads("engine far away", CAP_ENGINE + OFFSET, 0xFFFFFFFC, text);
    reads("engine without registers", CAP_ENGINE + FIRST, 0, text);
    reads("engine of 4 GiB", CAP_ENGINE + FIRST, ~0u, text);
    reads("no rings", CAP_QUEUES + FIRST, 0, text);
    reads("more rings than the driver knows", CAP_QUEUES + FIRST, 65, text);
    reads("rings without an end", CAP_QUEUES + FIRST, ~0u, text);
    reads("rings behind the end", CAP_QUEUES + OFFSET, MR_PCIE_BAR_BYTES - 64, text);
    reads("rings that are too short", CAP_QUEUES + SECOND, 5, text);
    reads("no channels", CAP_MEMORY + FIRST, 0, text);
    reads("more channels than the driver knows", CAP_MEMORY + FIRST, 17, text);
    reads("channels that overlap", CAP_MEMORY + SECOND, 37, text);
    reads("a shift beyond 64 bit", CAP_MEMORY + SECOND, 200, text);
    reads("copies that are too short", CAP_COPY + FIRST, 25, text);
    reads("SCRUB behind the end", CAP_SCRUB + OFFSET, MR_PCIE_BAR_BYTES, text);
    reads("SCRUB nowhere", CAP_SCRUB + OFFSET, 0, text);
}

static void engine(void)
{
    const char *apart = "the engine's memories cannot be kept apart";
    reads("no engine", ENGINE + MR_REG_MAGIC, 0, "engine and wrapper disagree");
    reads("an engine of other channels", ENGINE + MR_REG_GEOMETRY, 0x00100002,
          "engine and wrapper disagree");
    reads("an engine of no channels", ENGINE + MR_REG_GEOMETRY, 0, "engine and wrapper disagree");
    reads("an engine without rows", ENGINE + MR_REG_GEOMETRY, 1, apart);
    reads("an engine without memories", ENGINE + MR_REG_WORDS, 0, apart);
    reads("an engine of no width", ENGINE + MR_REG_ROWS, 0, apart);
    reads("an engine of odd width", ENGINE + MR_REG_ROWS, 33, apart);
    reads("an engine of the largest width", ENGINE + MR_REG_ROWS, ~0u, apart);
    probe("HEAD without completions",
          (struct fault){.code = VM_FAULT_NEVER, .times = VM_TIMES_ALWAYS}, apart);
    probe("a completion with an error",
          (struct fault){.code = VM_FAULT_WORD, .at = MR_PCIE_C_STATUS, .value = 4}, apart);
    probe("a segment list refused", (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_LIST},
          apart);
}

// The link goes at any access of the probe.
static void link_loss(void)
{
    bool good = true;
    int places = 0, taken = 0;
    for (uint32_t skip = 0; skip < 240; skip += skip < 60 ? 6 : 30) {
        bool found;
        int log = log_open();
        fault_end();
        fault_arm((struct fault){.code = VM_FAULT_LINK, .skip = skip, .times = VM_TIMES_ALWAYS});
        (void)tell_driver("bind");
        places++;
        bool there = access(NODE, F_OK) == 0;
        int lines = log_lines(log, NULL, &found);
        close(log);
        if (there) {
            taken++;
            tell_driver("unbind");
        } else if (lines != 1) {
            printf("# at access %u: %d lines\n", skip, lines);
            good = false;
        }
        fault_end();
        good &= function_level_reset() && tell_driver("bind") && access(NODE, F_OK) == 0 &&
                tell_driver("unbind");
    }
    ok(good && taken < places, "link lost at %d places of a probe: one line, and a reset heals",
       places);
}

static void stuck(void)
{
    probe("stuck", (struct fault){.code = VM_FAULT_STUCK},
          "the engine's memories cannot be kept apart");
    ok(!tell_driver("bind") || access(NODE, F_OK) != 0, "stuck: not taken without a reset");
    ok(function_level_reset(), "stuck: a reset");
}

int main(void)
{
    printf("TAP version 13\n");
    ok(*pci_slot() && tell_driver("unbind"), "without the driver");
    identity();
    capabilities();
    engine();
    stuck();
    link_loss();
    ok(tell_driver("bind") && works_again(), "after all of this the driver takes the device");
    return done();
}
