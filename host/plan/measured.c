// SPDX-License-Identifier: Apache-2.0
#include "plan/measured.h"

#include <math.h>
#include <string.h>

#include "common/error.h"
#include "common/json.h"

static int read_point(struct mr_plan_run *r, const json_t *point, struct mr_error *err)
{
    const struct {
        const char *key;
        double *to;
    } f[] = {{"cycles", &r->cycles},           {"weight_beats", &r->weight_beats},
             {"kv_beats", &r->kv_beats},       {"host_beats", &r->host_beats},
             {"write_beats", &r->write_beats}, {"mac_blocks", &r->mac_blocks}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        const json_t *value = json_object_get(point, f[i].key);
        double v = json_number_value(value);
        if (!json_is_number(value) || !(v >= 0 && v <= 0x1p53) || v != floor(v))
            return mr_fail(err, MR_ERR_FORMAT, "\"%s\" is no whole number from 0 to 2^53",
                           f[i].key);
        *f[i].to = v;
    }
    return 0;
}

static int check_point(const struct mr_plan_run *r, const struct mr_geometry *g,
                       struct mr_error *err)
{
    double beats = r->weight_beats + r->kv_beats + r->host_beats + r->write_beats;
    if (r->cycles == 0 || r->mac_blocks == 0 || beats == 0)
        return mr_fail(err, MR_ERR_FORMAT, "has no %s",
                       r->cycles == 0       ? "cycles"
                       : r->mac_blocks == 0 ? "MAC blocks"
                                            : "beats");
    if (r->mac_blocks > r->cycles * g->r * 4 * g->n)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%.0f MAC blocks are more than an array of %d x %d does in %.0f cycles; was "
                       "it measured on another configuration",
                       r->mac_blocks, g->r, 4 * g->n, r->cycles);
    if (beats > 2 * r->cycles * g->n)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%.0f beats are more than %d channel%s can move in %.0f cycles; was it "
                       "measured on another configuration",
                       beats, g->n, g->n == 1 ? "" : "s", r->cycles);
    return 0;
}

int mr_plan_measured_read(struct mr_plan_measured *out, int room, int *count, const char *path,
                          const struct mr_geometry *g, struct mr_error *err)
{
    json_t *o, *point;
    size_t i;
    *count = 0;
    int rc = mr_json_load(&o, path, err);
    if (rc < 0)
        return rc;
    json_array_foreach(json_object_get(o, "points"), i, point)
    {
        if (rc < 0 || !json_object_get(point, "cycles")) // of a device that counts none
            continue;
        if (*count == room) {
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: has more than %d points", path, room);
            continue;
        }
        struct mr_plan_measured *m = &out[*count];
        const char *kind = json_string_value(json_object_get(point, "kind"));
        *m = (struct mr_plan_measured){.prefill = kind && strcmp(kind, "prefill") == 0};
        rc = read_point(&m->run, point, err);
        if (rc == 0)
            rc = check_point(&m->run, g, err);
        if (rc < 0)
            (void)mr_fail_in(err, "%s: point %zu", path, i + 1);
        ++*count;
    }
    json_decref(o);
    if (rc == 0 && *count == 0)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%s: no measured points; 'millrace bench MODEL -d sim: --json' writes them",
                     path);
    return rc;
}
