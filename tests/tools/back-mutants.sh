#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice when the C model's backward pass is wrong? Each mutant is host/cmodel with one line
# changed; a test of the unit tests train_commands, kernel_back or pass must fail. Prints TAP.
# usage, from the repository's root: tests/tools/back-mutants.sh [BUILD_DIR [WORD]]
set -u
build=${1:-build}/back-mutants
folders=(cmodel)
others=(tests/reference/*.c)
declare -A tests=(
    [test_train_commands]="sums_of_gradients slopes_of_functions layer_norm_backwards softmax_backwards
        commands_have_the_bits"
    [test_kernel_back]="portable_kernel_is_exact avx2_kernel_is_exact avx512_kernel_is_exact"
    [test_pass]="batches_leave_nothing fixtures_have_the_gradient bits_are_the_same_everywhere"
)

# "name|file below host/|sed expression|test"
mutants=(
    # sums of gradients, rule 16
    'sums: halves are rounded up|cmodel/num.h|s/(rest == half \&\& (low \& 1))/rest == half/|test_train_commands'
    'sums: a code of 255 on the right is a number|cmodel/backward.h|s/ea == MR_CODE_NAN .. ew == MR_CODE_NAN/ea == MR_CODE_NAN/|test_train_commands'
    'sums: a unit that is too small is not noted|cmodel/backward.h|s/sum->flags .= shift < 0 ? MR_GRAD_LARGE : 0;//|test_train_commands'
    'sums: the limit is too large|cmodel/backward.h|s/size > limit ?/size >= limit ?/|test_train_commands'
    'sums: a sum that is clamped loses its sign|cmodel/backward.h|s/sum->acc < 0 ? -most : most/most/|test_train_commands'
    'sums: a peak beyond 32 bits wraps|cmodel/backward.h|s/size > UINT32_MAX ? UINT32_MAX : (uint32_t)size/(uint32_t)size/|test_train_commands'
    'GRAD: all codes are numbers|cmodel/train.c|s/w\.nan = has_nan(&w);/w.nan = false;/|test_train_commands'
    'GRAD: codes of the columns are numbers|cmodel/train.c|s/nan .= columns_nan(&columns);//|test_train_commands'
    'GRAD: the second half of a tile over the first|cmodel/train.c|s/(size_t)(32 \* (block % 2))/0/|test_train_commands'
    'GRAD: tiles of the next stripe|cmodel/train.c|s/(size_t)(block \/ 2) \* TILE/(size_t)(block % 2) * TILE/|test_train_commands'
    'GRAD: flags stay from the command before|cmodel/train.c|s/m->scratch\[i\]\.flags = m->scratch\[i\]\.peak = 0;/m->scratch[i].peak = 0;/|test_train_commands'
    'GRAD: the record is always begun anew|cmodel/train.c|s/if (!mr_field(cmd, MR_F_GRAD_BEGIN))/if (0)/|test_pass'
    # GELU, LayerNorm, softmax: rules 17 to 19
    'slope: not rounded|cmodel/backward.c|s/ + 32) >> 6/) >> 6/|test_train_commands'
    'slope: of the other side|cmodel/backward.c|s/>> 31 ? q : (1 << 14) - q/>> 31 ? (1 << 14) - q : q/|test_train_commands'
    'slope: NaN is 1|cmodel/backward.c|s/return MR_SLOPE_NAN;/return 1 << 14;/|test_train_commands'
    'slope: one bit less|cmodel/backward.c|s/mr_acc_to_f32(slope, -14)/mr_acc_to_f32(slope, -13)/|test_train_commands'
    'LayerNorm: without the mean of dn|cmodel/backward.c|s/mr_fsub(mr_fsub(dn, ma), /mr_fsub(dn, /|test_train_commands'
    'LayerNorm: without the length|cmodel/backward.c|s/mr_fsub(mr_fsub(dn, ma), mr_fmul(xh, mb))/mr_fsub(dn, ma)/|test_train_commands'
    'LayerNorm: dn is summed on a base without the gain|cmodel/backward.c|s/(int)ey + (int)eg - 275/(int)ey + 127 - 275/|test_train_commands'
    'LayerNorm: the row beyond its end|cmodel/backward.c|s/fill(dx, c->n, count, 0\.0f);//|test_train_commands'
    'LayerNorm: gain by the row, not normalised|cmodel/backward.c|s/mr_fmul(dy\[i\], mr_fmul(mr_fsub(x\[i\], mean), r))/mr_fmul(dy[i], mr_fsub(x[i], mean))/|test_train_commands'
    'softmax: without the mean|cmodel/backward.c|s/mr_fsub(dp\[i\], d)/dp[i]/|test_train_commands'
    'softmax: without 1\/sqrt(d)|cmodel/backward.c|s/mr_fmul(mr_fmul(p, mr_fsub(dp\[i\], d)), grad_scale)/mr_fmul(p, mr_fsub(dp[i], d))/|test_train_commands'
    'softmax: the base of the whole row|cmodel/backward.c|s/top_of(dp, row->first, row->last + 1)/top_of(dp, 0, count)/|test_train_commands'
    'softmax: hidden keys keep what stood there|cmodel/backward.c|s/fill(p, 0, count, 0\.0f);//|test_train_commands'
    # the same in the inner loops
    'loops: the limit of the last of 32 sums|cmodel/kernel_back.h|s/flags .= sum\.flags;/flags = sum.flags;/|test_kernel_back'
    'loops: slope not rounded|cmodel/kernel_back.h|s/ + 32) >> 6/) >> 6/|test_kernel_back'
    'loops: infinity has a slope between|cmodel/kernel_back.h|s/q = size < end ? q : 0;//|test_kernel_back'
    'loops: a slope of NaN is -2|cmodel/kernel_back.h|s/slope\[i\] == MR_SLOPE_NAN ? MR_QNAN_BITS : mr_bits(by)/mr_bits(by)/|test_kernel_back'
    'loops: a row that is too long passes|cmodel/kernel_back.h|s/ .. most_xh >> 23 >= MR_NORMAL_MOST//|test_kernel_back'
    'loops: products that overflow pass|cmodel/kernel_back.h|s/ .. most_dn >> 23 == 255//|test_kernel_back'
    'loops: infinities behind the row pass|cmodel/kernel_back.h|s/finite = mr_lanes_normal(c, x, count, &mean, &r)/finite = (mr_lanes_normal(c, x, count, \&mean, \&r), true)/|test_kernel_back'
    'loops: LayerNorm adds its mean|cmodel/kernel_back.h|s/mr_lane_sub(mr_lane_sub(dn, ma)/mr_lane_sub(mr_lane_add(dn, ma)/|test_kernel_back'
    'loops: softmax sees what is hidden|cmodel/kernel_back.h|s/for (int i = row->last + 1; i < count; i++)/for (int i = row->last + 2; i < count; i++)/|test_kernel_back'
    'loops: infinite gradients of scores pass|cmodel/kernel_back.h|s/sum < 0 .. top == 255/sum < 0/|test_kernel_back'
    'loops: softmax keeps small gradients of scores|cmodel/kernel_back.h|s/mr_lane_nearest((double)mr_lane_in(dp\[row->first + i\])/mr_lane_nearest((double)(dp[row->first + i])/|test_kernel_back'
    'loops: turned blocks have the scale of the row|cmodel/kernel_back.h|s/mr_lane_element(y\[(size_t)i \* stride + (size_t)c\], f\[c\], g\[c\])/mr_lane_element(y[(size_t)i * stride + (size_t)c], f[i], g[i])/|test_kernel_back'
    'loops: turned blocks that are no numbers have elements|cmodel/kernel_back.h|s/most\[c\] < 0x7F800000u ? r : 0/r/|test_kernel_back'
    # the stash, rule 15
    'stash: a column keeps the maximum of another batch|cmodel/stash.c|s/if (col + c >= begin)/if (0)/|test_train_commands'
    'stash: a column has the maximum of its last chunk|cmodel/stash.c|s/if (col + c >= begin)/if (1)/|test_train_commands'
    'stash: a column has the code of its last block|cmodel/stash.c|s/code\[c\] > largest\[c\] ? code\[c\] : largest\[c\]/code[c]/|test_train_commands'
    'stash: chunks over each other|cmodel/stash.c|s/kblock + first \/ MR_BLOCK/first \/ MR_BLOCK/|test_train_commands'
    'stash: part of a matrix with the codes of its first blocks|cmodel/stash.c|s/group + from + 4 \* i, 4)/group + from + 4 * j, 4)/|test_train_commands'
    'stash: a row has the maximum of its part|cmodel/stash.c|s/row_max\[i\] = \*mr_machine_stash_largest(&s, col + i);/row_max[i] = s.at[0][mr_tile_place(\&s.shape, col + i, first).code];/|test_train_commands'
    'stash: a part from the first block on|cmodel/stash.c|s/mr_tile_place(&s\.shape, col + i, first + k)/mr_tile_place(\&s.shape, col + i, k)/|test_train_commands'
    'tiles: the maximum of the next group|cmodel/tiles.c|s/header + MR_GROUP_COLUMNS \* in + lane,/header + MR_GROUP_COLUMNS * (in ^ 1) + lane,/|test_train_commands'
    # MATMUL and rows
    'MATMUL: SET adds|cmodel/matmul.c|s/if (w->extras\.set)/if (0)/|test_pass'
    'MATMUL: into the first row memory|cmodel/matmul.c|s/row_at(m, w->extras\.second, i)/row_at(m, false, i)/|test_train_commands'
    'MATMUL: slopes behind GELU|cmodel/matmul.c|s/keep_slopes(w, i, block, y);/{ float z[32]; memcpy(z, y, sizeof z); m->kernels->lanes->function(z, n, w->function); keep_slopes(w, i, block, z); }/|test_pass'
    'MATMUL: slopes of 64 columns side by side|cmodel/matmul.c|s/int lanes = 4 \* w->m->g\.n;/int lanes = 64;/|test_train_commands'
    'MATMUL: slopes of neighbours in one place|cmodel/matmul.c|s/(size_t)(first \/ lanes) \* (size_t)w->tokens/(size_t)(first \/ lanes)/|test_train_commands'
    'MATMUL: no slopes backwards|cmodel/matmul.c|s/if (w->extras\.slope)/if (0)/|test_pass'
    'MATMUL: tiles of the first chunk|cmodel/matmul.c|s/x->at_row + i, kblock % x->tiles_kblocks/i, kblock % x->tiles_kblocks/|test_pass'
    'MATMUL: tiles of the first head|cmodel/matmul.c|s/(size_t)(kblock \/ x->tiles_kblocks) \* x->tiles_beats/0 * x->tiles_beats/|test_pass'
    'MATMUL: a row keeps the maximum of another batch|cmodel/matmul.c|s/if (anew .. matrix/if (matrix/|test_pass'
    'MATMUL: a row has the code of its last block|cmodel/matmul.c|s/if (anew .. matrix\[at\.code\] > matrix\[at\.largest\])/if (1)/|test_pass'
    'ATTEND: results of the first head|cmodel/attend.c|s/row_at(m, true, w->token) + 32 \* (size_t)first/row_at(m, true, w->token)/|test_pass'
    'FETCH_ROWS: what is there is lost|cmodel/train.c|s/^        if (add)/        if (0)/|test_pass'
    'SAVE_ROWS: always the first row memory|cmodel/train.c|s/memcpy(to, row_at(m, mr_field(cmd, MR_F_SAVE_ROWS_ROW), i)/memcpy(to, row_at(m, 0, i)/|test_train_commands'
    'LAYERNORM: keeps the first row of all|cmodel/machine.c|s/memcpy(row_at(m, true, i), m->line/memcpy(row_at(m, true, 0), m->line/|test_pass'
    'MOVE_ROWS: turns the first row memory|cmodel/train.c|s/row_at(w->m, w->second, 0) + MR_BLOCK/row_at(w->m, false, 0) + MR_BLOCK/|test_pass'
    'MOVE_ROWS: the first row memory to activations|cmodel/train.c|s/const float \*row = row_at(w->m, w->second, i);/const float *row = row_at(w->m, false, i);/|test_pass'
    'MOVE_ROWS: works on the other row memory|cmodel/train.c|s/memcpy(row_at(m, w->second, i), s->row/memcpy(row_at(m, !w->second, i), s->row/|test_pass'
    'MOVE_ROWS: a token sees the next one|cmodel/row_work.c|s/int own = w->own_col + i;/int own = w->own_col + i + 1;/|test_pass'
    'MOVE_ROWS: a token sees the sequence before|cmodel/row_work.c|s/pos > own ? 0 : own - pos, own/0, own/|test_pass'
    'MOVE_ROWS: activations have the maximum of another command|cmodel/train.c|s/set_row_max(w->m, i, w->base, w->slot, blocks);//|test_pass'
)

. tests/tools/mutants.sh
