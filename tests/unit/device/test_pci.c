// SPDX-License-Identifier: Apache-2.0
// "pci:" and drivers of other versions than the one it was built with.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "device/pci.h"
#include "mr_device.h"

static const struct millrace_info usual = {.uapi_version = MILLRACE_UAPI_VERSION,
                                           .ops_max = 32,
                                           .jobs_max = 64,
                                           .counters = MR_COUNTERS,
                                           .map_bytes_max = 64 << 20};

static void pci_takes_each_version_from_1_on(void **state)
{
    (void)state;
    struct millrace_info info = usual;
    for (uint32_t v = 1; v <= MILLRACE_UAPI_VERSION + 1; v++) {
        struct mr_error err = {0};
        info.uapi_version = v;
        assert_int_equal(mr_pci_check(&info, "pci:0", &err), 0);
    }
}

static void refused(const struct millrace_info *info)
{
    struct mr_error err = {0};
    assert_int_equal(mr_pci_check(info, "pci:7", &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "pci:7: driver and program do not fit: uapi version"));
}

static void pci_refuses_a_driver_that_lacks_something(void **state)
{
    (void)state;
    struct millrace_info info = usual;
    info.uapi_version = 0;
    refused(&info);
    info = usual;
    info.ops_max = 31;
    refused(&info);
    info = usual;
    info.jobs_max = 0;
    refused(&info);
    info = usual;
    info.counters = MR_COUNTERS + 1;
    refused(&info);
    info = usual;
    info.map_bytes_max = 4096;
    refused(&info);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pci_takes_each_version_from_1_on),
        cmocka_unit_test(pci_refuses_a_driver_that_lacks_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
