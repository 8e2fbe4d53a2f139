// SPDX-License-Identifier: Apache-2.0
// Text from a prompt in 40 lines. From the repository:
//   make lib
//   cc -Ihost/include -o build/generate examples/generate.c build/libmillrace.a $(make -s libs)
//   build/generate models/demo model: "In the beginning"
#include <millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print(void *arg, int prompt, const char *piece, size_t size)
{
    (void)arg, (void)prompt;
    return fwrite(piece, 1, size, stdout) != size || fflush(stdout) != 0; // non-zero: stop
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    struct mr_session *session = NULL;
    struct mr_generated text = {0};
    struct mr_generate_options opt = {.max_tokens = 40, .text = print};
    int32_t *prompt = NULL;
    size_t count;
    if (argc != 4) {
        fprintf(stderr, "usage: generate MODEL DEVICE PROMPT\n");
        return 2;
    }
    int rc = mr_model_load(&model, argv[1], NULL, &err);
    if (rc == 0)
        rc = mr_session_open(&session, model, argv[2], NULL, &err);
    if (rc == 0)
        rc = mr_model_encode(model, argv[3], strlen(argv[3]), false, &prompt, &count, &err);
    if (rc == 0)
        rc = mr_generate(session, (const int32_t *const[]){prompt}, &count, 1, &opt, &text, &err);
    printf("\n");
    if (rc < 0)
        fprintf(stderr, "generate: %s\n", err.text);
    free(prompt);
    mr_generated_free(&text);
    mr_session_close(session);
    mr_model_close(model);
    return rc < 0;
}
