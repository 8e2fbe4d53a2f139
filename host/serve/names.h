// SPDX-License-Identifier: Apache-2.0
// Who a request takes this server for. A web page of somebody else can point a name of its own at
// 127.0.0.1 and then ask there as if it were at home (DNS rebinding); its requests still carry that
// name, in Host. A server that protects itself by who can reach it refuses them.
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

// Whether this machine alone can reach the address, of IPv4 or IPv6.
bool mr_address_is_local(const struct sockaddr *address);

// What --allow-host takes: a name without port.
bool mr_name_is_valid(const char *name);

// Whether `host`, as in the header of that name, is an address in numbers, localhost, `bound` or
// one of `names`; with or without a port. Numbers are safe: nobody can point them elsewhere.
bool mr_host_is_ours(const char *host, const char *bound, const char *const *names, int n);

// What --allow-origin takes: "https://name" or "http://name:port", as browsers send it in Origin.
bool mr_origin_is_valid(const char *origin);

// The entry of `origins` that `origin` is; NULL: none, or there is no such header.
const char *mr_origin_of(const char *origin, const char *const *origins, int n);
