# SPDX-License-Identifier: Apache-2.0
# Functions of C and C++ (not macros, in capitals) with more than 8 parameters, a prototype or a definition each: "NAME PARAMETERS FILE:LINE".
# They begin in the first column, as clang-format has it.
FNR == 1 { text = "" }
{ sub(/\/\/.*/, "") }
text == "" && !/^[A-Za-z_].*\(/ { next }
{
    if (text == "") line = FNR
    text = text $0
    opened = text
    if (gsub(/\(/, "", opened) > gsub(/\)/, "", opened)) next
    depth = commas = 0
    name = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(" && depth++ == 0) {
            commas = 0
            if (match(substr(text, 1, i - 1), /[A-Za-z_0-9]+$/)) name = substr(text, RSTART, RLENGTH)
        } else if (c == ")") {
            if (--depth == 0 && commas >= 8 && name !~ /^[A-Z_0-9]+$/) print name, commas + 1, FILENAME ":" line
        } else if (c == "," && depth == 1) commas++
    }
    text = ""
}
