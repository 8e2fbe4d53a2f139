# SPDX-License-Identifier: Apache-2.0
# Yosys `stat` of a hierarchical netlist -> rows of a table, each module with everything below it.
# usage: awk -v rows=FILE -f cells.awk -f table.awk STAT   rows: lines of "label<TAB>path", path from the top: a/b/c,
# each step the first instance's module name without parameters. A module that is not there is an error.
END {
    while ((getline line < rows) > 0) {
        split(line, f, "\t")
        n = split(f[2], step, "/")
        at = ""
        for (i = 1; i <= mods; i++) if (base(order[i]) == step[1]) { at = order[i]; break }
        for (s = 2; s <= n && at != ""; s++) {
            found = ""
            for (k = 1; k <= cells[at]; k++) if (base(name[at, k]) == step[s] && (name[at, k] in cells)) { found = name[at, k]; break }
            at = found
        }
        if (at == "") { print "no " f[2] " in the netlist" >"/dev/stderr"; bad = 1; continue }
        clear()
        add(at, 1)
        printf "| %s | `%s` | %d | %d | %d | %d | %g | %d |\n", f[1], step[n], lut, ram, ff, dsp, bram, carry
        if (uram) { print "URAM288 in " f[2] ": the table has no column for it" >"/dev/stderr"; bad = 1 }
    }
    exit bad
}
