// SPDX-License-Identifier: Apache-2.0
#include "sim/xrt/rpc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// Frames. A request's is a message of two fixed-width fields, {size = 1 (64 bit), op = 2 (32 bit)},
// a reply's of the first alone.
enum { FIXED64_1 = 0x09, FIXED32_2 = 0x15, REQUEST_FRAME = 14, REPLY_FRAME = 9 };
enum wire { VARINT, FIXED64, BYTES, FIXED32 = 5 };

// More than the shim's largest packet (8 MiB unless it is told otherwise).
#define PAYLOAD_LIMIT ((uint64_t)256 << 20)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int mr_rpc_connect(const char *path, double seconds, struct mr_error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        return mr_fail(err, MR_ERR_IO, "%s: too long for the name of a socket", path);
    strcpy(name.sun_path, path);
    for (double start = now();;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return mr_fail(err, MR_ERR_IO, "cannot make a socket: %s", strerror(errno));
        if (connect(fd, (const struct sockaddr *)&name, sizeof name) == 0)
            return fd;
        int why = errno;
        close(fd);
        if (now() - start > seconds)
            return mr_fail(err, MR_ERR_IO, "%s: nobody listens: %s", path, strerror(why));
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

// 1 when all of it was read, 0 when the connection ended.
static int receive(int fd, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        done += (size_t)n;
    }
    return 1;
}

static int transmit(int fd, struct iovec *part, int parts, struct mr_error *err)
{
    while (parts > 0) {
        ssize_t n = writev(fd, part, parts);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mr_fail(err, MR_ERR_IO, "cannot answer the host: %s", strerror(errno));
        for (; parts > 0 && (size_t)n >= part->iov_len; parts--, part++)
            n -= (ssize_t)part->iov_len;
        if (parts > 0) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
        }
    }
    return 0;
}

// ---- protobuf -----------------------------------------------------------------------------------

struct cursor {
    const uint8_t *at, *end;
};

static bool get_varint(struct cursor *c, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; c->at < c->end && shift < 64; shift += 7) {
        uint8_t byte = *c->at++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool get_fixed(struct cursor *c, unsigned bytes, uint64_t *value)
{
    if ((size_t)(c->end - c->at) < bytes)
        return false;
    *value = 0;
    memcpy(value, c->at, bytes); // both sides are on this machine, which is little endian
    c->at += bytes;
    return true;
}

static bool get_bytes(struct cursor *c, struct mr_rpc_field *f)
{
    uint64_t size;
    if (!get_varint(c, &size) || size > (size_t)(c->end - c->at))
        return false;
    f->data = c->at;
    f->size = (size_t)size;
    c->at += size;
    return true;
}

static bool get_field(struct cursor *c, struct mr_rpc_field field[MR_RPC_FIELDS])
{
    uint64_t tag;
    struct mr_rpc_field f = {0};
    bool good = get_varint(c, &tag) && tag >> 3 != 0;
    switch (good ? tag & 7 : 7) {
    case VARINT:
        good = get_varint(c, &f.number);
        break;
    case FIXED64:
        good = get_fixed(c, 8, &f.number);
        break;
    case FIXED32:
        good = get_fixed(c, 4, &f.number);
        break;
    case BYTES:
        good = get_bytes(c, &f);
        break;
    default:
        good = false;
    }
    if (good && tag >> 3 < MR_RPC_FIELDS)
        field[tag >> 3] = f;
    return good;
}

static int put_varint(struct mr_buf *reply, uint64_t value, struct mr_error *err)
{
    uint8_t text[10];
    size_t n = 0;
    for (; value > 0x7F; value >>= 7)
        text[n++] = (uint8_t)(value | 0x80);
    text[n++] = (uint8_t)value;
    return mr_buf_append(reply, text, n, err);
}

int mr_rpc_put_number(struct mr_buf *reply, unsigned field, uint64_t value, struct mr_error *err)
{
    int rc = put_varint(reply, field << 3 | VARINT, err);
    return rc == 0 ? put_varint(reply, value, err) : rc;
}

int mr_rpc_put_bytes(struct mr_buf *reply, unsigned field, size_t size, uint8_t **data,
                     struct mr_error *err)
{
    int rc = put_varint(reply, field << 3 | BYTES, err);
    if (rc == 0)
        rc = put_varint(reply, size, err);
    if (rc == 0)
        rc = mr_buf_reserve(reply, size, err);
    if (rc < 0)
        return rc;
    *data = (uint8_t *)reply->data + reply->size;
    reply->size += size;
    return 0;
}

// ---- requests and replies -----------------------------------------------------------------------

int mr_rpc_receive(int fd, struct mr_rpc_request *request, struct mr_error *err)
{
    uint8_t frame[REQUEST_FRAME];
    uint64_t size;
    if (!receive(fd, frame, sizeof frame))
        return 0;
    memcpy(&size, frame + 1, sizeof size);
    memcpy(&request->op, frame + 10, sizeof request->op);
    if (frame[0] != FIXED64_1 || frame[9] != FIXED32_2 || size > PAYLOAD_LIMIT)
        return mr_fail(err, MR_ERR_FORMAT, "what the host sent is no request of hw_emu");
    request->payload.size = 0;
    int rc = mr_buf_reserve(&request->payload, (size_t)size, err);
    if (rc < 0)
        return rc;
    if (size && !receive(fd, request->payload.data, (size_t)size))
        return 0;
    request->payload.size = (size_t)size;
    memset(request->field, 0, sizeof request->field);
    if (size == 0)
        return 1;
    struct cursor c = {(const uint8_t *)request->payload.data,
                       (const uint8_t *)request->payload.data + size};
    while (c.at < c.end)
        if (!get_field(&c, request->field))
            return mr_fail(err, MR_ERR_FORMAT,
                           "request %" PRIu32 " of %" PRIu64 " bytes is malformed", request->op,
                           size);
    return 1;
}

int mr_rpc_reply(int fd, const struct mr_buf *reply, struct mr_error *err)
{
    uint8_t frame[REPLY_FRAME] = {FIXED64_1};
    uint64_t size = reply->size;
    memcpy(frame + 1, &size, sizeof size);
    struct iovec part[2] = {{frame, sizeof frame}, {reply->data, reply->size}};
    return transmit(fd, part, reply->size ? 2 : 1, err);
}

int mr_rpc_send(int fd, uint32_t op, struct mr_error *err)
{
    uint8_t frame[REQUEST_FRAME] = {FIXED64_1};
    frame[9] = FIXED32_2;
    memcpy(frame + 10, &op, sizeof op);
    struct iovec part = {frame, sizeof frame};
    return transmit(fd, &part, 1, err);
}
