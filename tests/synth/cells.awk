# SPDX-License-Identifier: Apache-2.0
# Reads Yosys `stat` of modules in cells of UltraScale+; add(module, times) then counts cells with everything
# below a module, into lut, ram, ff, dsp, bram, uram, carry and mux (clear() sets them to 0). Used by table.awk and
# area.awk.
function base(type,   part, k) { k = split(type, part, "\\"); return k > 1 ? part[2] : type }
function lut_of(t) { # LUTs that a memory or shift register takes
    if (t ~ /^(RAM32M16|RAM64M8|RAM256X1D|RAM32X16DR8|RAM64X8SW|RAM512X1S)$/) return 8
    if (t ~ /^(RAM32M|RAM64M|RAM128X1D|RAM256X1S)$/) return 4
    if (t ~ /^(RAM32X1D|RAM64X1D|RAM128X1S)$/) return 2
    if (t ~ /^(RAM32X1S|RAM64X1S|SRL16E|SRLC16E|SRLC32E)$/) return 1
    return 0
}
function add(mod, times,   t, k, type, n) {
    for (k = 1; k <= cells[mod]; k++) {
        type = name[mod, k]; n = times * count[mod, k]
        if (type in cells) add(type, n)
        else if (type ~ /^(LUT[1-6]|INV)$/) lut += n
        else if (lut_of(type)) ram += n * lut_of(type)
        else if (type ~ /^FD[RSCP]E(_1)?$/) ff += n
        else if (type ~ /^DSP48E2$/) dsp += n
        else if (type ~ /^RAMB36E2$/) bram += n
        else if (type ~ /^RAMB18E2$/) bram += n / 2
        else if (type ~ /^URAM288$/) uram += n
        else if (type ~ /^CARRY4$/) carry += n
        else if (type ~ /^MUXF[789]$/) mux += n
        else if (type !~ /^(VCC|GND|BUFG|\$scopeinfo)$/) { print "unknown cell " type " in " mod >"/dev/stderr"; bad = 1 }
    }
}
/^=== / { mod = $2; if (mod == "design") mod = ""; else if (!(mod in cells)) { cells[mod] = 0; order[++mods] = mod } ; listing = 0 }
/Number of cells:/ { listing = 1; next }
listing && mod != "" && NF == 2 && $2 ~ /^[0-9]+$/ { k = ++cells[mod]; name[mod, k] = $1; count[mod, k] = $2 }
listing && NF == 0 { listing = 0 }
function clear() { lut = ram = ff = dsp = bram = uram = carry = mux = 0 }
