# SPDX-License-Identifier: Apache-2.0
# device.def, kernel.def, pcie.def -> C header (out=c) or SystemVerilog package (out=sv; then
# gen_legal.awk comes behind this file and adds the rules).
function sv_hex(v) { return v ~ /^0x/ ? "32'h" substr(v, 3) : "32'd" v }
function emit(name, value) {
    if (out == "c") printf "#define MR_%s %s%s\n", name, value, (value ~ /^0x/ ? "u" : "")
    else printf "  localparam logic [31:0] %s = %s;\n", name, sv_hex(value)
}
BEGIN {
    print "// Generated from rtl/spec/*.def; do not edit."
    if (out == "c") print "#ifndef MR_DEVICE_H\n#define MR_DEVICE_H\n"
    else print "// Constants of docs/inside/commands.md. *_LSB is the bit within the 512-bit command.\n" \
               "/* verilator lint_off UNUSEDPARAM */\npackage mr_pkg;"
}
FNR == 1 { training = 0 }
$1 == "training" { training = 1; next }
/^#/ || NF == 0 { next }
$1 == "const" { emit($2, $3) }
$1 == "op" {
    emit("OP_" $2, $3)
    ops[n_ops++] = $2; queue[$2] = $4
}
$1 == "field" {
    name = $2 "_" $3
    for (i = $5; i < $5 + $6; i++) {
        if (taken[$2, $4, i]) {
            print FILENAME ": " name " has a bit of " taken[$2, $4, i] >"/dev/stderr"
            failed = 1
        }
        taken[$2, $4, i] = name
    }
    if (out == "c") printf "#define MR_F_%s ((%d << 16) | (%d << 8) | %d)\n", name, $4, $5, $6
    else printf "  localparam int %s_LSB = %d, %s_W = %d;\n", name, 32 * $4 + $5, name, $6
}
$1 == "desc" { emit("RUN_" $2, $3) }
$1 == "channel_desc" { emit("CHANNEL_" $2, $3) }
$1 == "training_desc" { emit("TRAINING_" $2, $3) }
$1 == "stash_desc" { emit($2, $3) }
$1 == "reg" { emit("REG_" $2, $3) }
$1 == "err" {
    emit("DEVERR_" $2, $3)
    text = $4; for (i = 5; i <= NF; i++) text = text " " $i
    errs = errs sprintf("    X(%d, \"%s\") \\\n", $3, text)
}
$1 == "arg" { emit("KARG_" toupper($2), $3); emit("KARG_" toupper($2) "_ID", args++) }
$1 == "channel" { emit("KARG_CHANNEL", $2); emit("KARG_CHANNEL_STRIDE", $3); emit("KARG_CHANNEL_ID", args + 0) }
$1 == "charg" { emit("KARG_" toupper($2), $3); emit("KARG_" toupper($2) "_ID", chargs++) }
$1 == "counter" { emit("CNT_" $2, n_cnt + 0); cnts = cnts sprintf("    X(%d, \"%s\") \\\n", n_cnt, tolower($2)); n_cnt++ }
# Those of a device with TRAIN are behind the ones that all have.
$1 == "train_counter" { emit("CNT_" $2, n_cnt + n_train); trains = trains sprintf("    X(%d, \"%s\") \\\n", n_cnt + n_train, tolower($2)); n_train++ }
END {
    emit("COUNTERS", n_cnt)
    emit("ALL_COUNTERS", n_cnt + n_train)
    emit("KARGS_PER_CHANNEL", chargs + 0)
    if (failed) exit 1
    if (out == "c") {
        print "\n// Where the words of channel c stand in a descriptor, or behind them those of its stash."
        print "#define MR_RUN_CHANNEL(c) (MR_RUN_WORDS + MR_CHANNEL_WORDS * (c))"
        printf "\n// X(code, text) for each device error; X(index, name) for each counter and opcode.\n"
        printf "#define MR_DEVERR_LIST(X) \\\n%s\n", errs
        printf "#define MR_COUNTER_LIST(X) \\\n%s\n", cnts
        printf "#define MR_TRAIN_COUNTER_LIST(X) \\\n%s\n", trains
        printf "#define MR_OP_LIST(X) \\\n"
        for (i = 0; i < n_ops; i++) printf "    X(MR_OP_%s, \"%s\", MR_QUEUE_%s) \\\n", ops[i], ops[i], queue[ops[i]]
        legal_list_c()
        print "\n#endif"
    } else {
        legal_sv()
        print "endpackage\n/* verilator lint_on UNUSEDPARAM */"
    }
}
