# SPDX-License-Identifier: Apache-2.0
# Rows of the table of measured frequencies: those of NEW, and those of OLD whose modules are not among them.
# usage: awk -f rows.awk NEW OLD
BEGIN { FS = " *[|] *" }
!/^[|] `/ { next }
FILENAME == ARGV[1] { ran[$2, $3, $4] = 1 }
FILENAME == ARGV[1] || !(($2, $3, $4) in ran)
