// SPDX-License-Identifier: Apache-2.0
// The signals of an FST file, a line each as GTKWave's save files name them: "TOP.a.b[3:0]". Built
// with the reader that Verilator brings (include/gtkwave).
#include <stdio.h>
#include <string.h>

#include "fstapi.h"

int main(int n, char **v)
{
    void *f = n == 2 ? fstReaderOpen(v[1]) : NULL;
    struct fstHier *h;
    if (!f)
        return fprintf(stderr, "usage: fst-names FILE.fst\n"), 1;
    fstReaderIterateHierRewind(f);
    while ((h = fstReaderIterateHier(f))) {
        if (h->htyp == FST_HT_SCOPE) {
            fstReaderPushScope(f, h->u.scope.name, NULL);
        } else if (h->htyp == FST_HT_UPSCOPE) {
            fstReaderPopScope(f);
        } else if (h->htyp == FST_HT_VAR) {
            // "name [3:0]": without the space.
            const char *scope = fstReaderGetCurrentFlatScope(f),
                       *space = strchr(h->u.var.name, ' ');
            int name = space ? (int)(space - h->u.var.name) : (int)strlen(h->u.var.name);
            printf("%s.%.*s%s\n", scope, name, h->u.var.name, space ? space + 1 : "");
        }
    }
    fstReaderClose(f);
    return 0;
}
