// SPDX-License-Identifier: Apache-2.0
// Options by the names that they have elsewhere: in Hugging Face's trainer, nanoGPT, llama.cpp and
// vLLM. Who types one is told what it is called here, or that there is no such thing.
#pragma once

struct cli_foreign {
    const char *name;   // without "--", with '-' for '_'
    const char *option; // what the command has for it; NULL: nothing, and `hint` says why
    const char *hint;   // behind "give --OPTION", or alone; NULL: nothing more to say
};

extern const struct cli_foreign cli_foreign_names[]; // a row without a name ends it
