// SPDX-License-Identifier: Apache-2.0
// Units: how many engines a device URI stands for, the compute units of an xclbin among them, and
// several at once.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmodel/memory.h"
#include "device/open.h"
#include "device/xclbin.h"
#include "unit/files.h"
#include "unit/fixtures.h"
#include "unit/simulated.h"

static void stands_for(const char *device, int want, const char *first)
{
    struct mr_error err = {0};
    char uri[MR_DEVICE_URI];
    int units = -1;
    check(mr_device_units(device, &units, &err), &err);
    assert_int_equal(units, want);
    check(mr_device_unit(device, 0, uri, &err), &err);
    assert_string_equal(uri, first);
}

static void units_of_devices(void **state)
{
    (void)state;
    stands_for("cpu:", 1, "cpu:");
    stands_for("sim:", 1, "sim:");
    stands_for("sim:tiny,seed=3", 1, "sim:tiny,seed=3");
    stands_for("sim:units=2", 2, "sim:");
    stands_for("sim:,units=2", 2, "sim:");
    stands_for("model:tiny,units=64", 64, "model:tiny");
    stands_for("sim:tiny,units=3,stalls=5", 3, "sim:tiny,stalls=5");
    stands_for("sim:units=3,tiny", 3, "sim:tiny");
    stands_for("xrt:0,unit=7", 1, "xrt:0,unit=7");
    stands_for("other:", 1, "other:"); // opening it is the error
}

static void buffers_are_on_the_channels_that_are_there(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_device *dev;
    uint64_t addr;
    check(mr_device_open(&dev, "model:tiny", &err), &err);
    int n = mr_device_info(dev)->g.n;
    for (int channel = 0; channel < n; channel++)
        check(mr_device_alloc(dev, channel, 64, NULL, &addr, &err), &err);
    assert_refused(mr_device_alloc(dev, -1, 64, NULL, &addr, &err), MR_ERR_USAGE, &err,
                   "channel -1 of ");
    assert_refused(mr_device_alloc(dev, n, 64, NULL, &addr, &err), MR_ERR_USAGE, &err, "channel ");
    const size_t sizes[] = {0, ((size_t)1 << MR_CHANNEL_SHIFT) + 1};
    for (int i = 0; i < 2; i++)
        assert_refused(mr_device_alloc(dev, 0, sizes[i], NULL, &addr, &err), MR_ERR_USAGE, &err,
                       "on channel 0 is not possible");
    mr_device_close(dev);
}

static void refused(const char *device, const char *words)
{
    struct mr_error err = {0};
    struct mr_device *dev;
    int units;
    assert_int_equal(mr_device_units(device, &units, &err), MR_ERR_USAGE);
    if (!strstr(err.text, words))
        fail_msg("%s: %s", device, err.text);
    assert_int_equal(mr_device_open(&dev, device, &err), MR_ERR_USAGE);
    assert_null(dev);
}

static void refuses_units_out_of_range(void **state)
{
    struct mr_error err = {0};
    char uri[MR_DEVICE_URI], longest[400];
    (void)state;
    refused("sim:tiny,units=0", "from 1 to 64");
    refused("sim:tiny,units=65", "from 1 to 64");
    refused("sim:tiny,units=99999999999999999999", "from 1 to 64");
    refused("sim:tiny,units=-1", "from 1 to 64");
    refused("sim:tiny,units= 1", "from 1 to 64");
    refused("sim:tiny,units=", "from 1 to 64");
    refused("model:tiny,units=2x", "from 1 to 64");
    refused("sim:units=2,tiny,units=2", "there twice");
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "sim:", 4);
    longest[sizeof longest - 1] = 0;
    refused(longest, "too long");
    assert_int_equal(mr_device_unit("sim:tiny,units=2", 2, uri, &err), MR_ERR_USAGE);
    assert_int_equal(mr_device_unit("sim:tiny", -1, uri, &err), MR_ERR_USAGE);
    assert_int_equal(mr_device_unit("xrt:0,unit=1", 1, uri, &err), MR_ERR_USAGE);
}

// What stands behind the scheme, of the devices that have no card.
static void refuses_options_that_are_none(void **state)
{
    (void)state;
    char name[100];
    (void)snprintf(name, sizeof name, "sim:tiny,memory=%080d", 0);
    const char *const rows[][2] = {
        {"sim:tiny,", "'' is not an option, or its value is out of range"},
        {"sim:tiny,check=1", "'check' is not an option, or"},
        {"sim:tiny,seed", "'seed' is not an option, and the configuration is 'tiny' already"},
        {"sim:seed=x", "'seed' is not an option, or its value"},
        {"sim:seed=", "'seed' is not an option, or its value"},
        {"sim:,seed=x", "'seed' is not an option, or its value"},
        {"sim:seed=1x", "'seed' is not an option, or its value"},
        {"sim:other=1", "'other' is not an option, or"},
        {"sim:stalls=91", "'stalls' is not an option, or its value is out of range"},
        {"sim:memory=", "'memory' is not an option, or its value"},
        {name, "'memory' is not an option, or its value"},
        {"sim:seed=1,seed=2", "'seed' is there twice"},
        {"sim:tiny,stalls=1,seed=1,stalls=1", "'stalls' is there twice"},
        {"sim:memory=ideal,memory=ideal", "'memory' is there twice"},
        {"sim:check,check", "'check' is there twice"},
        {"sim:train,train", "'train' is there twice"},
        {"sim:view,waves", "'waves' is there twice"},
        {"sim:no-such", "sim:no-such: "},
        {"sim:a-name-that-is-longer-than-that-of-any-configuration", "is not an option, or"},
        {"model:no-such", "model:no-such: "},
        {"model:tiny,seed=1", "model:tiny,seed=1: 'seed=1' is not an option; known are train, "},
        {"model:a-name-that-is-longer-than-that-of-any-configuration", "model:a-name"},
        {"sim:tiny,capacity=", "capacity= is a number of bytes from 1 to 2^50"},
        {"sim:tiny,capacity=0", "capacity= is a number of bytes"},
        {"sim:tiny,capacity=1x", "capacity= is a number of bytes"},
        {"sim:tiny,capacity=1048577G", "capacity= is a number of bytes"},
        {"sim:tiny,capacity=1G,capacity=1G", "'capacity' is there twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_error err = {0};
        struct mr_device *dev;
        int rc = mr_device_open(&dev, rows[i][0], &err);
        if (rc != MR_ERR_USAGE || dev || !strstr(err.text, rows[i][1]))
            fail_msg("%s: %d, '%s'; expected '%s'", rows[i][0], rc, err.text, rows[i][1]);
    }
}

// What a device holds is divided among its channels, and is never nothing.
static void capacity_is_the_channels_together(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        uint64_t all;
    } rows[] = {{"model:tiny,capacity=4k", 4096},
                {"model:wide,capacity=64M", 64 << 20},
                {"model:wide,capacity=1", 1},
                {"model:,train,capacity=2k", 2048}, // of sim
                {"model:tiny,capacity=1125899906842624", UINT64_C(1) << 50}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_error err = {0};
        struct mr_device *dev;
        check(mr_device_open(&dev, rows[i].device, &err), &err);
        struct mr_device_info info = *mr_device_info(dev);
        mr_device_close(dev);
        uint64_t each = rows[i].all / (uint64_t)info.g.n;
        assert_int_equal(info.room, each > 0 ? each : 1);
        assert_true(strncmp(rows[i].device, "model:wide", 10) != 0 || info.g.n > 1);
    }
}

// ---- xclbins -----------------------------------------------------------------------------------

enum { SECTIONS = 2, IP = MR_AXLF_SECTIONS + SECTIONS * MR_AXLF_SECTION_SIZE, ENTRIES = 5 };
enum { IP_BYTES = MR_AXLF_IP_ENTRIES + ENTRIES * MR_AXLF_IP_SIZE, SIZE = IP + IP_BYTES };

// An xclbin of a section of another kind and IP_LAYOUT.
static void xclbin(uint8_t x[SIZE], const char *const names[ENTRIES])
{
    const uint64_t size = SIZE, offset = IP, bytes = IP_BYTES;
    const uint32_t sections = SECTIONS, kind = MR_AXLF_IP_LAYOUT, other = 6, count = ENTRIES,
                   kernel = MR_AXLF_IP_KERNEL;
    uint8_t *section = x + MR_AXLF_SECTIONS;
    memset(x, 0, SIZE);
    memcpy(x, "xclbin2", 8);
    memcpy(x + MR_AXLF_LENGTH, &size, sizeof size);
    memcpy(x + MR_AXLF_COUNT, &sections, sizeof sections);
    memcpy(section, &other, sizeof other);
    section += MR_AXLF_SECTION_SIZE;
    memcpy(section, &kind, sizeof kind);
    memcpy(section + MR_AXLF_SECTION_OFFSET, &offset, sizeof offset);
    memcpy(section + MR_AXLF_SECTION_BYTES, &bytes, sizeof bytes);
    memcpy(x + IP, &count, sizeof count);
    for (int i = 0; i < ENTRIES; i++) {
        uint8_t *entry = x + IP + MR_AXLF_IP_ENTRIES + i * MR_AXLF_IP_SIZE;
        memcpy(entry, &kernel, sizeof kernel);
        strncpy((char *)entry + MR_AXLF_IP_NAME, names[i], MR_AXLF_IP_SIZE - MR_AXLF_IP_NAME);
    }
}

static const char *const three[ENTRIES] = {
    "millrace_kernel:millrace_kernel_3", "other:other_1",
    "millrace_kernel:millrace_kernel_1", "millrace_kernel:millrace_kernel_2",
    "millrace_kernel:millrace_kernel_5", // no fourth
};

// The result of mr_device_units("xrt:0") with these bytes as the xclbin.
static int units_of(const void *x, size_t size, int *units, struct mr_error *err)
{
    char path[] = "/tmp/millrace-units-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, x, size), size);
    (void)close(fd);
    assert_int_equal(setenv("MILLRACE_XCLBIN", path, 1), 0);
    int rc = mr_device_units("xrt:0", units, err);
    (void)unlink(path);
    return rc;
}

static void units_of_an_xclbin(void **state)
{
    struct mr_error err = {0};
    uint8_t x[SIZE];
    char uri[MR_DEVICE_URI];
    int units;
    (void)state;
    xclbin(x, three);
    check(units_of(x, SIZE, &units, &err), &err);
    assert_int_equal(units, 3);
    check(mr_device_unit("xrt:0", 2, uri, &err), &err);
    assert_string_equal(uri, "xrt:0,unit=2");
    check(mr_device_unit("xrt:", 0, uri, &err), &err);
    assert_string_equal(uri, "xrt:unit=0");
}

static void refuses_xclbins_that_lie(void **state)
{
    struct mr_error err = {0};
    uint8_t x[SIZE];
    uint8_t *section = x + MR_AXLF_SECTIONS + MR_AXLF_SECTION_SIZE;
    int units;
    (void)state;
    xclbin(x, three);
    assert_int_equal(units_of(x, SIZE - 1, &units, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "cut off"));
    assert_int_equal(units_of(x, 300, &units, &err), MR_ERR_FORMAT);
    assert_int_equal(units_of(x, 0, &units, &err), MR_ERR_FORMAT);
    x[0] = 'X';
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_FORMAT);
    // More entries than there are: what is there counts.
    xclbin(x, three);
    memset(x + IP, 0xFF, 4);
    check(units_of(x, SIZE, &units, &err), &err);
    assert_int_equal(units, 3);
    xclbin(x, three);
    memset(section + MR_AXLF_SECTION_BYTES, 0xFF, 8);
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "sections are not all in the file"));
    xclbin(x, three);
    memset(section + MR_AXLF_SECTION_OFFSET, 0xFF, 8);
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_FORMAT);
    xclbin(x, three);
    memset(x + MR_AXLF_COUNT, 0xFF, 4);
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_FORMAT);
    xclbin(x, three);
    memset(section + MR_AXLF_SECTION_BYTES, 0, 8); // an IP_LAYOUT of nothing
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "no compute unit millrace_kernel_1"));
    // Names that are not quite those of units, or not of a kernel.
    static const char *const others[][ENTRIES] = {
        {"millrace_kernel:millrace_kernel_0", "", "", "", ""},
        {"millrace_kernel:millrace_kernel_1x", "", "", "", ""},
        {"millrace_kernel:millrace_kernel_", "", "", "", ""},
        {"millrace_kernel:millrace_kernel_9999", "", "", "", ""},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        xclbin(x, others[i]);
        assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_DEVICE);
    }
    xclbin(x, three);
    for (int i = 0; i < ENTRIES; i++)
        x[IP + MR_AXLF_IP_ENTRIES + i * MR_AXLF_IP_SIZE]++;
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_DEVICE);
    xclbin(x, three);
    section[0] = 99; // no IP_LAYOUT
    assert_int_equal(units_of(x, SIZE, &units, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "no compute unit millrace_kernel_1"));
    assert_int_equal(unsetenv("MILLRACE_XCLBIN"), 0);
    assert_int_equal(mr_device_units("xrt:0", &units, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "name the xclbin in MILLRACE_XCLBIN"));
    assert_int_equal(setenv("MILLRACE_XCLBIN", "", 1), 0);
    assert_int_equal(mr_device_units("xrt:0", &units, &err), MR_ERR_DEVICE);
    assert_int_equal(setenv("MILLRACE_XCLBIN", "no/such.xclbin", 1), 0);
    assert_refused(mr_device_units("xrt:0", &units, &err), MR_ERR_IO, &err,
                   "no/such.xclbin: cannot be read; MILLRACE_XCLBIN names it");
    char longest[5000]; // longer than any path
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(setenv("MILLRACE_XCLBIN", longest, 1), 0);
    assert_refused(mr_device_units("xrt:0", &units, &err), MR_ERR_IO, &err,
                   "x: cannot be read; MILLRACE_XCLBIN names it");
    assert_int_equal(unsetenv("MILLRACE_XCLBIN"), 0);
}

// ---- several at once ---------------------------------------------------------------------------

enum { THREADS = 3 };

struct on_unit {
    const struct fixture *f;
    struct mr_device *dev;
    struct mr_backend *b;
    struct ran got;
};

static void *run_unit(void *arg)
{
    struct on_unit *u = arg;
    hash_run(u->f, u->b, ALONE, &u->got);
    return NULL;
}

static void units_at_once_equal_one(void **state)
{
    static const char device[] = "sim:tiny,units=3";
    struct mr_error err = {0};
    struct fixture f;
    struct ran want;
    struct on_unit u[THREADS];
    pthread_t thread[THREADS];
    int units;
    (void)state;
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    struct run_options o = {.device = "sim:tiny", .grouping = ALONE};
    assert_int_equal(simulate(&f, &o, &want), 0);
    check(mr_device_units(device, &units, &err), &err);
    assert_int_equal(units, THREADS);
    for (int i = 0; i < units; i++) {
        struct mr_engine_options opt = {.max_seqs = f.n_seq};
        char uri[MR_DEVICE_URI];
        u[i] = (struct on_unit){.f = &f};
        check(mr_device_unit(device, i, uri, &err), &err);
        check(mr_device_open(&u[i].dev, uri, &err), &err);
        check(mr_engine_open(&u[i].b, &f.packed, u[i].dev, &opt, &err), &err);
    }
    for (int i = 0; i < units; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_unit, &u[i]), 0);
    for (int i = 0; i < units; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < units; i++) {
        struct mr_backend_stats s;
        mr_backend_stats(u[i].b, &s);
        assert_true(u[i].got.logits == want.logits && u[i].got.kv == want.kv);
        assert_true(s.counter[MR_CNT_CYCLES] == want.stats.counter[MR_CNT_CYCLES]);
        mr_backend_close(u[i].b);
        mr_device_close(u[i].dev);
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_of_devices),
        cmocka_unit_test(buffers_are_on_the_channels_that_are_there),
        cmocka_unit_test(refuses_units_out_of_range),
        cmocka_unit_test(refuses_options_that_are_none),
        cmocka_unit_test(capacity_is_the_channels_together),
        cmocka_unit_test(units_of_an_xclbin),
        cmocka_unit_test(refuses_xclbins_that_lie),
        cmocka_unit_test(units_at_once_equal_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
