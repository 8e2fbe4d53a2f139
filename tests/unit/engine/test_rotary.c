// SPDX-License-Identifier: Apache-2.0
// The rotary table against libm in double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "engine/rotary.h"

enum { FLOATS = 256 };

static void check_row(int pos, int dim)
{
    float row[FLOATS];
    mr_rotary_row(pos, dim, FLOATS, row);
    for (int i = 0; i < FLOATS / 2; i++) {
        double want_cos = 0, want_sin = 0;
        if (2 * i < dim) {
            // The frequency and the angle are fp32 in Hugging Face's implementation.
            float frequency = (float)pow(10000.0, -2.0 * i / dim);
            float angle = (float)((double)pos * (double)frequency);
            want_cos = cos((double)angle);
            want_sin = sin((double)angle);
        }
        // Half a unit in the last place of fp32, and a little for the double arithmetic.
        if (!(fabs((double)row[2 * i] - want_cos) <= 0x1.01p-25) ||
            !(fabs((double)row[2 * i + 1] - want_sin) <= 0x1.01p-25))
            fail_msg("position %d, rotary_dim %d, pair %d: cos %.9g, sin %.9g; expected %.9g, %.9g",
                     pos, dim, i, (double)row[2 * i], (double)row[2 * i + 1], want_cos, want_sin);
    }
}

static void agrees_with_libm_at_every_position(void **state)
{
    (void)state;
    for (int pos = 0; pos < 4096; pos++)
        check_row(pos, 64);
}

static void agrees_with_libm_for_every_dimension(void **state)
{
    (void)state;
    static const int positions[] = {0, 1, 2, 3, 100, 1023, 2047, 4095};
    for (int dim = 2; dim <= FLOATS; dim += 2)
        for (int i = 0; i < 8; i++)
            check_row(positions[i], dim);
}

static void position_zero_does_not_rotate(void **state)
{
    (void)state;
    float row[64];
    mr_rotary_row(0, 32, 64, row);
    for (int i = 0; i < 64; i++)
        assert_true(row[i] == (i < 32 && i % 2 == 0 ? 1.0F : 0.0F));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_libm_at_every_position),
        cmocka_unit_test(agrees_with_libm_for_every_dimension),
        cmocka_unit_test(position_zero_does_not_rotate),
    };
    return cmocka_run_group_tests_name("rotary", tests, NULL, NULL);
}
