// SPDX-License-Identifier: Apache-2.0
// `millrace train -d pci:0` inside the virtual machine, on a device that trains: two steps have the
// bytes of model:'s, alone and beside another client. Then what breaks in the middle of a step: it
// ends in one message with weights and moments as they were, or goes on; the next try has the bytes
// of a step that nothing has befallen. tests/driver/run.sh makes /train: a model, a text, and the
// state that model: leaves after each step.
#include <sys/wait.h>

#include "mr_device.h"
#include "tests/driver/fault.h"

enum { DEVICE = 4 /* the program's status */ };
#define STATE    "/tmp/state"
#define MESSAGES "/tmp/messages"

// ---- a step -------------------------------------------------------------------------------------

static const char *device = "pci:0";

static pid_t begin(int steps)
{
    char count[8];
    snprintf(count, sizeof count, "%d", steps);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen(MESSAGES, "w", stderr) || !freopen("/dev/null", "w", stdout))
            exit(126);
        execlp("millrace", "millrace", "train", "/train/model", "--data", "/train/text", "-d",
               device, "-o", STATE, "--sequence", "32", "--batch", "2", "--heldout", "0", "--lr",
               "1e-3", "--steps", count, "-q", NULL);
        exit(127);
    }
    return pid;
}

static int status_of(pid_t pid)
{
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Lines of what it has said, which go to the log; -1: one does not name the device.
static int messages(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen(MESSAGES, "r");
    while (f && fgets(line, sizeof line, f)) {
        printf("# %s", line);
        n = n < 0 || !strstr(line, "millrace: pci:0: ") ? -1 : n + 1;
    }
    if (f)
        fclose(f);
    return n;
}

static bool learn(int steps)
{
    int status = status_of(begin(steps));
    return messages() == 0 && status == 0;
}

// The files named, or all, against those after a step.
static bool same(int step, const char *files)
{
    char command[256];
    snprintf(command, sizeof command,
             "cd /train/after%d && for f in %s; do cmp $f " STATE "/$f >&2 || exit 1; done", step,
             files);
    return system(command) == 0;
}

static bool after_step(int step)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf " STATE "; cp -r /train/after%d " STATE, step);
    return system(command) == 0;
}

// ---- what breaks --------------------------------------------------------------------------------

enum deed { NONE, TIMES_OUT, RESETS, UNBINDS, REMOVES, LEAVES };

static bool do_it(enum deed deed)
{
    switch (deed) {
    case TIMES_OUT:
        return set_parameter("timeout_ms", TIMEOUT_MS);
    case RESETS:
        return function_level_reset();
    case UNBINDS:
        return tell_driver("unbind");
    case REMOVES:
        return put_file(pci_file("remove"), "1");
    default:
        return true;
    }
}

static bool undo_it(enum deed deed)
{
    switch (deed) {
    case TIMES_OUT:
        return set_parameter("timeout_ms", PATIENT_MS);
    case UNBINDS:
        return tell_driver("bind");
    case REMOVES:
        return put_file("/sys/bus/pci/rescan", "1");
    case LEAVES:
        fault_end();
        return function_level_reset();
    default:
        return true;
    }
}

// What it leaves: all of the step; or a message, and weights and moments as they were before it, or
// behind it (the update was there before the fault).
enum outcome { GOES_ON, BEFORE, BEHIND };

// A fault, and what is done when it has struck.
static void meets(const char *name, struct fault f, enum deed deed, enum outcome outcome)
{
    bool good = after_step(1), fails = outcome != GOES_ON;
    f.ring = 1;
    fault_end();
    fault_arm(f);
    pid_t pid = begin(2);
    bool struck = until_struck(1), did = do_it(deed);
    int status = status_of(pid);
    did = undo_it(deed) && did;
    fault_end();
    ok(good && struck && did && status == (fails ? DEVICE : 0), "%s: status %d", name, status);
    ok(messages() == fails, "%s: %s", name, fails ? "one message" : "no message");
    if (!fails) {
        ok(same(2, "*"), "%s: all bytes are right", name);
        return;
    }
    ok(same((int)outcome, "header state"), "%s: weights and moments are those %s the step", name,
       outcome == BEFORE ? "before" : "behind");
    ok(learn(2) && same(2, "*"), "%s: the next try has all bytes", name);
}

// Beside a client whose runs come between those of the step, so that the engine's memories are
// erased again and again.
static void beside_another(void)
{
    bool good = after_step(1);
    pid_t step = begin(2), other;
    int status = 0, runs = 0;
    while (waitpid(step, &status, WNOHANG) == 0) {
        fflush(stdout);
        other = fork();
        if (other == 0) {
            if (!freopen("/dev/null", "w", stdout))
                exit(126);
            execlp("millrace", "millrace", "generate", "-m", "/train/model", "-d", "pci:0", "-q",
                   "-p", "And it", "-n", "20", NULL);
            exit(127);
        }
        good &= status_of(other) == 0;
        runs++;
    }
    ok(good && runs > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && same(2, "*"),
       "a step beside another client, whose program ran %d times", runs);
}

int main(void)
{
    printf("TAP version 13\n");
    set_parameter("timeout_ms", PATIENT_MS);
    ok(learn(1) && same(1, "*"), "a step: all files are those of model:");
    ok(learn(2) && same(2, "*"), "the next one");
    beside_another();
    device = "pci:0,capacity=1400K"; // of its two layers and what is behind them, two at a time
    ok(after_step(1) && learn(2) && same(2, "*"), "a step whose layers stream");
    device = "pci:0";
    // How many of its kind are before it: jobs and runs, and beats of their data. A step has some
    // 200 jobs, 16,000 beats that are read and 25,000 that are written.
    const uint32_t jobs = 40, beats = 5000, late = 9000;
    meets("no completion", (struct fault){.code = VM_FAULT_NEVER, .skip = jobs}, TIMES_OUT, BEFORE);
    meets("a completion of an unknown status",
          (struct fault){.code = VM_FAULT_WORD, .at = MR_PCIE_C_STATUS, .value = 8, .skip = jobs},
          NONE, BEFORE);
    struct fault f = {.code = VM_FAULT_REFUSE, .at = VM_AT_DESCRIPTOR, .skip = jobs};
    meets("a run's descriptor refused", f, NONE, BEFORE);
    f = (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_DATA_READ, .skip = beats};
    meets("a read of data refused", f, NONE, BEFORE);
    f.skip = late;
    meets("a read of data refused behind the update", f, NONE, BEHIND);
    f = (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_DATA_WRITE, .skip = beats};
    meets("a write of data refused", f, NONE, BEFORE);
    f = (struct fault){.code = VM_FAULT_STUCK, .at = VM_AT_DATA_READ, .skip = beats};
    meets("a reset, a copy under way", f, RESETS, GOES_ON);
    f = (struct fault){.code = VM_FAULT_STUCK, .at = VM_AT_DESCRIPTOR, .skip = jobs};
    meets("a reset, a run under way", f, RESETS, BEFORE);
    meets("the device hangs", f, TIMES_OUT, BEFORE);
    f = (struct fault){.code = VM_FAULT_LATE, .value = VM_UNTIL_RESET, .skip = jobs};
    meets("the driver is unbound", f, UNBINDS, BEFORE);
    meets("the device is removed", f, REMOVES, BEFORE);
    f = (struct fault){.code = VM_FAULT_LINK, .skip = jobs, .times = VM_TIMES_ALWAYS};
    meets("its link is lost", f, LEAVES, BEFORE);
    return done();
}
