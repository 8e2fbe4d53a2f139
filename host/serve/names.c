// SPDX-License-Identifier: Apache-2.0
#include "serve/names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

enum { NAME_MOST = 253 };

bool mr_address_is_local(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
}

bool mr_name_is_valid(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._");
    return n > 0 && n <= NAME_MOST && name[n] == 0;
}

bool mr_origin_is_valid(const char *origin)
{
    char name[NAME_MOST + 1];
    const char *host = strncmp(origin, "https://", 8) == 0  ? origin + 8
                       : strncmp(origin, "http://", 7) == 0 ? origin + 7
                                                            : "";
    size_t size = strcspn(host, ":");
    const char *port = host + size;
    if (size == 0 || size > NAME_MOST ||
        (*port && (!port[1] || strspn(port + 1, "0123456789") != strlen(port + 1))))
        return false;
    memcpy(name, host, size);
    name[size] = 0;
    return mr_name_is_valid(name);
}

const char *mr_origin_of(const char *origin, const char *const *origins, int n)
{
    for (int i = 0; origin && i < n; i++)
        if (strcasecmp(origin, origins[i]) == 0)
            return origins[i];
    return NULL;
}

bool mr_host_is_ours(const char *host, const char *bound, const char *const *names, int n)
{
    char name[NAME_MOST + 1];
    struct in6_addr numbers;
    bool six = *host == '[';
    size_t size = six ? strcspn(++host, "]") : strcspn(host, ":");
    const char *port = host + size;
    if (size > NAME_MOST || (six && *port++ != ']') ||
        (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
        return false;
    memcpy(name, host, size);
    name[size] = 0;
    if (six)
        return inet_pton(AF_INET6, name, &numbers) == 1;
    bool ours = inet_pton(AF_INET, name, &numbers) == 1 || strcasecmp(name, "localhost") == 0 ||
                strcasecmp(name, bound) == 0;
    for (int i = 0; i < n; i++)
        ours |= strcasecmp(name, names[i]) == 0;
    return ours;
}
