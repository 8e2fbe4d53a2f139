# SPDX-License-Identifier: Apache-2.0
# `make help`: the lines "## target: what it does" of the makefiles, in groups by the target's name, each
# in the alphabet's order.
BEGIN {
    n = split("Try it|Build|Test|Measure|Install|Packages", group, "|")
    split("^demo ^(test|full|lint|formal|fuzz|driver-check) ^(area|bench|synth|timing) " \
        "^(install|uninstall|dist|dkms) ^deps", pattern, " ")
    split("1 3 4 5 6", of, " ")
}
/^## [a-z0-9-]+:/ {
    target = $2
    sub(/:$/, "", target)
    what = $0
    sub(/^## [^:]*: */, "", what)
    g = 2
    for (i = 1; i in pattern; i++)
        if (target ~ pattern[i]) g = of[i]
    for (i = ++count[g]; i > 1 && name[g, i - 1] > target; i--) {
        name[g, i] = name[g, i - 1]
        line[g, i] = line[g, i - 1]
    }
    name[g, i] = target
    line[g, i] = sprintf("  %-20s %s", target, what)
}
END {
    for (g = 1; g <= n; g++) {
        print (g > 1 ? "\n" : "") group[g]
        for (i = 1; i <= count[g]; i++)
            print line[g, i]
    }
}
