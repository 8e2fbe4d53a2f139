// SPDX-License-Identifier: Apache-2.0
// Steps of training on a device, for train.py.
//   training MODEL DEVICE SEQUENCES STEPS RATE ID...
// One micro-batch, the same in each step: the ids are SEQUENCES sequences of equal length, and each
// one's last id is only a target. A line for each step: loss, seconds of processor time.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/open.h"
#include "store/store.h"
#include "store/volume.h"
#include "train/step.h"

struct training {
    struct mr_checkpoint *checkpoint;
    struct mr_store *store;
    struct mr_device *device;
    struct mr_step *step;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The whole state in memory.
static int open_all(struct training *t, const char *model, const char *device, int rows,
                    struct mr_error *err)
{
    const struct mr_store_options options = {.threads = 1};
    const struct mr_pass_options pass = {.rows = rows};
    struct mr_volume *volume;
    uint64_t size[MR_V_FILES];
    int rc = mr_checkpoint_open(&t->checkpoint, model, MR_DECODER, NULL, err);
    const struct mr_config *config = rc == 0 ? mr_checkpoint_config(t->checkpoint) : NULL;
    if (rc == 0)
        rc = mr_store_sizes(config, 0, size, err);
    if (rc == 0)
        rc = mr_volume_memory(&volume, size, err);
    if (rc == 0)
        rc = mr_store_open_volume(&t->store, volume, config, t->checkpoint, &options, err);
    if (rc == 0)
        rc = mr_device_open(&t->device, device, err);
    return rc == 0 ? mr_step_open(&t->step, t->store, t->device, &pass, NULL, err) : rc;
}

static void close_all(struct training *t)
{
    mr_step_close(t->step);
    mr_device_close(t->device);
    mr_store_close(t->store);
    mr_checkpoint_close(t->checkpoint);
}

// PyTorch's AdamW with its defaults, a decay of 0 and the rate.
static int steps(struct training *t, const struct mr_batch *batch, int n, double rate,
                 struct mr_error *err)
{
    const struct mr_store_update update = {.adamw = {0.9, 0.999, 1e-8, 0, false, MR_ADAMW},
                                           .rate = rate};
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        struct mr_step_done done;
        double begin = seconds();
        rc = mr_step_begin(t->step, 1, err);
        if (rc == 0)
            rc = mr_step_add(t->step, batch, NULL, err);
        if (rc == 0)
            rc = mr_step_apply(t->step, &update, &done, err);
        if (rc == 0)
            printf("%.9f %.6f\n", mr_loss_mean(&done.loss), seconds() - begin);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct training t = {0};
    if (argc < 8) {
        fprintf(stderr, "usage: training MODEL DEVICE SEQUENCES STEPS RATE ID...\n");
        return 2;
    }
    int sequences = atoi(argv[3]), length = sequences > 0 ? (argc - 6) / sequences - 1 : 0;
    if (length <= 0)
        return 2;
    int rows = sequences * length, row = 0;
    int *numbers = calloc((size_t)(sequences + 2 * rows), sizeof *numbers);
    if (!numbers)
        return 1;
    int *lengths = numbers, *tokens = lengths + sequences, *targets = tokens + rows;
    for (int s = 0; s < sequences; s++) {
        lengths[s] = length;
        for (int i = 0; i < length; i++, row++) {
            tokens[row] = atoi(argv[6 + s * (length + 1) + i]);
            targets[row] = atoi(argv[7 + s * (length + 1) + i]);
        }
    }
    const struct mr_batch batch = {
        .n_sequences = sequences, .lengths = lengths, .tokens = tokens, .targets = targets};
    int rc = open_all(&t, argv[1], argv[2], rows, &err);
    if (rc == 0)
        rc = steps(&t, &batch, atoi(argv[4]), atof(argv[5]), &err);
    if (rc < 0)
        fprintf(stderr, "training: %s\n", err.text);
    close_all(&t);
    free(numbers);
    return rc < 0;
}
