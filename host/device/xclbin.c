// SPDX-License-Identifier: Apache-2.0
#include "device/xclbin.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "device/xrt_emulation.h"

enum { UNITS = 128 }; // XRT's own limit

static uint32_t u32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t u64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static bool readable(char *path, size_t size, const char *name)
{
    int n = snprintf(path, size, "%s", name);
    return (size_t)n < size && access(path, R_OK) == 0;
}

int mr_xclbin_find(char *path, size_t size, const char *uri, struct mr_error *err)
{
    static const char *const built[] = {"/xrt/millrace-sim.xclbin", "/xrt/millrace-tiny.xclbin"};
    const char *name = getenv("MILLRACE_XCLBIN");
    if (name && *name)
        return readable(path, size, name)
                   ? 0
                   : mr_fail(err, MR_ERR_IO, "%.300s: cannot be read; MILLRACE_XCLBIN names it",
                             name);
    for (size_t i = 0; mr_xrt_emulated() && i < sizeof built / sizeof *built; i++)
        if (mr_program_beside(path, size, built[i]) && access(path, R_OK) == 0)
            return 0;
    return mr_fail(err, MR_ERR_DEVICE,
                   "%s: name the xclbin in MILLRACE_XCLBIN ('make xclbin PLATFORM=...' builds one "
                   "for a card, 'make xclbin-emu' for emulation)",
                   uri);
}

struct sections {
    const unsigned char *ip, *memory; // NULL without one
    uint64_t ip_bytes, memory_bytes;
};

// The sections that are looked at. False if sections are not in the file.
static bool find_sections(const struct mr_file *f, struct sections *s)
{
    const uint64_t count = u32(f->data + MR_AXLF_COUNT);
    *s = (struct sections){0};
    if (count > (f->size - MR_AXLF_SECTIONS) / MR_AXLF_SECTION_SIZE)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *header = f->data + MR_AXLF_SECTIONS + i * MR_AXLF_SECTION_SIZE;
        uint64_t offset = u64(header + MR_AXLF_SECTION_OFFSET),
                 bytes = u64(header + MR_AXLF_SECTION_BYTES);
        if (offset > f->size || bytes > f->size - offset)
            return false;
        if (u32(header) == MR_AXLF_IP_LAYOUT && bytes >= MR_AXLF_IP_ENTRIES) {
            s->ip = f->data + offset;
            s->ip_bytes = bytes;
        } else if (u32(header) == MR_AXLF_MEM && bytes >= MR_AXLF_MEM_ENTRIES) {
            s->memory = f->data + offset;
            s->memory_bytes = bytes;
        }
    }
    return true;
}

// The shim trusts the number of banks, and ends the whole process group on one that does not begin
// where a page does.
static bool banks_possible(const struct sections *s)
{
    uint64_t banks = s->memory ? u32(s->memory) : 0;
    if (s->memory && banks > (s->memory_bytes - MR_AXLF_MEM_ENTRIES) / MR_AXLF_MEM_SIZE)
        return false;
    for (uint64_t i = 0; mr_xrt_emulated() && i < banks; i++)
        if (u64(s->memory + MR_AXLF_MEM_ENTRIES + i * MR_AXLF_MEM_SIZE + MR_AXLF_MEM_BASE) % 4096)
            return false;
    return true;
}

static int count_units(const unsigned char *ip, uint64_t size, const char *kernel)
{
    enum { NAME = MR_AXLF_IP_SIZE - MR_AXLF_IP_NAME };
    bool there[UNITS] = {false};
    char prefix[NAME + 1];
    size_t length = (size_t)snprintf(prefix, sizeof prefix, "%s:%s_", kernel, kernel);
    uint64_t entries = ip ? u32(ip) : 0;
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t at = MR_AXLF_IP_ENTRIES + i * MR_AXLF_IP_SIZE;
        char name[NAME + 1] = "", end;
        unsigned number;
        if (at + MR_AXLF_IP_SIZE > size)
            break;
        memcpy(name, ip + at + MR_AXLF_IP_NAME, NAME);
        if (u32(ip + at) == MR_AXLF_IP_KERNEL && strncmp(name, prefix, length) == 0 &&
            sscanf(name + length, "%4u%c", &number, &end) == 1 && number >= 1 && number <= UNITS)
            there[number - 1] = true;
    }
    int n = 0;
    while (n < UNITS && there[n])
        n++;
    return n;
}

// XRT's shim would crash on a file that is not whole.
int mr_xclbin_units(const char *path, const char *kernel, int *units, struct mr_error *err)
{
    struct mr_file file = {0};
    struct sections s;
    int rc = mr_file_map(&file, path, err);
    if (rc < 0)
        return rc;
    *units = 0;
    if (file.size < MR_AXLF_SECTIONS || memcmp(file.data, "xclbin2", 8) != 0)
        rc = mr_fail(err, MR_ERR_FORMAT, "%.300s: not an xclbin", path);
    else if (u64(file.data + MR_AXLF_LENGTH) > file.size)
        rc = mr_fail(err, MR_ERR_FORMAT, "%.300s: cut off: %zu of %llu bytes are there", path,
                     file.size, (unsigned long long)u64(file.data + MR_AXLF_LENGTH));
    else if (!find_sections(&file, &s))
        rc = mr_fail(err, MR_ERR_FORMAT, "%.300s: its sections are not all in the file", path);
    else if (!banks_possible(&s))
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%.300s: its memory banks are not possible: build or copy it again", path);
    else
        *units = count_units(s.ip, s.ip_bytes, kernel);
    mr_file_unmap(&file);
    return rc;
}
