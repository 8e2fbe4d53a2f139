# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A part of run.sh, which sources it: the RTL in Verilator, Icarus and Yosys.

# ---- Verilator: every warning. In every configuration the Vitis kernel, with the engine inside, and the
# simulator's ports around it; of some, the smallest without and with training, and the largest.
[ "$how" != some ] || configs='tiny tinyt u280t'
kernel() { # config [ports]
    local ports=${2:-rtl/spec/core_ports.def}
    gen() { awk -v config="$1" -v out="$2" -f rtl/kernel/gen_kernel.awk -f rtl/kernel/gen_update.awk rtl/spec/configs.def rtl/spec/kernel.def "$ports"; }
    gen "$1" top >"$tmp/millrace_kernel.v" && gen "$1" adapter >"$tmp/mr_kernel_sim.sv"
}
for c in $configs; do
    kernel "$c" &&
        verilator --lint-only -Wall --top-module mr_kernel_sim -Irtl/common "-I$build/gen" "${files[@]}" \
            "$tmp/millrace_kernel.v" "$tmp/mr_kernel_sim.sv" >"$tmp/v" 2>&1 && [ ! -s "$tmp/v" ]
    tap $? "verilator -Wall: millrace_kernel, $c" "$tmp/v"
done
# The PCI function's inside, for the smallest and the largest.
for c in tiny u280; do
    # shellcheck disable=SC2046
    verilator --lint-only -Wall --top-module millrace_pcie $(params "$c") -Irtl/common "-I$build/gen" "${files[@]}" >"$tmp/v" 2>&1 &&
        [ ! -s "$tmp/v" ]
    tap $? "verilator -Wall: millrace_pcie, $c" "$tmp/v"
done
for define in MILLRACE_NONE MILLRACE_VIEW MILLRACE_CLK_GATE MILLRACE_ASSERT; do
    for c in tiny tinyt; do # without and with TRAIN
        # shellcheck disable=SC2046
        verilator --lint-only -Wall -D$define --top-module millrace_core $(params $c) -Irtl/common "-I$build/gen" \
            "${files[@]}" >"$tmp/v" 2>&1 && [ ! -s "$tmp/v" ]
        tap $? "verilator -Wall: millrace_core, $c, $define" "$tmp/v"
    done
done
# GPT-3's 175 billion parameters are 12288 wide. No configuration is; the parameters allow it.
wide=$(params sim | sed 's/\(D_MAX\|W_MAX\)=[0-9]*/\1=12288/g; s/ACT_WORDS=[0-9]*/ACT_WORDS=4096/; s/QKV_WORDS=[0-9]*/QKV_WORDS=1024/')
# shellcheck disable=SC2086
verilator --lint-only -Wall --top-module millrace_core $wide -Irtl/common "-I$build/gen" "${files[@]}" >"$tmp/v" 2>&1 &&
    [ ! -s "$tmp/v" ] && grep -q 'D_MAX=12288 .*W_MAX=12288' <<<"$wide"
tap $? "verilator -Wall: millrace_core with rows of 12288" "$tmp/v"

# ---- a port is added in one place: with one more in each group of core_ports.def, the wrappers and what
# stands in the core's place have it too, and no instance of the core leaves it out.
mkdir -p "$tmp/ports"
{
    cat rtl/spec/core_ports.def
    printf 'param MORE 3\nport axil in 3 awprot\nport ch out 4 arqos\nport ch in 1 rid\nport host out 4 awqos\n'
    printf 'port host in 1 bid\nport status out 3 more\n'
} >"$tmp/ports/core_ports.def"
for f in "$build"/gen/core_*.svh; do
    o=$(basename "$f" .svh)
    awk -v out="$o" -f rtl/spec/gen_ports.awk "$tmp/ports/core_ports.def" >"$tmp/ports/$o.svh"
done
cp "$build"/gen/{mr_bundles,rom_*}.svh "$tmp/ports/"
kernel tiny "$tmp/ports/core_ports.def"
more() { # top files..: every warning but that nobody drives or reads the new ports
    verilator --lint-only -Wall -Wno-UNDRIVEN -Wno-UNUSED --top-module "$1" -Irtl/common "-I$tmp/ports" "${@:2}"
}
mapfile -t rest < <(printf '%s\n' "${files[@]}" | grep -v '^rtl/millrace_core.sv$')
{
    more mr_kernel_sim "${files[@]}" "$tmp/millrace_kernel.v" "$tmp/mr_kernel_sim.sv" &&
        more millrace_pcie "${files[@]}" && more millrace_pcie "${rest[@]}" tests/rtl/kernel/millrace_core.sv &&
        more simlib_standin -Wno-DECLFILENAME -Wno-WIDTH -Wno-CASEINCOMPLETE -Wno-BLKSEQ tests/simlib/simlib_{standin,reader,ram}.sv
} >"$tmp/v" 2>&1 && [ ! -s "$tmp/v" ]
tap $? "a port that core_ports.def gets is in every wrapper" "$tmp/v"
{
    for port in s_axil_awprot_i m_ch_arqos_o m_ch_rid_i m_host_awqos_o m_host_bid_i; do
        for f in "$tmp/millrace_kernel.v" "$tmp/mr_kernel_sim.sv" "$tmp/ports/core_pass.svh"; do
            grep -q "$port" "$f" || echo "$f has no $port"
        done
    done
} >"$tmp/v"
[ ! -s "$tmp/v" ]
tap $? "and the Vitis kernel passes it on" "$tmp/v"

# ---- Icarus. "sorry" is about its own sensitivity lists, wider than needed: not a fault of the source.
for c in tinyt tiny; do
    kernel $c
    iverilog -g2012 -Wall -Wno-timescale -Wno-sensitivity-entire-vector -Wno-sensitivity-entire-array \
        -t null -Irtl/common "-I$build/gen" -s millrace_kernel -s millrace_pcie "${files[@]}" "$tmp/millrace_kernel.v" >"$tmp/i" 2>&1
    status=$?
    grep -v ': sorry: constant selects in always_' "$tmp/i" >"$tmp/i2"
    [ $status = 0 ] && ! grep -q -i 'error\|sorry' "$tmp/i2"
    tap $? "iverilog -g2012: millrace_kernel, $c; millrace_pcie" "$tmp/i2"
done

# The form for DSP48E2, with the cell's model.
dsp=(rtl/tech/mr_tech_pkg.sv rtl/tech/{mr_dsp48e2,mr_dot{_lane,_cascade,_halves,,_sum,_acc,_add}}.sv rtl/array/mr_pe.sv rtl/attention/mr_attn_mac.sv tests/synth/dsp48e2.v)
{
    iverilog -g2012 -Wall -Wno-timescale -t null -Irtl/common -DMILLRACE_DSP48E2 -Pmr_pe.DSP=1 -s mr_pe -s mr_attn_mac "${dsp[@]}" 2>&1 |
        grep -v ': sorry: constant selects in always_'
    verilator --lint-only -Wall -Irtl/common -DMILLRACE_DSP48E2 -GDSP=1 --top-module mr_pe "${dsp[@]}" 2>&1
    verilator --lint-only -Wall -Irtl/common -DMILLRACE_DSP48E2 --top-module mr_attn_mac "${dsp[@]}" 2>&1
} >"$tmp/i"
[ ! -s "$tmp/i" ]
tap $? "iverilog and verilator -Wall: mr_pe and mr_attn_mac in DSP48E2" "$tmp/i"

# ---- Yosys: the same files; clocked by clk_i only, no latch, no asynchronous reset --------------------
# The tops stand in one module, without their ports: modules that they share are read and elaborated once.
{
    for c in tiny tinyt; do
        kernel $c
        sed "s/^module millrace_kernel\b/module millrace_kernel_$c/" "$tmp/millrace_kernel.v" >"$tmp/kernel_$c.v"
        echo "read_verilog -sv $tmp/kernel_$c.v"
    done
    echo "read_verilog -sv -Irtl/common -I$build/gen ${files[*]} $tmp/tops.v"
    echo "hierarchy -check -top tops; proc"
    for top in millrace_kernel_tiny millrace_kernel_tinyt millrace_pcie; do echo "select -assert-min 1 tops/t:*$top*"; done
    echo "select -assert-none t:\$dlatch t:\$adlatch t:\$dlatchsr t:\$sr t:\$adff t:\$adffe t:\$aldff t:\$dffsr"
} >"$tmp/y.ys"
{
    echo "module tops; millrace_kernel_tiny u_tiny (); millrace_kernel_tinyt u_tinyt ();"
    echo "millrace_pcie #($(params tiny | sed 's/-G\([A-Z_0-9]*\)=\([^ ]*\)/.\1(\2)/g; s/) *\./), ./g')) u_pcie (); endmodule"
} >"$tmp/tops.v"
yosys -q -e 'multiple conflicting drivers|Latch inferred' -s "$tmp/y.ys" >"$tmp/y" 2>&1
tap $? "yosys hierarchy, proc: millrace_kernel of tiny and tinyt, millrace_pcie of tiny; no latch, no asynchronous reset" "$tmp/y"
