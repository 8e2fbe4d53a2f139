// SPDX-License-Identifier: Apache-2.0
// The kernel `millrace_pack` (hls/) as C++: halves become fp32 as the host reads them, all of them;
// W of whole checkpoints of both architectures and every type, dealt to N channels, is the store's,
// which has the bytes of `millrace pack --no-smoothing`.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "cmodel/num.h"
#include "hls/pack_jobs.h"
#include "hls_streams.h"
#include "memory_store.h"

enum { HALVES = 65536, RUN = 512 };

// The tensors as the kernel's port has them, `bytes` of zeros behind.
static uint8_t *on_card(const struct mr_pack_jobs *jobs)
{
    uint8_t *to = allocate(1, jobs->tensor_bytes);
    for (size_t i = 0; i < jobs->copies; i++)
        memcpy(to + jobs->copy[i].to, jobs->copy[i].from, jobs->copy[i].bytes);
    return to;
}

// ---- elements -----------------------------------------------------------------------------------

// All 65,536, loaded as a vector from every place of a beat on, and written as they are.
static void halves_are_read_as_the_host_reads_them(void **state)
{
    (void)state;
    static uint16_t half[HALVES + 32];
    static float out[HALVES];
    static const enum mr_dtype dtypes[] = {MR_DTYPE_BF16, MR_DTYPE_F16};
    for (uint32_t t = 0; t < 2; t++)
        for (uint64_t skip = 0; skip < 32; skip += 1 + 10 * t) {
            struct mr_pack_job jobs[2 * HALVES / RUN];
            uint32_t found, infinite = 0;
            float want;
            for (uint32_t i = 0; i < HALVES; i++)
                half[skip + i] = (uint16_t)i;
            for (uint32_t i = 0; i < HALVES / RUN; i++) {
                jobs[2 * i] = (struct mr_pack_job){.kind = MR_PACK_LOAD,
                                                   .type = MR_PACK_BF16 + t,
                                                   .runs = 1,
                                                   .length = RUN,
                                                   .from = 2 * (skip + (uint64_t)RUN * i)};
                jobs[2 * i + 1] = (struct mr_pack_job){
                    .kind = MR_PACK_VECTOR, .inputs = RUN, .first = (uint64_t)RUN * i};
                jobs[2 * i + 1].to.piece = 4;
            }
            millrace_pack(jobs, (const void *)half, NULL, (void *)out, &found, 2 * HALVES / RUN, 1,
                          0);
            for (uint32_t i = 0; i < HALVES; i++) {
                const struct mr_tensor one = {
                    "half", dtypes[t], 1, {1}, 1, (const void *)&half[skip + i], 2, false, {0}};
                assert_int_equal(mr_tensor_read_f32(&one, 0, 1, &want), 0);
                infinite += isfinite(want) ? 0 : 1;
                if (mr_bits(out[i]) != mr_bits(want) && !isnan(want))
                    fail_msg("%s %04x is %08x, expected %08x", mr_dtype_name(dtypes[t]), i,
                             mr_bits(out[i]), mr_bits(want));
                assert_int_equal(isnan(out[i]), isnan(want));
            }
            assert_int_equal(found, infinite);
        }
}

// ---- checkpoints --------------------------------------------------------------------------------

static void same_stream(const struct mr_checkpoint *checkpoint, const struct mr_store *s,
                        int channels)
{
    struct mr_error err = {0};
    struct mr_pack_jobs jobs;
    uint32_t found = 1;
    check(mr_pack_jobs_make(&jobs, checkpoint, channels, &err), &err);
    uint64_t apart = jobs.beats + 3;
    uint8_t *tensors = on_card(&jobs), *w = allocate((size_t)channels, apart * MR_BEAT);
    void *want = dealt(s, false, channels, apart);
    millrace_pack(jobs.job, (const void *)tensors, (void *)w, (void *)w, &found,
                  (uint32_t)jobs.count, (uint32_t)channels, apart);
    assert_int_equal(found, 0);
    compare(w, want, apart * (uint64_t)channels * MR_BEAT, "W", channels);
    free(want);
    free(w);
    free(tensors);
    mr_pack_jobs_free(&jobs);
}

static void stream_of(const char *path)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *v;
    check(mr_checkpoint_open(&checkpoint, path, &err), &err);
    struct mr_store *s = memory_store(checkpoint, &v);
    for (int channels = 1; channels <= 16; channels *= 4)
        same_stream(checkpoint, s, channels);
    mr_store_close(s);
    mr_checkpoint_close(checkpoint);
}

static void streams_of_fixtures_are_the_stores(void **state)
{
    (void)state;
    static const char *const paths[] = {"gptj/bf16-d32-r6",
                                        "gptj/fp16-d48-r16-buffers",
                                        "gptj/fp32-d16-r2",
                                        "gptj/mixed-d96-r16",
                                        "gptj/sharded-d16-r16",
                                        "gpt2/bf16-d24",
                                        "gpt2/fp16-d68-scaled-by-layer",
                                        "gpt2/fp32-d16-bare-buffers"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/fixtures/%s", paths[i]);
        stream_of(path);
    }
}

// More than a patch either way, heads that are padded, and rests.
static void streams_of_several_patches_are_the_stores(void **state)
{
    (void)state;
    char model[512];
    write_model(model, &several_patches);
    stream_of(model);
    remove_dir(model);
}

// ---- bad input ----------------------------------------------------------------------------------

// An infinite weight and a NaN are counted, so that the host can refuse the checkpoint.
static void weights_that_are_no_numbers_are_counted(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_pack_jobs jobs;
    uint32_t found = 0;
    check(mr_checkpoint_open(&checkpoint, "tests/fixtures/gptj/fp32-d16-r2", &err), &err);
    check(mr_pack_jobs_make(&jobs, checkpoint, 1, &err), &err);
    uint8_t *tensors = on_card(&jobs), *w = allocate(1, jobs.beats * MR_BEAT);
    const uint32_t bad[] = {0x7F800000, 0xFFC00001};
    for (size_t i = 0; i < 2; i++) // in the first rectangle, where no other one is
        memcpy(tensors + jobs.job[0].from + 4 * i, &bad[i], sizeof bad[i]);
    millrace_pack(jobs.job, (const void *)tensors, (void *)w, (void *)w, &found,
                  (uint32_t)jobs.count, 1, jobs.beats);
    assert_int_equal(found, 2);
    free(w);
    free(tensors);
    mr_pack_jobs_free(&jobs);
    mr_checkpoint_close(checkpoint);
}

static void other_numbers_of_channels_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    check(mr_checkpoint_open(&checkpoint, "tests/fixtures/gptj/fp32-d16-r2", &err), &err);
    for (int n = -1; n < 20; n++) {
        struct mr_pack_jobs jobs;
        bool fits = n == 1 || n == 2 || n == 4 || n == 8 || n == 16;
        assert_int_equal(mr_pack_jobs_make(&jobs, checkpoint, n, &err), fits ? 0 : MR_ERR_USAGE);
        if (fits)
            mr_pack_jobs_free(&jobs);
    }
    mr_checkpoint_close(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_read_as_the_host_reads_them),
        cmocka_unit_test(streams_of_fixtures_are_the_stores),
        cmocka_unit_test(streams_of_several_patches_are_the_stores),
        cmocka_unit_test(weights_that_are_no_numbers_are_counted),
        cmocka_unit_test(other_numbers_of_channels_are_refused),
    };
    return cmocka_run_group_tests_name("hls_pack", tests, files_setup, files_teardown);
}
