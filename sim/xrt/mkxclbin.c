// SPDX-License-Identifier: Apache-2.0
// Writes an .xclbin for hardware emulation on the structures of XRT's xclbin.h (libxrt-dev): what
// the kernels are (XML of gen_kernel.awk), their compute units, memory banks and which argument
// lies in which bank, and the simulator as a zip file. No vendor tool takes part; Debian's
// xclbinutil is a script around a program that Debian does not ship.
//
// usage: mkxclbin OUT METADATA.xml PAYLOAD.zip CHANNELS UNITS [BANK_KIB [BANKS]]
//   BANKS  a channel's memory is so many banks (1 or 4); of 4, each page of weights has its own, as
//          on a card with HBM
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xclbin.h>

#include "mr_device.h"
#include "sim/xrt/card.h"

enum { SECTIONS = 5, ALIGN = 8 };

struct section {
    enum axlf_section_kind kind;
    void *data;
    size_t size;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "mkxclbin: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        die("memory", strerror(errno));
    return p;
}

static struct section from_file(enum axlf_section_kind kind, const char *path)
{
    struct section s = {.kind = kind};
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        die(path, strerror(errno));
    long size = ftell(f);
    if (size <= 0 || fseek(f, 0, SEEK_SET) != 0)
        die(path, size == 0 ? "empty" : strerror(errno));
    s.size = (size_t)size;
    s.data = allocate(s.size);
    if (fread(s.data, 1, s.size, f) != s.size || fclose(f) != 0)
        die(path, "cannot be read");
    return s;
}

// Banks from (u * channels + c) * each on: channel c of unit u.
static struct section memory(unsigned channels, unsigned units, uint64_t kib, unsigned each)
{
    unsigned n = channels * units * each;
    size_t size = offsetof(struct mem_topology, m_mem_data) + n * sizeof(struct mem_data);
    struct mem_topology *m = allocate(size + sizeof *m);
    m->m_count = (int32_t)n;
    for (unsigned i = 0; i < n; i++) {
        struct mem_data *bank = &m->m_mem_data[i];
        bank->m_type = MEM_DDR4;
        bank->m_used = 1;
        bank->m_size = kib / each;
        bank->m_base_address =
            MR_CARD_BANK(i / each % channels, i / each / channels) + i % each * (kib / each * 1024);
        (void)snprintf((char *)bank->m_tag, sizeof bank->m_tag, "bank%u", i);
    }
    return (struct section){MEM_TOPOLOGY, m, size};
}

// Engines, behind them as many updates if there are any.
static struct section compute_units(unsigned units, bool updates)
{
    unsigned n = updates ? 2 * units : units;
    size_t size = offsetof(struct ip_layout, m_ip_data) + n * sizeof(struct ip_data);
    struct ip_layout *ip = allocate(size + sizeof *ip);
    ip->m_count = (int32_t)n;
    for (unsigned i = 0; i < n; i++) {
        struct ip_data *cu = &ip->m_ip_data[i];
        unsigned u = i % units;
        const char *name = i < units ? "millrace_kernel" : "millrace_update";
        cu->m_type = IP_KERNEL;
        cu->properties = IP_INT_ENABLE_MASK | AP_CTRL_HS << IP_CONTROL_SHIFT;
        cu->m_base_address = i < units ? MR_CARD_UNIT(u) : MR_CARD_UPDATE(u);
        (void)snprintf((char *)cu->m_name, sizeof cu->m_name, "%s:%s_%u", name, name, u + 1);
    }
    return (struct section){IP_LAYOUT, ip, size};
}

// Of the arguments of a channel, `weights` is the first of as many as it has pages.
static unsigned bank_of(unsigned arg, unsigned each)
{
    return each > 1 && arg >= MR_KARG_WEIGHTS_ID ? arg - MR_KARG_WEIGHTS_ID : 0;
}

// All that an update has lies in its first channel's first bank; it reaches the others from there.
static struct section connections(unsigned channels, unsigned units, unsigned each, bool updates)
{
    static const unsigned host[] = {MR_KARG_PROGRAM_ID, MR_KARG_ROWS_ID, MR_KARG_RESULTS_ID};
    enum { HOST_ARGS = sizeof host / sizeof *host, UPDATE_ARGS = 7 };
    unsigned n = units * (HOST_ARGS + channels * MR_KARGS_PER_CHANNEL + UPDATE_ARGS * updates);
    unsigned k = 0;
    size_t size = offsetof(struct connectivity, m_connection) + n * sizeof(struct connection);
    struct connectivity *c = allocate(size + sizeof *c);
    c->m_count = (int32_t)n;
    for (unsigned u = 0; u < units; u++) {
        for (unsigned i = 0; i < HOST_ARGS; i++)
            c->m_connection[k++] =
                (struct connection){(int32_t)host[i], (int32_t)u, (int32_t)(u * channels * each)};
        for (unsigned i = 0; i < channels * MR_KARGS_PER_CHANNEL; i++)
            c->m_connection[k++] =
                (struct connection){(int32_t)(MR_KARG_CHANNEL_ID + i), (int32_t)u,
                                    (int32_t)((u * channels + i / MR_KARGS_PER_CHANNEL) * each +
                                              bank_of(i % MR_KARGS_PER_CHANNEL, each))};
        for (unsigned i = 0; i < UPDATE_ARGS * updates; i++)
            c->m_connection[k++] = (struct connection){(int32_t)i, (int32_t)(units + u),
                                                       (int32_t)(u * channels * each)};
    }
    return (struct section){CONNECTIVITY, c, size};
}

static size_t aligned(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

// XRT tells xclbins apart by their UUID: here a hash of the contents (FNV-1a, twice).
static void identify(struct axlf *x, const struct section *s, unsigned n)
{
    uint64_t h[2] = {0xCBF29CE484222325u, 0x9E3779B97F4A7C15u};
    for (unsigned i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].size; k++)
            for (unsigned j = 0; j < 2; j++)
                h[j] = (h[j] ^ ((const uint8_t *)s[i].data)[k] ^ j) * 0x100000001B3u;
    memcpy(x->m_header.uuid, h, sizeof h);
    x->m_uniqueId = h[0];
}

static void write_file(const char *path, const struct section *s, unsigned n)
{
    size_t head =
        aligned(offsetof(struct axlf, m_sections) + n * sizeof(struct axlf_section_header));
    struct axlf *x = allocate(head + sizeof *x);
    size_t at = head;
    memcpy(x->m_magic, "xclbin2", 8);
    x->m_signature_length = -1; // not signed
    memset(x->reserved, 0xFF, sizeof x->reserved);
    x->m_header.m_versionMajor = 2;
    x->m_header.m_versionMinor = 13;
    x->m_header.m_mode = XCLBIN_HW_EMU;
    x->m_header.m_numSections = n;
    (void)snprintf((char *)x->m_header.m_platformVBNV, sizeof x->m_header.m_platformVBNV,
                   "millrace_emulation_1_0");
    identify(x, s, n);
    for (unsigned i = 0; i < n; i++) {
        x->m_sections[i].m_sectionKind = (uint32_t)s[i].kind;
        x->m_sections[i].m_sectionOffset = at;
        x->m_sections[i].m_sectionSize = s[i].size;
        at += aligned(s[i].size);
    }
    x->m_header.m_length = at;

    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(x, 1, head, f) == head;
    for (unsigned i = 0; good && i < n; i++) {
        static const char zeros[ALIGN];
        size_t pad = aligned(s[i].size) - s[i].size;
        good = fwrite(s[i].data, 1, s[i].size, f) == s[i].size && fwrite(zeros, 1, pad, f) == pad;
    }
    if (!good || fclose(f) != 0)
        die(path, strerror(errno));
    free(x);
}

static unsigned long number(const char *text, unsigned long low, unsigned long high)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (end == text || *end || v < low || v > high)
        die(text, "not a number, or out of range");
    return v;
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 8) {
        fprintf(stderr, "usage: mkxclbin OUT METADATA.xml PAYLOAD.zip CHANNELS UNITS [BANK_KIB "
                        "[BANKS]]\n");
        return 2;
    }
    unsigned channels = (unsigned)number(argv[4], 1, 16);
    unsigned units = (unsigned)number(argv[5], 1, MR_CARD_UNITS);
    unsigned long most = (unsigned long)1 << (MR_CARD_BANK_LOG2 - 10);
    unsigned long kib = argc >= 7 ? number(argv[6], 4, most) : most;
    unsigned each = argc == 8 ? (unsigned)number(argv[7], 1, MR_WEIGHT_PAGES) : 1;
    if (each != 1 && each != MR_WEIGHT_PAGES)
        die(argv[7], "1 or 4 banks a channel");
    struct section metadata = from_file(EMBEDDED_METADATA, argv[2]);
    static const char update[] = "name=\"millrace_update\"";
    bool updates = memmem(metadata.data, metadata.size, update, sizeof update - 1) != NULL;
    struct section s[SECTIONS] = {
        metadata,
        memory(channels, units, kib, each),
        compute_units(units, updates),
        connections(channels, units, each, updates),
        from_file(BITSTREAM, argv[3]),
    };
    write_file(argv[1], s, SECTIONS);
    for (unsigned i = 0; i < SECTIONS; i++)
        free(s[i].data);
    return 0;
}
