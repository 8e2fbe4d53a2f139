// SPDX-License-Identifier: Apache-2.0
// One training twice, with the same batches: in fp32 on the reference, and on a device. Prints the
// losses of the held-out part as lines "name,seed,step,fp32,device", those of the steps as
// "name,seed,loss,step,fp32,device", and the text's unigram entropy as "name,seed,unigram,nats".
// usage: learn NAME MODEL|scratch TEXT BATCH STEPS RATE SEED DIR [DEVICE]
// MODEL is a Hugging Face directory; scratch: a small GPT-J with weights from the seed, as
// transformers begins (0.02 N(0, 1)), which reads bytes. BATCH: windows of 64 tokens in a step.
// DIR: a new directory for states.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/synthetic.h"
#include "cli/data/train_data.h"
#include "common/file.h"
#include "reference/loop.h"

enum { WINDOW = 64, WARMUP = 10, POINTS = 10 };

static struct mr_error err;

static void check(int rc)
{
    if (rc < 0) {
        fprintf(stderr, "learn: %s\n", err.text);
        exit(1);
    }
}

static char *in(const char *dir, const char *name)
{
    char *path = mr_path_join(dir, name, &err);
    check(path ? 0 : MR_ERR_MEMORY);
    return path;
}

static const char *small_model(const char *dir, uint64_t seed)
{
    static const struct mr_config c = {.vocab_size = 257,
                                       .n_positions = WINDOW,
                                       .n_embd = 128,
                                       .n_layer = 2,
                                       .n_head = 4,
                                       .rotary_dim = 16,
                                       .n_inner = 512,
                                       .eos_token_id = -1};
    char *model = in(dir, "model");
    if (mkdir(model, 0700) < 0)
        check(mr_fail(&err, MR_ERR_IO, "%s: %s", model, strerror(errno)));
    check(mr_synthetic_start(model, &c, seed, NULL, &err));
    return model;
}

// Entropy of the tokens that are learnt from, each by itself.
static double unigram(const struct train_data *d, int vocab)
{
    double *count = calloc((size_t)vocab, sizeof *count), sum = 0, all = 0;
    check(count ? 0 : mr_fail(&err, MR_ERR_MEMORY, "no memory"));
    for (size_t w = 0; w < d->learnt; w++)
        for (int t = 0; t < d->windows[w].count; t++, all++)
            count[d->ids[d->windows[w].at + (size_t)t + 1]]++;
    for (int v = 0; v < vocab; v++)
        sum -= count[v] > 0 ? count[v] / all * log(count[v] / all) : 0;
    free(count);
    return sum;
}

static struct mr_batch batch_of(const struct mr_micro_batch *b)
{
    return (struct mr_batch){.n_sequences = b->sequences,
                             .lengths = b->lengths,
                             .tokens = b->tokens,
                             .targets = b->targets};
}

static void compare(const char *name, uint64_t seed, int step, struct mr_loop *loop,
                    struct mr_trainer *trainer, struct train_batch *b, struct train_data *d)
{
    struct mr_loss fp32 = {0};
    struct mr_batch_loss one;
    double sum = 0;
    int64_t targets = 0;
    for (size_t first = 0; train_batch_hold(b, d, first, d->held_out, &err) > 0;
         first += (size_t)b->batch.sequences) {
        struct mr_batch batch = batch_of(&b->batch);
        check(mr_loop_evaluate(loop, &batch, &fp32, &err));
        check(mr_trainer_evaluate(trainer, &b->batch, &one, &err));
        sum += one.loss * (double)one.targets;
        targets += one.targets;
    }
    printf("%s,%llu,%d,%.6f,%.6f\n", name, (unsigned long long)seed, step, mr_loss_mean(&fp32),
           sum / (double)targets);
    (void)fflush(stdout);
}

static void learn(const char *name, uint64_t seed, int size, const struct mr_loop_options *o,
                  struct mr_loop *loop, struct mr_trainer *trainer, struct train_data *d)
{
    struct train_batch b;
    int steps = o->schedule.steps, every = steps < POINTS ? 1 : steps / POINTS;
    check(train_batch_new(&b, size, WINDOW, false, &err));
    compare(name, seed, 0, loop, trainer, &b, d);
    for (int step = 1; step <= steps; step++) {
        const struct mr_trainer_update u = {.rate = mr_schedule_rate(&o->schedule, step),
                                            .beta1 = o->adamw.beta1,
                                            .beta2 = o->adamw.beta2,
                                            .epsilon = o->adamw.epsilon,
                                            .clip = o->clip};
        struct mr_trainer_done done;
        struct mr_loop_step fp32;
        check(train_batch_learn(&b, d, (uint64_t)(step - 1) * (uint64_t)size, &err));
        struct mr_batch batch = batch_of(&b.batch);
        check(mr_loop_add(loop, &batch, &err));
        check(mr_loop_apply(loop, &fp32, &err));
        check(mr_trainer_begin(trainer, 1, &err));
        check(mr_trainer_backward(trainer, &b.batch, NULL, &err));
        check(mr_trainer_apply(trainer, &u, &done, &err));
        printf("%s,%llu,loss,%d,%.6f,%.6f\n", name, (unsigned long long)seed, step,
               mr_loss_mean(&fp32.loss), done.loss);
        if (step % every == 0 || step == steps)
            compare(name, seed, step, loop, trainer, &b, d);
    }
    train_batch_free(&b);
}

int main(int argc, char **argv)
{
    if (argc < 9) {
        fprintf(stderr,
                "usage: learn NAME MODEL|scratch TEXT BATCH STEPS RATE SEED DIR [DEVICE]\n");
        return 2;
    }
    const char *name = argv[1], *dir = argv[8];
    uint64_t seed = strtoull(argv[7], NULL, 10);
    int size = atoi(argv[4]);
    const struct mr_loop_options o = {
        .adamw = {0.9, 0.95, 1e-8, 0, false, MR_ADAMW},
        .schedule = {MR_SCHEDULE_COSINE, strtod(argv[6], NULL), 0.1, WARMUP, atoi(argv[5])},
        .clip = 1};
    const struct mr_load_options describe = {.describe = true, .text = true};
    const struct mr_trainer_options options = {.tokens = WINDOW * size};
    struct mr_file text = {0};
    struct mr_model *model;
    struct mr_model_info info;
    struct mr_checkpoint *checkpoint;
    struct mr_loop *loop;
    struct mr_trainer *trainer;
    struct train_data d;
    char *state = in(dir, "state");
    const char *from = strcmp(argv[2], "scratch") == 0 ? small_model(dir, seed) : argv[2];
    check(mr_file_map(&text, argv[3], &err));
    check(mr_model_load(&model, from, &describe, &err));
    mr_model_get_info(model, &info);
    check(train_data_make(&d, model, (const char *)text.data, text.size, WINDOW, 0.1, seed, &err));
    printf("%s,%llu,unigram,%.6f\n", name, (unsigned long long)seed, unigram(&d, info.vocab_size));
    check(mr_checkpoint_open(&checkpoint, from, MR_DECODER, NULL, &err));
    check(mr_loop_open(&loop, checkpoint, &o, &err));
    check(mr_trainer_create(state, from, 0, &err));
    check(mr_trainer_open(&trainer, state, argc > 9 ? argv[9] : "model:sim,train", &options, &err));
    learn(name, seed, size, &o, loop, trainer, &d);
    mr_trainer_close(trainer);
    mr_loop_close(loop);
    mr_checkpoint_close(checkpoint);
    train_data_free(&d);
    mr_model_close(model);
    mr_file_unmap(&text);
    free(state);
    return 0;
}
