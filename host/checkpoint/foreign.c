// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/foreign.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

#define ADAPTER                                                                                    \
    "a LoRA or PEFT adapter, not a model; name the model that it was trained on, and this "        \
    "directory by --adapter"
#define USE_ORIGINAL "pack the original Hugging Face checkpoint (safetensors or pytorch_model.bin)"

int mr_refuse_foreign_file(const struct mr_file *file, const char *path, struct mr_error *err)
{
    static const struct {
        const char *first;
        size_t size;
        const char *what;
    } kinds[] = {
        {"GGUF", 4, "is a GGUF file (llama.cpp), already quantised; " USE_ORIGINAL},
        {"lmgg", 4, "is a GGML file, already quantised; " USE_ORIGINAL},
        {"tjgg", 4, "is a GGJT file, already quantised; " USE_ORIGINAL},
        {"\x89HDF\r\n\x1a\n", 8, "is an HDF5 file (TensorFlow or Keras); " USE_ORIGINAL},
        // The pickle of a magic number, 0x1950a86a20f9469cfc6c, that torch.save began with.
        {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.", 15,
         "is in PyTorch's format from before 1.6; in Python, torch.save(torch.load(FILE, "
         "map_location='cpu'), NEW_FILE) writes today's"},
        {"version https://git-lfs", 23,
         "is a Git LFS pointer and not the file itself; run 'git lfs pull' in its directory"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (file->size >= kinds[i].size && memcmp(file->data, kinds[i].first, kinds[i].size) == 0)
            return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: %s", path, kinds[i].what);
    return 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

int mr_refuse_foreign_directory(const char *dir, struct mr_error *err)
{
    static const struct {
        const char *end, *what;
    } kinds[] = {
        {"adapter_config.json", ADAPTER},
        {"adapter_model.safetensors", ADAPTER},
        {"adapter_model.bin", ADAPTER},
        {".gguf", "a GGUF file (llama.cpp), already quantised; " USE_ORIGINAL},
        {"tf_model.h5", "a TensorFlow checkpoint; " USE_ORIGINAL},
        {".ckpt.index", "a TensorFlow checkpoint; " USE_ORIGINAL},
        {"flax_model.msgpack", "a Flax checkpoint; " USE_ORIGINAL},
        {"flax_model.msgpack.index.json", "a Flax checkpoint; " USE_ORIGINAL},
    };
    DIR *d = opendir(dir);
    size_t found = sizeof kinds / sizeof *kinds;
    struct mr_shown name = {0};
    for (struct dirent *e; d && (e = readdir(d));)
        for (size_t i = 0; i < found; i++)
            if (ends_with(e->d_name, kinds[i].end)) {
                found = i;
                name = mr_show(e->d_name);
            }
    if (d)
        (void)closedir(d);
    return found < sizeof kinds / sizeof *kinds
               ? mr_fail(err, MR_ERR_UNSUPPORTED, "%s/%s: is %s", dir, name.text, kinds[found].what)
               : 0;
}

const char *mr_foreign_tensor(const char *name)
{
    static const struct {
        const char *part, *what;
    } parts[] = {
        {".lora_", "a LoRA adapter's; name the model, and its adapter's directory by --adapter"},
        {"base_model.model.",
         "a PEFT adapter's; name the model, and its adapter's directory by --adapter"},
        {".qweight", "of a GPTQ or AWQ checkpoint, already quantised; " USE_ORIGINAL},
        {".qzeros", "of a GPTQ or AWQ checkpoint, already quantised; " USE_ORIGINAL},
        {".g_idx", "of a GPTQ checkpoint, already quantised; " USE_ORIGINAL},
        {".absmax", "of an 8-bit or 4-bit checkpoint, already quantised; " USE_ORIGINAL},
        {".quant_map", "of an 8-bit or 4-bit checkpoint, already quantised; " USE_ORIGINAL},
        {".SCB", "of an 8-bit checkpoint, already quantised; " USE_ORIGINAL},
        {".code", "of an 8-bit checkpoint, already quantised; " USE_ORIGINAL},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i].part))
            return parts[i].what;
    return NULL;
}
