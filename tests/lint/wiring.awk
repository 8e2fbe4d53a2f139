# SPDX-License-Identifier: Apache-2.0
# How much of the RTL is wiring: lines of module headers and of instances. Reads all files, prints the share of
# their lines in percent.
FNR == 1 { part = "" }
{ line = $0; sub(/\/\/.*/, "", line) }
part == "" && /^module / { part = "header" }
part == "" && line ~ /^ *(mr_[a-z0-9_]+|millrace_core|DSP48E2) +(#\(|u_[a-z0-9_]+ *\()/ { part = "instance" }
part != "" {
    wiring++
    if (part == "header" ? line ~ /^\);/ : line ~ /\);/) part = ""
}
END { printf "%.1f\n", 100 * wiring / NR }
