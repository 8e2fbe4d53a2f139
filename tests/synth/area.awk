# SPDX-License-Identifier: Apache-2.0
# Yosys `stat` of a configuration's modules -> what its units take, all instances together; the last line is the whole.
# usage: awk -v config=NAME -f cells.awk -f area.awk MODULES STAT..   MODULES: of split.awk
#   lines of "config<TAB>unit<TAB>instances<TAB>LUT<TAB>LUT as memory<TAB>FF<TAB>DSP48E2<TAB>BRAM36<TAB>URAM<TAB>CARRY4"
function row(name, times) {
    printf "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%g\t%d\t%d\n", config, name, times, lut, ram, ff, dsp, bram, uram, carry
}
# Times that a unit stands in what is below a module.
function instances(mod, unit,   k, n) {
    for (k = 1; k <= cells[mod]; k++)
        if (name[mod, k] == unit) n += count[mod, k]
        else if (name[mod, k] in cells) n += count[mod, k] * instances(name[mod, k], unit)
    return n
}
FNR == NR { split($0, f, "\t"); sub(/^\\/, "", f[2]); if (f[5]) unit[++units] = f[2]; if (f[3] == "millrace_core") top = f[2]; next }
END {
    for (i = 1; i <= units; i++) {
        times = instances(top, unit[i])
        if (!times) continue # another one stands for it: they differ in the number of their channel only
        clear()
        add(unit[i], times)
        row(base(unit[i]), times)
    }
    clear()
    add(top, 1)
    row("millrace_core", 1)
    exit bad
}
