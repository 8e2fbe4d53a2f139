// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/names.h"

// ---- paths ----

static const struct route {
    const char *url;
    enum mr_serve_path path;
    bool post; // else GET and HEAD
    bool key;  // asked for, if there is one
} routes[] = {
    {"/", MR_PATH_PAGE, false, false}, // what it shows comes from the other paths
    {"/v1/completions", MR_PATH_COMPLETIONS, true, true},
    {"/v1/chat/completions", MR_PATH_CHAT, true, true},
    {"/v1/embeddings", MR_PATH_EMBEDDINGS, true, true},
    {"/v1/tokenize", MR_PATH_TOKENIZE, true, true},
    {"/tokenize", MR_PATH_TOKENIZE, true, true},
    {"/v1/detokenize", MR_PATH_DETOKENIZE, true, true},
    {"/detokenize", MR_PATH_DETOKENIZE, true, true},
    {"/v1/models", MR_PATH_MODELS, false, true},
    {"/health", MR_PATH_HEALTH, false, false},
    {"/metrics", MR_PATH_METRICS, false, false},
};

enum mr_serve_path mr_request_path(const char *url)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(url, routes[i].url) == 0)
            return routes[i].path;
    return strncmp(url, "/v1/models/", 11) == 0 ? MR_PATH_MODELS : MR_PATH_OTHER;
}

static const struct route *route_of(enum mr_serve_path path)
{
    static const struct route none = {"", MR_PATH_OTHER, false, false};
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (routes[i].path == path)
            return &routes[i];
    return &none;
}

bool mr_request_is_post(enum mr_serve_path path)
{
    return route_of(path)->post;
}

// ---- whose it is, and where the body ends ----

struct framing {
    const struct mr_serve *serve;
    int lengths;  // Content-Length fields
    bool chunked; // a Transfer-Encoding field
    bool far;     // more than is even read
    bool astray;  // a Host field with another's name
};

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct framing *f = cls;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        f->lengths++;
        f->far |= value && strtoull(value, NULL, 10) / 8 > f->serve->opt.max_body;
    }
    if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0 && f->serve->asks_name) {
        const struct mr_serve_options *o = &f->serve->opt;
        f->astray |= !mr_host_is_ours(value ? value : "", o->host, o->names, o->n_names);
    }
    f->chunked |= strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    return MHD_YES;
}

// Where two headers may disagree on where the body ends, a proxy in front might take another part
// of it for the next request (RFC 9112, 6.3), so they are refused even if they agree. libmicrohttpd
// takes the first of several, and itself refuses a length that is no number.
int mr_request_frame(const struct mr_serve *s, struct MHD_Connection *connection,
                     const char **message)
{
    struct framing f = {.serve = s};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, see_header, &f);
    if (f.astray) { // browsers always send it; where it is missing no browser asks
        *message = "this server does not answer to the name in Host; start it with --allow-host "
                   "NAME for each name that it is to have";
        return 403;
    }
    if (f.lengths > 1 || (f.lengths > 0 && f.chunked)) {
        *message = "the length of the body is given more than once; give one Content-Length, or "
                   "Transfer-Encoding";
        return 400;
    }
    *message = s->too_large;
    return f.far ? 413 : 0;
}

// ---- what it says of itself ----

static const char *header(const struct exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

// Takes the same time for every wrong key of a length.
static bool key_fits(const struct exchange *x)
{
    const char *key = x->serve->opt.api_key, *given = header(x, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!key)
        return true;
    if (!given || strncasecmp(given, "Bearer ", 7) != 0 || strlen(given + 7) != strlen(key))
        return false;
    unsigned char differs = 0;
    for (size_t i = 0; key[i]; i++)
        differs |= (unsigned char)(key[i] ^ given[7 + i]);
    return differs == 0;
}

// application/json, with or without parameters.
static bool is_json(const char *type)
{
    return type && strncasecmp(type, "application/json", 16) == 0 && strchr("; \t", type[16]);
}

const char *mr_request_origin(const struct exchange *x)
{
    const struct mr_serve_options *o = &x->serve->opt;
    return mr_origin_of(o->n_origins > 0 ? header(x, MHD_HTTP_HEADER_ORIGIN) : NULL, o->origins,
                        o->n_origins);
}

bool mr_request_is_preflight(const struct exchange *x, const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0 && x->path != MR_PATH_OTHER &&
           mr_request_origin(x) && header(x, "Access-Control-Request-Method");
}

int mr_request_screen(const struct exchange *x, const char *method, const char **message)
{
    bool post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, "HEAD") == 0;
    const char *type = header(x, MHD_HTTP_HEADER_CONTENT_TYPE);
    if (x->path == MR_PATH_OTHER) {
        *message = "there is nothing here; see /, /v1/completions, /v1/chat/completions, "
                   "/v1/embeddings, /v1/tokenize, /v1/detokenize and /v1/models";
        return 404;
    }
    if (mr_request_is_post(x->path) ? !post : !get) {
        *message = "this path does not have that method";
        return 405;
    }
    if (route_of(x->path)->key && !key_fits(x)) {
        *message = "the API key is missing or wrong";
        return 401;
    }
    // Also what keeps web pages from sending requests here: browsers ask first for this type.
    if (post && !is_json(type)) {
        *message = "the body must be JSON, with Content-Type: application/json";
        return 415;
    }
    if (x->too_large) {
        *message = x->serve->too_large;
        return 413;
    }
    *message = NULL;
    return 0;
}
