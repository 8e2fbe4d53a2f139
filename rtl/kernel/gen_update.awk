# SPDX-License-Identifier: Apache-2.0
# The kernel millrace_update (hls/) in the embedded metadata of an xclbin for emulation: its arguments from the
# signature in hls/millrace_update.h, at the registers that Vitis gives them: from 0x10 on in their order, a pointer
# or a 64-bit number two words, another number one, each with a reserved word behind it. For gen_kernel.awk.
function update_args(   i, id, n, words, at, type, pointer) {
    at = 16
    n = split(signature, words, ",")
    for (i = 1; i <= n; i++) {
        type = words[i]
        pointer = type ~ /\*/
        match(type, /[a-z_0-9]+ *$/)
        words[i] = substr(type, RSTART)
        type = pointer ? "void*" : type ~ /uint64_t/ ? "ulong" : "uint"
        p(sprintf("          <arg name=\"%s\" addressQualifier=\"%d\" id=\"%d\" port=\"%s\" size=\"0x%X\" offset=\"0x%03X\" hostOffset=\"0x0\" hostSize=\"0x%X\" type=\"%s\"/>",
                  words[i], pointer, id++, pointer ? "m_axi_" words[i] : "s_axi_control",
                  type == "uint" ? 4 : 8, at, type == "uint" ? 4 : 8, type))
        at += type == "uint" ? 8 : 12
    }
}
function update_ports(   i, n, words, name) {
    p("          <port name=\"s_axi_control\" mode=\"slave\" range=\"0x1000\" dataWidth=\"32\" portType=\"addressable\" base=\"0x0\"/>")
    n = split(signature, words, ",")
    for (i = 1; i <= n; i++)
        if (words[i] ~ /\*/) {
            name = words[i]; sub(/.*\*/, "", name)
            p("          <port name=\"m_axi_" name "\" mode=\"master\" range=\"0xFFFFFFFFFFFFFFFF\" dataWidth=\"" \
              (words[i] ~ /mr_quad/ ? 128 : words[i] ~ /mr_update_job/ ? 1024 : 512) "\" portType=\"addressable\" base=\"0x0\"/>")
        }
}
function emit_update(   i) {
    p("        <kernel name=\"millrace_update\" language=\"c\" vlnv=\"xilinx.com:hls:millrace_update:1.0\" type=\"pl\"")
    p("                preferredWorkGroupSizeMultiple=\"0\" workGroupSize=\"1\" interrupt=\"true\" hwControlProtocol=\"ap_ctrl_hs\">")
    update_ports()
    update_args()
    for (i = 1; i <= cus; i++)
        p(sprintf("          <instance name=\"millrace_update_%d\">\n            <addrRemap base=\"0x%X\" port=\"s_axi_control\"/>\n          </instance>", i, 27262976 + 65536 * (i - 1)))
    p("        </kernel>")
}
/^typedef void mr_update_kernel\(/ { in_signature = 1; sub(/.*\(/, "") }
in_signature { signature = signature " " $0; if (/\);/) { in_signature = 0; sub(/\);.*/, "", signature) } }
