// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD, in emulation only and not needed: the shim waits by sleeping whole seconds, ten
// of them when an xclbin is loaded (HwEmShim::xclExecWait). With this a process starts ten seconds
// sooner.
#include <time.h>
#include <unistd.h>

unsigned sleep(unsigned seconds)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = seconds ? 200000 : 0}, NULL);
    return 0;
}
