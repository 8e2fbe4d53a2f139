# SPDX-License-Identifier: Apache-2.0
# A module of an elaborated design (a file of tests/synth/split.awk) -> a wrapper in Verilog whose only pins are serial:
# a flip-flop before every input and behind every output of the module `dut`, so that place and route times nothing but
# the module. usage: awk -f wrap.awk MODULE.il >wrap.v
BEGIN { ins = outs = 0 }
$1 == "end" { exit } # black boxes follow
$1 == "wire" && / (input|output) [0-9]+ / {
    width = 1
    for (i = 2; i < NF; i++) {
        if ($i == "width") width = $(i + 1)
        if ($i == "input" || $i == "output") dir = $i
    }
    name = substr($NF, 2)
    if (name == "clk_i") { pins = pins ", .clk_i(clk_i)"; next }
    if (name ~ /^clk/) { pins = pins ", ." name "(clk_i)"; next }
    at = dir == "input" ? ins : outs
    pins = pins ", ." name "(" (dir == "input" ? "in_q" : "out") "[" at + width - 1 ":" at "])"
    if (dir == "input") ins += width
    else outs += width
}
END {
    if (!outs || !ins) { print "wrap.awk: no ports" >"/dev/stderr"; exit 1 }
    print "module wrap(input clk_i, input in_i, input load_i, output reg out_o);"
    print "  reg [" ins - 1 ":0] shift_q; (* keep *) reg [" ins - 1 ":0] in_q;"
    print "  wire [" outs - 1 ":0] out; (* keep *) reg [" outs - 1 ":0] out_q; reg [" outs - 1 ":0] load_q;"
    print "  always @(posedge clk_i) begin"
    print "    shift_q <= {shift_q, in_i}; in_q <= shift_q; out_q <= out;"
    print "    load_q <= load_i ? out_q : {load_q, 1'b0}; out_o <= load_q[" outs - 1 "];"
    print "  end"
    print "  dut u_dut (" substr(pins, 3) ");"
    print "endmodule"
}
