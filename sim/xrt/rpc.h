// SPDX-License-Identifier: Apache-2.0
// The wire protocol between XRT's hw_emu shim (the host's side) and a simulator, as far as the
// native API uses it: frames on a UNIX socket, their payload in protobuf encoding.
// docs/board/xrt.md has the table.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum mr_rpc_op {
    MR_RPC_CLOSE = 1,
    MR_RPC_ALLOC = 4,
    MR_RPC_FREE = 5,
    MR_RPC_TO_DEVICE = 6,
    MR_RPC_FROM_DEVICE = 7,
    MR_RPC_WRITE_MEMORY = 8,
    MR_RPC_WRITE_REGISTERS = 9,
    MR_RPC_READ_MEMORY = 10,
    MR_RPC_READ_REGISTERS = 11,
    MR_RPC_TRACE = 15,
    MR_RPC_TRACE_COUNT = 16,
    MR_RPC_TIMESTAMP = 17,
    MR_RPC_BUS_STATUS = 18,
    MR_RPC_MESSAGES = 19,
    MR_RPC_ENVIRONMENT = 20,
};

#define MR_RPC_FIELDS 8 // numbers of fields that are looked at: 1..7

struct mr_rpc_field {
    uint64_t number;     // of an integer field
    const uint8_t *data; // of a field of bytes, inside the request
    size_t size;
};

struct mr_rpc_request {
    uint32_t op;
    struct mr_buf payload;
    struct mr_rpc_field field[MR_RPC_FIELDS]; // the last one of each number; zero where absent
};

// Connects to the socket `path`, for at most `seconds`. The descriptor, or a negative mr_status.
int mr_rpc_connect(const char *path, double seconds, struct mr_error *err);

// Receives one request. 1, 0 when the host has closed the connection, or a negative mr_status for
// what is no request.
int mr_rpc_receive(int fd, struct mr_rpc_request *request, struct mr_error *err);

// A reply is put together from fields in ascending order, then sent.
int mr_rpc_put_number(struct mr_buf *reply, unsigned field, uint64_t value, struct mr_error *err);
// Room for `size` bytes, not yet written, at *data.
int mr_rpc_put_bytes(struct mr_buf *reply, unsigned field, size_t size, uint8_t **data,
                     struct mr_error *err);
int mr_rpc_reply(int fd, const struct mr_buf *reply, struct mr_error *err);

// A request without payload, for the shim's own server thread.
int mr_rpc_send(int fd, uint32_t op, struct mr_error *err);
