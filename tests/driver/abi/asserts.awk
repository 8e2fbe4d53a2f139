# SPDX-License-Identifier: Apache-2.0
# frozen.txt -> a C and C++ source that compiles only where the header has exactly that layout.
BEGIN {
    print "#include \"uapi/millrace.h\""
    print "#ifdef __cplusplus\n#define SAME_TYPE(f, t) true\n#else\n#define static_assert _Static_assert"
    print "#define SAME_TYPE(f, t) __builtin_types_compatible_p(__typeof__(f), t)\n#endif"
}
function check(what) { printf "static_assert(%s, \"%s\");\n", what, $0 }
/^#/ || !NF { next }
$1 == "struct" { check("sizeof(struct " $2 ") == " $3) }
$1 == "struct" { check("sizeof(struct " $2 ") % 8 == 0") }
$1 == "field" {
    type = $5 == "1" ? $4 : $4 "[" $5 "]"
    check("__builtin_offsetof(struct " $2 ", " $3 ") == " $6)
    check("SAME_TYPE(((struct " $2 " *)0)->" $3 ", " type ")")
}
$1 == "ioctl" || $1 == "define" { check($2 " == " $3) }
