#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The udev rule, applied by Debian's udevd in the virtual machine to the driver's device; TAP.
# usage: [BUILD=build] tests/driver/udev.sh
set -u
. tests/tools/tap.sh
build=${BUILD:-build}
if [ ! -f "$build/vm/vmlinuz" ] || ! BUILD=$build tests/driver/kernels.sh udev; then
    ok "driver: udev # SKIP no QEMU, kernel or udev" true
    done_testing
fi
root=$work/root udev=$build/kernels/udev
mkdir -p "$root/bin" "$root/run" "$root/etc/udev/rules.d"
cp "$udev/bin/udevadm" "$root/bin/"
ln -s udevadm "$root/bin/systemd-udevd"
ldd "$udev/bin/udevadm" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r lib; do
    mkdir -p "$root$(dirname "$lib")" && cp -L "$lib" "$root$lib"
done
cp driver/60-millrace.rules "$root/etc/udev/rules.d/"
printf 'root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nrender:x:104:alice\nalice:x:1000:\nbob:x:1001:\n' >"$root/etc/group"
cat >"$root/bin/rule" <<'END'
#!/bin/sh
say() { status=$?; [ $status = 0 ] && echo "ok - $1" || { echo "not ok - $1"; failed=1; }; }
may() { su "$1" -c ': </dev/millrace0' 2>/dev/null; }
chmod 755 / # as it is everywhere but in an archive made from a temporary directory
failed=0
! may alice
say "before the rule only root may"
systemd-udevd --daemon 2>/tmp/said && udevadm trigger --action=add /sys/class/misc/millrace0 && udevadm settle
[ "$(stat -c '%a %G' /dev/millrace0)" = "660 render" ]
say "mode and group"
may alice
say "a member of the group may"
! may bob
say "another user may not"
udevadm test /sys/class/misc/millrace0 2>&1 | grep -E '60-millrace.rules' | tee /tmp/test | grep -iE 'invalid|unknown|ignoring|fail' >/tmp/bad
grep -v "^Starting" /tmp/said >>/tmp/bad
[ -s /tmp/test ] && [ ! -s /tmp/bad ]
say "udevd has nothing against it"
rmmod millrace && insmod /millrace.ko && udevadm settle && [ "$(stat -c '%a %G' /dev/millrace0)" = "660 render" ]
say "again when the driver is loaded again"
sed 's/^/# /' /tmp/bad
exit $failed
END
chmod 755 "$root/bin/rule"
rule() {
    EXTRA=$root sim/pci/vm.sh rule >"$work/log"
    local status=$?
    sed 's/^/    /' "$work/log"
    [ $status = 0 ] && [ "$(grep -c '^ok - ' "$work/log")" = 6 ]
}
ok "driver: udev rule" rule
done_testing
