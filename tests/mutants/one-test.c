// SPDX-License-Identifier: Apache-2.0
// Linked into a unit test by run.sh: of its tests it runs the one that ONE_TEST names.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

__attribute__((constructor)) static void take_one(void)
{
    cmocka_set_test_filter(getenv("ONE_TEST"));
}
