// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weights.h"

#include <stdlib.h>

#include "checkpoint/foreign.h"

int mr_weights_open(struct mr_weights *w, bool torch, const char *path, struct mr_error *err)
{
    *w = (struct mr_weights){0};
    int rc = mr_file_map(&w->file, path, err);
    if (!rc)
        rc = mr_refuse_foreign_file(&w->file, path, err);
    if (!rc)
        rc = torch ? mr_torch_read(&w->tensors, &w->pickle, &w->file, path, err)
                   : mr_safetensors_read(&w->tensors, &w->header, &w->file, path, err);
    if (rc)
        mr_weights_close(w);
    return rc;
}

void mr_weights_close(struct mr_weights *w)
{
    free(w->tensors.at);
    json_decref(w->header);
    mr_pickle_free(&w->pickle);
    mr_file_unmap(&w->file);
    *w = (struct mr_weights){0};
}
