# SPDX-License-Identifier: Apache-2.0
# Sourced after tap.sh by tests of JSON: "$work/json-check" FILE, and is_json.
is_json() { # the C library that the program itself uses; jq is not a dependency
    "$millrace" "$@" >"$work/json" 2>"$work/err" </dev/null && "$work/json-check" "$work/json"
}
cat >"$work/json-check.c" <<'C'
#include <jansson.h>
int main(int n, char **v)
{
    json_t *j = n > 1 ? json_load_file(v[1], JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_decref(j);
    return !j;
}
C
${CC:-gcc} -o "$work/json-check" "$work/json-check.c" -ljansson || exit 1
