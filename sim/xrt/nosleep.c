// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD, in emulation only and not needed: the shim waits by sleeping whole seconds, ten
// of them when an xclbin is loaded (HwEmShim::xclExecWait), and ten at a time in a thread that
// closing a device waits for. With this a second is a millisecond.
#include <time.h>
#include <unistd.h>

unsigned sleep(unsigned seconds)
{
    (void)nanosleep(&(struct timespec){seconds / 1000, seconds % 1000 * 1000000L}, NULL);
    return 0;
}
