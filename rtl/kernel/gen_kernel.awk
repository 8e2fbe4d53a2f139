# SPDX-License-Identifier: Apache-2.0
# configs.def, kernel.def and core_ports.def (in this order) -> what a configuration's Vitis kernel consists of:
#   out=top       the top module millrace_kernel (Verilog): mr_kernel with Vitis' port names
#   out=package   kernel.xml for package_xo
#   out=metadata  the xclbin's embedded metadata, for emulation (cus=N compute units); with gen_update.awk and the
#                 header of hls/ also that of millrace_update, as many
#   out=adapter   the simulator's top: millrace_kernel behind the ports of millrace_core
# usage: awk -v config=NAME -v out=KIND [-v cus=N] -f gen_kernel.awk -f gen_update.awk configs.def kernel.def \
#            core_ports.def [hls/millrace_update.h]
function p(text) { print text }

# One signal of an AXI port, as Vitis sees it: kind m (from the kernel), s (to the kernel).
function axi(kind, width, name) {
    sig_kind[sigs] = kind; sig_width[sigs] = width; sig_name[sigs++] = name
}
function range(width) { return width == 1 ? "       " : sprintf("%-7s", "[" width - 1 ":0]") }

function zero(width) { return "{" width "{1'b0}}" }
function parameters(indent, type,   i, text) {
    for (i = 2; i <= columns; i++)
        text = text indent "parameter " type " " name[i] " = " value[i] (i < columns ? ",\n" : "")
    return text
}
function passed(   i, text) {
    for (i = 2; i <= columns; i++) text = text (i > 2 ? ", " : "") "." name[i] "(" name[i] ")"
    return text
}

function port_name(c) { return "m_axi_gmem" (c == N ? "_host" : c) }

function top_ports(   c, i) {
    for (c = 0; c <= N; c++) {
        p("")
        for (i = 0; i < sigs; i++)
            p("  " (sig_kind[i] == "m" ? "output wire " : "input  wire ") range(sig_width[i]) " " port_name(c) "_" sig_name[i] ",")
    }
}

# The constant signals of a port, and for a channel the whole write side.
function top_constants(c,   i, n, v) {
    for (i = 0; i < sigs; i++) {
        n = sig_name[i]
        if (sig_kind[i] != "m") continue
        if (c < N ? (n "_o") in is_ch : (n "_o") in is_host) continue
        v = n == "bready" ? "1'b1" : fixed[n] != "" ? fixed[n] : zero(sig_width[i])
        p("  assign " port_name(c) "_" n " = " v ";")
    }
}

# {c=N-1, ..., c=0} of a channel signal.
function packed(signal,   c, text) {
    for (c = N - 1; c >= 0; c--) text = text (c < N - 1 ? ", " : "") port_name(c) "_" signal
    return "{" text "}"
}

function emit_top(   c, i, n) {
    p("// SPDX-License-Identifier: Apache-2.0")
    p("// Generated from rtl/spec for configuration " config "; do not edit. The Vitis kernel: see mr_kernel.")
    p("module millrace_kernel #(\n" parameters("  ", "integer") "\n) (")
    p("  input  wire         ap_clk,\n  input  wire         ap_rst_n,\n")
    for (i = 0; i < lites; i++)
        p("  " (lite_kind[i] == "m" ? "output wire " : "input  wire ") range(lite_width[i]) " s_axi_control_" lite_name[i] ",")
    top_ports()
    p("\n  // The name is Vitis'.\n  // verilator lint_off SYMRSVDWORD\n  output wire         interrupt\n  // verilator lint_on SYMRSVDWORD\n);")
    for (c = 0; c <= N; c++) { p(""); top_constants(c) }
    p("\n  // What these channels carry has no meaning for the kernel.\n  wire unused;\n  assign unused = &{1'b0")
    for (c = 0; c <= N; c++)
        for (i = 0; i < sigs; i++)
            if (sig_kind[i] == "s" && !(c < N ? (sig_name[i] "_i") in is_ch : (sig_name[i] "_i") in is_host))
                p("    , " port_name(c) "_" sig_name[i])
    p("  };\n")
    p("  wire unused_idle;\n  mr_kernel #(\n    " passed() "\n  ) u_kernel (\n    .clk_i (ap_clk),\n    .rst_ni(ap_rst_n),")
    for (i = 0; i < lites; i++)
        p("    .s_axil_" lite_name[i] (lite_kind[i] == "m" ? "_o" : "_i") "(s_axi_control_" lite_name[i] "),")
    for (i = 0; i < chs; i++) p("    .m_ch_" ch_name[i] "(" packed(short(ch_name[i])) "),")
    for (i = 0; i < hosts; i++) p("    .m_host_" host_name[i] "(" port_name(N) "_" short(host_name[i]) "),")
    p("    .irq_o (interrupt),\n    .idle_o(unused_idle)\n  );\nendmodule")
}
# What core_ports.def adds must be a signal of Vitis' AXI ports, in its direction and width.
function check(port, width) {
    if ((port width) in known) return
    print "gen_kernel.awk: core_ports.def: Vitis has no AXI signal " port " of " width " bits" >"/dev/stderr"
    exit 1
}
function short(port) { sub(/_[io]$/, "", port); return port }

# The simulator library's ports (sim/verilator/simlib.cpp) around millrace_kernel.
function emit_adapter(   c, i, n, w, dir) {
    p("// SPDX-License-Identifier: Apache-2.0")
    p("// Generated from rtl/spec for configuration " config "; do not edit. For simulation only: irq_o is high while")
    p("// no run is under way, whether or not the host wants interrupts.")
    p("/* verilator lint_off UNUSED */\n/* verilator lint_off PINCONNECTEMPTY */\nmodule mr_kernel_sim #(\n" parameters("  ", "int") "\n) (")
    p("  input logic clk_i,\n  input logic rst_ni,")
    for (i = 0; i < lites; i++)
        p("  " (lite_kind[i] == "m" ? "output logic " : "input logic ") range(lite_width[i]) " s_axil_" lite_name[i] (lite_kind[i] == "m" ? "_o," : "_i,"))
    for (i = 0; i < chs; i++)
        p("  " (ch_name[i] ~ /_o$/ ? "output" : "input") " logic [N*" ch_width[i] "-1:0] m_ch_" ch_name[i] ",")
    for (i = 0; i < hosts; i++)
        p("  " (host_name[i] ~ /_o$/ ? "output" : "input") " logic " range(host_width[i]) " m_host_" host_name[i] ",")
    for (i = 0; i < statuses; i++)
        p("  " status_dir[i] "put logic " range(status_width[i]) " " status[i] (status_dir[i] == "in" ? "_i" : "_o") (i < statuses - 1 ? "," : "\n);"))
    p("  assign irq_o = u_kernel.u_kernel.idle_o;\n  assign busy_o = !irq_o;\n")
    for (i = 0; i < statuses; i++) if (status[i] != "irq" && status[i] != "busy" && status_dir[i] == "out") p("  assign " status[i] "_o = '0;")
    p("  millrace_kernel #(\n    " passed() "\n  ) u_kernel (\n    .ap_clk  (clk_i),\n    .ap_rst_n(rst_ni),")
    for (i = 0; i < lites; i++)
        p("    .s_axi_control_" lite_name[i] "(s_axil_" lite_name[i] (lite_kind[i] == "m" ? "_o)," : "_i),"))
    for (c = 0; c <= N; c++)
        for (i = 0; i < sigs; i++) {
            n = sig_name[i] (sig_kind[i] == "m" ? "_o" : "_i")
            w = c == N ? "m_host_" n : "m_ch_" n "[" sig_width[i] * c "+:" sig_width[i] "]"
            if (!(c < N ? n in is_ch : n in is_host)) w = sig_kind[i] == "m" ? "" : "'0"
            p("    ." port_name(c) "_" sig_name[i] "(" w "),")
        }
    p("    .interrupt()\n  );\nendmodule")
}

# ---- XML ---------------------------------------------------------------------------------------------
function each_arg(kind,   i, c, id) {
    for (i = 0; i < args; i++)
        xml_arg(kind, id++, arg_name[i], arg_port[i] == "control" ? "s_axi_control" : port_name(N), arg_offset[i], arg_bytes[i])
    for (c = 0; c < N; c++)
        for (i = 0; i < chargs; i++)
            xml_arg(kind, id++, charg_name[i] "_" c, port_name(c), channel + stride * c + charg_offset[i], 8)
}
function hex(text,   i, v) {
    text = tolower(text)
    if (text !~ /^0x/) return text + 0
    for (i = 3; i <= length(text); i++) v = 16 * v + index("0123456789abcdef", substr(text, i, 1)) - 1
    return v
}
function xml_arg(kind, id, n, port, offset, bytes,   scalar) {
    scalar = port == "s_axi_control"
    p(sprintf("%s<arg name=\"%s\" addressQualifier=\"%d\" id=\"%d\" port=\"%s\" size=\"0x%X\" offset=\"0x%03X\" hostOffset=\"0x0\" hostSize=\"0x%X\" type=\"%s\"/>",
              kind == "package" ? "      " : "          ", n, !scalar, id, port, bytes, offset, bytes, !scalar ? "void*" : bytes == 8 ? "ulong" : "uint"))
}
function xml_ports(indent,   c, master) {
    master = " mode=\"master\" range=\"0xFFFFFFFFFFFFFFFF\" dataWidth=\"512\" portType=\"addressable\" base=\"0x0\"/>"
    p(indent "<port name=\"s_axi_control\" mode=\"slave\" range=\"" kernel_range "\" dataWidth=\"32\" portType=\"addressable\" base=\"0x0\"/>")
    for (c = 0; c <= N; c++) p(indent "<port name=\"" port_name(c) "\"" master)
}
function emit_package() {
    p("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
    p("<!-- Generated from rtl/spec for configuration " config "; do not edit. -->")
    p("<root versionMajor=\"1\" versionMinor=\"6\">")
    p("  <kernel name=\"millrace_kernel\" language=\"ip_c\" vlnv=\"millrace:kernel:millrace_kernel:1.0\" attributes=\"\"")
    p("          preferredWorkGroupSizeMultiple=\"0\" workGroupSize=\"1\" interrupt=\"true\" hwControlProtocol=\"ap_ctrl_hs\">")
    p("    <ports>"); xml_ports("      "); p("    </ports>")
    p("    <args>"); each_arg("package"); p("    </args>")
    p("  </kernel>\n</root>")
}
function emit_metadata(   i) {
    p("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
    p("<project name=\"millrace\">\n  <platform vendor=\"millrace\" boardid=\"emulation\" name=\"emulation\" featureRomTime=\"0\">")
    p("    <version major=\"1\" minor=\"0\"/>\n    <description/>\n    <board name=\"emulation\" vendor=\"millrace\" fpga=\"\"/>")
    p("    <device name=\"fpga0\" fpgaDevice=\"\" addrWidth=\"0\">")
    p("      <core name=\"OCL_REGION_0\" target=\"hw_em\" type=\"clc_region\" clockFreq=\"0MHz\" numComputeUnits=\"" cus * (signature ? 2 : 1) "\">")
    p("        <kernelClocks>\n          <clock port=\"KERNEL_CLK\" frequency=\"" clock_khz / 1000 ".0MHz\"/>\n        </kernelClocks>")
    p("        <kernel name=\"millrace_kernel\" language=\"ip_c\" vlnv=\"millrace:kernel:millrace_kernel:1.0\" type=\"pl\"")
    p("                preferredWorkGroupSizeMultiple=\"0\" workGroupSize=\"1\" interrupt=\"true\" hwControlProtocol=\"ap_ctrl_hs\">")
    xml_ports("          ")
    each_arg("metadata")
    for (i = 1; i <= cus; i++)
        p(sprintf("          <instance name=\"millrace_kernel_%d\">\n            <addrRemap base=\"0x%X\" port=\"s_axi_control\"/>\n          </instance>", i, 25165824 + 65536 * (i - 1)))
    p("        </kernel>")
    if (signature) emit_update()
    p("      </core>\n    </device>\n  </platform>\n</project>")
}

BEGIN {
    sigs = lites = chs = hosts = statuses = args = chargs = 0
    axi("m", 1, "awvalid"); axi("s", 1, "awready"); axi("m", 64, "awaddr"); axi("m", 8, "awlen")
    axi("m", 3, "awsize"); axi("m", 2, "awburst"); axi("m", 1, "awid"); axi("m", 1, "awlock")
    axi("m", 4, "awcache"); axi("m", 3, "awprot"); axi("m", 4, "awqos"); axi("m", 4, "awregion")
    axi("m", 1, "wvalid"); axi("s", 1, "wready"); axi("m", 512, "wdata"); axi("m", 64, "wstrb"); axi("m", 1, "wlast")
    axi("s", 1, "bvalid"); axi("m", 1, "bready"); axi("s", 2, "bresp"); axi("s", 1, "bid")
    axi("m", 1, "arvalid"); axi("s", 1, "arready"); axi("m", 64, "araddr"); axi("m", 8, "arlen")
    axi("m", 3, "arsize"); axi("m", 2, "arburst"); axi("m", 1, "arid"); axi("m", 1, "arlock")
    axi("m", 4, "arcache"); axi("m", 3, "arprot"); axi("m", 4, "arqos"); axi("m", 4, "arregion")
    axi("s", 1, "rvalid"); axi("m", 1, "rready"); axi("s", 512, "rdata"); axi("s", 1, "rlast"); axi("s", 2, "rresp"); axi("s", 1, "rid")
    # 64 bytes a beat, INCR, bufferable and modifiable, unprivileged data.
    n = split("aw ar", ways)
    for (i = 1; i <= n; i++) {
        fixed[ways[i] "size"] = "3'd6"; fixed[ways[i] "burst"] = "2'b01"; fixed[ways[i] "cache"] = "4'b0011"
        fixed[ways[i] "id"] = fixed[ways[i] "lock"] = fixed[ways[i] "prot"] = fixed[ways[i] "qos"] = fixed[ways[i] "region"] = ""
    }
    if (!cus) cus = 1
}
$1 == "#" && $2 == "name" { columns = NF - 1; for (i = 3; i <= NF; i++) { name[i - 1] = $i; if ($i == "CLOCK_KHZ") clock_column = i - 1 } }
NF && $1 == config && !found { found = 1; for (i = 2; i <= columns; i++) value[i] = $i; N = $2; clock_khz = $clock_column }
$1 == "const" && $2 == "KERNEL_RANGE" { kernel_range = $3 }
# core_ports.def. From the kernel is m, to the kernel s, whichever side of a bus that is.
$1 == "port" && $2 == "axil" { lite_kind[lites] = $3 == "out" ? "m" : "s"; lite_width[lites] = $4; lite_name[lites++] = $5 }
$1 == "port" && $2 == "ch" { n = $5 ($3 == "out" ? "_o" : "_i"); ch_name[chs] = n; ch_width[chs++] = $4; is_ch[n] }
$1 == "port" && $2 == "host" { n = $5 ($3 == "out" ? "_o" : "_i"); host_name[hosts] = n; host_width[hosts++] = $4; is_host[n] }
$1 == "port" && $2 == "status" { status[statuses] = $5; status_width[statuses] = $4; status_dir[statuses++] = $3 }
$1 == "arg" { arg_name[args] = $2; arg_offset[args] = hex($3); arg_bytes[args] = $4; arg_port[args++] = $5 }
$1 == "channel" { channel = hex($2); stride = hex($3) }
$1 == "charg" { charg_name[chargs] = $2; charg_offset[chargs++] = hex($3) }
END {
    for (i = 0; i < sigs; i++) known[sig_name[i] (sig_kind[i] == "m" ? "_o" : "_i") sig_width[i]]
    for (i = 0; i < chs; i++) check(ch_name[i], ch_width[i])
    for (i = 0; i < hosts; i++) check(host_name[i], host_width[i])
    if (!found) { print "gen_kernel.awk: no configuration " config >"/dev/stderr"; exit 1 }
    if (out == "top") emit_top()
    else if (out == "adapter") emit_adapter()
    else if (out == "package") emit_package()
    else if (out == "metadata") emit_metadata()
    else { print "gen_kernel.awk: out=" out " is not known" >"/dev/stderr"; exit 1 }
}
