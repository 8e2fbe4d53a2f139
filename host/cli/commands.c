// SPDX-License-Identifier: Apache-2.0
#include "cli/base/cli.h"

const struct cli_command *const cli_commands[] = {
    &cmd_generate, &cmd_chat,    &cmd_serve,     &cmd_info,     &cmd_pack,
    &cmd_unpack,   &cmd_compare, &cmd_eval,      &cmd_data,     &cmd_train,
    &cmd_export,   &cmd_embed,   &cmd_fill_mask, &cmd_classify, &cmd_bench,
    &cmd_trace,    &cmd_plan,    &cmd_selftest,  &cmd_devices,  NULL,
};

const char cli_summary[] = "Runs and trains GPT-J, GPT-2 and BERT on an FPGA engine, simulated "
                           "cycle by cycle or on its C model.";
