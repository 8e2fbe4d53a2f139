# SPDX-License-Identifier: Apache-2.0
# configs.def -> rows of the C table (host/device/configs.c); with -v config=NAME the -G flags,
# NAME-train with the commands of training too.
BEGIN { train = sub(/-train$/, "", config) }
/^#/ || NF == 0 { next }
config == "" {
    printf "{\"%s\", {.n = %d, .r = %d, .t = %d, .act_words = %d, .qkv_words = %d, .d_max = %d, .rot_max = %d, " \
           ".scores = %d, .w_max = %d, .ctx_max = %d, .ring = %d, .train = %d}, %d, %d, %d},\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $15, $14, $13, $16
}
config == $1 {
    printf "-GN=%d -GR=%d -GT=%d -GACT_WORDS=%d -GQKV_WORDS=%d -GD_MAX=%d -GROT_MAX=%d -GSCORES=%d -GW_MAX=%d -GCTX_MAX=%d -GRING=%d -GPAIR=%d -GCLOCK_KHZ=%d -GTRAIN=%d -GFOLD=%d\n", \
           $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 || train, $16
}
