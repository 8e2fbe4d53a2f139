# SPDX-License-Identifier: Apache-2.0
# driver/include/uapi/millrace.h -> its structures, fields, ioctls and constants, one a line, as in frozen.txt
# but without numbers. What it does not understand is printed as "unknown" and so differs.
/^struct [a-z_]+ \{$/ { s = $2; print "struct", s; next }
s && /^};$/ { s = ""; next }
s && match($0, /^\t__[us](32|64) [a-z_]+(\[[A-Z_0-9]+\])?;$/) {
    name = $2
    sub(/;/, "", name)
    count = "1"
    if (match(name, /\[.*\]/)) { count = substr(name, RSTART + 1, RLENGTH - 2); name = substr(name, 1, RSTART - 1) }
    print "field", s, name, $1, count
    next
}
s { print "unknown", $0; next }
/^#define MILLRACE_IOC_/ { print "ioctl", $2; next }
/^#define MILLRACE_/ { print "define", $2; next }
/^#define _UAPI_MILLRACE_H$/ || !/^#define|^(enum|union|typedef|struct)/ { next }
{ print "unknown", $0 }
