# SPDX-License-Identifier: Apache-2.0
# Ports of modules: reads bundles.def, then files of the RTL, and prints "MODULE PORTS SIGNALS". A bundle is one
# port, as its line in the header is, and as many signals as bundles.def has in it.
FNR == 1 { bundles = FILENAME ~ /\.def$/; header = 0 }
bundles {
    sub(/#.*/, "")
    if ($1 == "bundle") name = toupper($2)
    if ($1 == "in" || $1 == "out") signals[name]++
    next
}
{ line = $0; sub(/\/\/.*/, "", line) }
/^module / { module = $2; sub(/[^a-z_0-9].*/, "", module); header = 1; ports = total = 0 }
header && line ~ /^ *(input|output) / { ports++; total++; total += gsub(/,/, ",", line) - (line ~ /, *$/); }
header && line ~ /^ *`MR_/ {
    match(line, /`MR_[A-Z_]+/)
    name = substr(line, RSTART + 4, RLENGTH - 6)
    ports++
    total += signals[name]
}
header && line ~ /^\);/ { header = 0; print module, ports, total }
