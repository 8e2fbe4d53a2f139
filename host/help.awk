# SPDX-License-Identifier: Apache-2.0
# `make help`: the lines "## target: what it does" of the makefiles, in groups by the target's name.
BEGIN {
    n = split("Try it|Build|Test|Measure|Install|Packages", group, "|")
    split("^demo ^(test|full|lint|formal|fuzz|driver-check) ^(bench|synth) " \
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
    lines[g] = lines[g] sprintf("  %-20s %s\n", target, what)
}
END {
    for (g = 1; g <= n; g++)
        printf "%s%s\n%s", (g > 1 ? "\n" : ""), group[g], lines[g]
}
