# SPDX-License-Identifier: Apache-2.0
# configs.def -> rows of the C table (host/device/configs.c); with -v out=names the names as one
# string of C, those with TRAIN apart; with -v config=NAME the -G flags, NAME-train with the commands of
# training too.
BEGIN { train = sub(/-train$/, "", config) }
/^#/ || NF == 0 { next }
out == "names" {
    name[$15, ++n[$15]] = $1
    next
}
config == "" {
    printf "{\"%s\", {.n = %d, .r = %d, .t = %d, .act_words = %d, .qkv_words = %d, .d_max = %d, .rot_max = %d, " \
           ".scores = %d, .w_max = %d, .ctx_max = %d, .ring = %d, .train = %d}, %d, %d, %d},\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $15, $14, $13, $16
}
config == $1 {
    printf "-GN=%d -GR=%d -GT=%d -GACT_WORDS=%d -GQKV_WORDS=%d -GD_MAX=%d -GROT_MAX=%d -GSCORES=%d -GW_MAX=%d -GCTX_MAX=%d -GRING=%d -GPAIR=%d -GCLOCK_KHZ=%d -GTRAIN=%d -GFOLD=%d\n", \
           $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 || train, $16
}
function names(macro, train,   i) {
    printf "#define %s(between, last)", macro
    for (i = 1; i <= n[train]; i++)
        printf " \"%s\"%s", name[train, i], i == n[train] ? "\n" : i == n[train] - 1 ? " last" : " between"
}
END {
    if (out == "names") {
        printf "// Of all configurations without TRAIN, and of those with it; with what stands between two, and before the\n"
        printf "// last one.\n"
        names("MR_CONFIG_NAMES", 0)
        names("MR_CONFIG_TRAIN_NAMES", 1)
    }
}
