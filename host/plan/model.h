// SPDX-License-Identifier: Apache-2.0
// The shape of the model to plan for; its weights are not read.
#pragma once

#include "checkpoint/config.h"
#include "cmodel/geometry.h"
#include "pack/layout.h"

// A Hugging Face directory, a packed file (whose format goes to *format), or "synthetic:...".
int mr_plan_model_of(struct mr_config *model, enum mr_format *format, const char *path,
                     struct mr_error *err);

// "layers=28,d=4096,heads=16[,inner=][,vocab=][,ctx=][,rotary=]", with GPT-J's values (inner 4 d)
// for what is left out.
int mr_plan_model_parse(struct mr_config *model, const char *geometry, struct mr_error *err);

// "n=4,r=8,t=128[,pair]", the smallest sizes that hold the model for the rest.
int mr_plan_geometry_parse(struct mr_geometry *g, bool *pair, const char *text,
                           const struct mr_config *model, struct mr_error *err);

// "C,train" names configuration C with the commands of training. C goes to name; whether there was
// such an end.
bool mr_plan_config_trains(char *name, size_t size, const char *text);

// The same geometry with the commands of training; of a free one (mr_plan_geometry_parse()) also
// with the sizes that the model's training takes.
void mr_plan_geometry_train(struct mr_geometry *g, const struct mr_config *model, bool free);
