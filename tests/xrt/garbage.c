// SPDX-License-Identifier: Apache-2.0
// A simulator that answers nonsense, in the emulator's place. usage: garbage bytes|short|huge|quiet [AFTER]
// AFTER: so many requests are acknowledged first, which is enough for the first of a session.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/xrt/rpc.h"

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_rpc_request request = {0};
    struct mr_buf reply = {0};
    char path[200], noise[4096];
    int after = argc > 2 ? atoi(argv[2]) : 0;
    (void)snprintf(path, sizeof path, "/tmp/%s/%s", getenv("USER"), getenv("EMULATION_SOCKETID"));
    int fd = mr_rpc_connect(path, 10, &err);
    if (fd < 0 || argc < 2)
        return 1;
    for (int i = 0; mr_rpc_receive(fd, &request, &err) == 1; i++) {
        reply.size = 0;
        if (i < after) {
            if (mr_rpc_put_number(&reply, 1, 1, &err) < 0 || mr_rpc_reply(fd, &reply, &err) < 0)
                break;
            continue;
        }
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (char)(k * 2654435761U >> 13);
        if (strcmp(argv[1], "quiet") == 0)
            continue;
        if (strcmp(argv[1], "bytes") != 0) {
            memset(noise, 0, sizeof noise);
            noise[0] = 9; // a frame of 1000 bytes that do not come, or of 2^56
            noise[strcmp(argv[1], "huge") == 0 ? 8 : 2] = strcmp(argv[1], "huge") == 0 ? 1 : 4;
        }
        if (write(fd, noise, strcmp(argv[1], "bytes") == 0 ? sizeof noise : 20) < 0)
            break;
    }
    mr_buf_free(&request.payload);
    mr_buf_free(&reply);
    return 0;
}
