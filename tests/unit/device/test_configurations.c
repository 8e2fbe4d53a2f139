// SPDX-License-Identifier: Apache-2.0
// The configurations of rtl/spec/configs.def: which one a device has.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/configs.h"

// Also those with TRAIN, which cards have: each is found by what its engine says of itself.
static void a_geometry_has_one_configuration(void **state)
{
    const char *name;
    int trains = 0;
    (void)state;
    for (int i = 0; (name = mr_config_name(i)); i++) {
        struct mr_geometry g = mr_config_named(name)->g;
        const struct mr_config_entry *c = mr_config_of(&g);
        assert_non_null(c);
        assert_string_equal(c->name, name);
        trains += g.train;
    }
    assert_in_range(trains, 1, 100);
}

static void another_geometry_has_none(void **state)
{
    struct mr_geometry g = mr_config_named("tinyt")->g;
    (void)state;
    g.train = 0;
    assert_null(mr_config_of(&g));
}

static void lists_of_configurations_end(void **state)
{
    (void)state;
    assert_null(mr_config_at(-1));
    assert_null(mr_config_at(1000));
    assert_non_null(mr_config_at(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_geometry_has_one_configuration),
        cmocka_unit_test(another_geometry_has_none),
        cmocka_unit_test(lists_of_configurations_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
