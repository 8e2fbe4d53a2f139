#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installing the driver: into a DESTDIR and out of it again, dkms, the udev rule's form; TAP.
# usage: [BUILD=build] [KDIR=headers] tests/driver/package.sh quick|full
set -u
. tests/tools/tap.sh
KDIR=${KDIR:-/none}
PATH=$PATH:/usr/sbin:/sbin # where modinfo and dkms are, and users do not look
build=${BUILD:-build} dest=$work/dest version=$(sed -n 's/^#define MR_VERSION_STRING "\(.*\)"/\1/p' host/include/millrace.h)
make=(make -s --no-print-directory BUILD="$build" PREFIX=/usr/local UDEVDIR=/etc/udev/rules.d)
quiet() {
    "$@" >"$work/said" 2>&1 && [ ! -s "$work/said" ] && return
    head -20 "$work/said" | sed 's/^/# /'
    return 1
}
files() { (cd "$dest" && find . ! -type d | sort); }

# ---- the rule: each key is one of udev's, the device's name is the driver's
# udevd itself reads it in the virtual machine (tests/driver/run.sh full).
rule() {
    awk '!/^#/ && NF { n = split($0, part, /, */); rules++
        for (i = 1; i <= n; i++)
            if (part[i] !~ /^(SUBSYSTEM|KERNEL)=="[^"]+"$/ && part[i] !~ /^(GROUP|MODE)="[^"]+"$/ && part[i] !~ /^TAG\+="[^"]+"$/) { print "# " part[i]; bad = 1 } }
        END { exit bad || rules != 1 }' driver/60-millrace.rules
}
ok udev_rule_is_one_of_known_keys rule
ok udev_rule_names_the_device grep -q 'KERNEL=="millrace\[0-9\]\*"' driver/60-millrace.rules
ok driver_names_the_device grep -q '"millrace%d"' driver/pci.c

# ---- dkms' sources are complete without the repository
ok make_dkms quiet "${make[@]}" dkms
tree=$build/dkms/millrace-$version
ok dkms_conf_has_the_version grep -qx "PACKAGE_VERSION=\"$version\"" "$tree/dkms.conf"
conf() { bash -c '. "$1/dkms.conf" && [ "$PACKAGE_NAME" = millrace ] && [ "${BUILT_MODULE_NAME[0]}" = millrace ] && [ -n "${MAKE[0]}" ]' _ "$tree"; }
ok dkms_conf_is_read_by_a_shell conf
ok dkms_tree_has_every_source diff <({ (cd driver && ls ./*.[ch]) && echo ./millrace_hw.h; } | sort) <(cd "$tree" && ls ./*.[ch] | sort)
ok dkms_tree_has_the_licences test -s "$tree/LICENSES/GPL-2.0" -a -s "$tree/LICENSES/Linux-syscall-note"

exits_saying() { # STATUS PATTERN COMMAND...
    "${@:3}" >"$work/said" 2>&1
    [ $? = "$1" ] && grep -q -e "$2" "$work/said"
}
ok install_without_headers_says_so exits_saying 2 "no kernel headers in /none" "${make[@]}" install-driver DESTDIR="$dest" KDIR=/none
ok and_installs_nothing test ! -e "$dest"

if [ ! -e "$KDIR/Makefile" ]; then
    ok "install_driver # SKIP no kernel headers in $KDIR (make deps-driver)" true
    done_testing
fi

# ---- install and uninstall
release_of() { sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' "$1/include/generated/utsrelease.h"; }
release=$(release_of "$KDIR")
ok install_driver quiet "${make[@]}" install-driver DESTDIR="$dest" KDIR="$KDIR"
files >"$work/installed"
{
    echo "./etc/udev/rules.d/60-millrace.rules"
    echo "./lib/modules/$release/updates/millrace.ko"
    echo "./usr/local/include/linux/millrace.h"
    for f in driver.md driver-faults.md driver-inside.md driver-uapi.md pcie-function.md driver.svg debugfs-millrace sysfs-class-misc-millrace; do echo "./usr/local/share/doc/millrace/driver/$f"; done
    (cd "$tree" && find . -type f | sed "s|^\.|./usr/src/millrace-$version|")
} | sort >"$work/wanted"
ok installed_is_what_the_document_says diff "$work/wanted" "$work/installed"
ok module_is_for_that_kernel bash -c "modinfo -F vermagic '$dest/lib/modules/$release/updates/millrace.ko' | grep -q '^$release '"
ok module_has_the_device_as_alias bash -c "modinfo -F alias '$dest/lib/modules/$release/updates/millrace.ko' | grep -q '^pci:v00001234d00004D52'"
printf '#include <linux/millrace.h>\nint main(void) { return MILLRACE_UAPI_VERSION - 1; }\n' >"$work/x.c"
ok installed_header_is_found gcc -Wall -Werror -I"$dest/usr/local/include" -o "$work/x" "$work/x.c"
if [ "$1" = full ]; then
    ok install_over_itself quiet "${make[@]}" install-driver DESTDIR="$dest" KDIR="$KDIR"
    ok and_nothing_is_added diff "$work/wanted" <(files)
fi
# Files that are not ours stay.
touch "$dest/etc/udev/rules.d/99-other.rules" "$dest/lib/modules/$release/updates/other.ko" "$dest/usr/src/other"
ok uninstall_driver quiet "${make[@]}" uninstall-driver DESTDIR="$dest"
ok uninstall_leaves_what_is_not_ours test "$(files | tr '\n' ' ')" = \
    "./etc/udev/rules.d/99-other.rules ./lib/modules/$release/updates/other.ko ./usr/src/other "
ok and_no_directory_of_ours test ! -e "$dest/usr/src/millrace-$version" -a ! -e "$dest/usr/local/share/doc/millrace" -a ! -e "$dest/usr/local/include/linux"
ok install_for_dkms quiet "${make[@]}" install-driver DESTDIR="$dest" DKMS=1 KDIR=/none
ok install_for_dkms_is_all_but_the_module diff <(grep -v '\.ko$' "$work/wanted") <(files | grep -v other)
ok uninstall_from_dkms quiet "${make[@]}" uninstall-driver DESTDIR="$dest"
ok uninstall_again_finds_nothing quiet "${make[@]}" uninstall-driver DESTDIR="$dest"
[ "$1" = full ] || done_testing

# ---- dkms itself, with trees of its own, for both kernels
if ! command -v dkms >/dev/null; then
    ok "dkms # SKIP no dkms (make deps-driver-check)" true
    done_testing
fi
mkdir -p "$work/dkms" "$work/src"
cp -r "$tree" "$work/src/"
# Without a program to sign with dkms makes no key for this machine.
dkms_() { sign_file=/none dkms "$1" --dkmstree "$work/dkms" --sourcetree "$work/src" --installtree "$work/lib" -m millrace -v "$version" "${@:2}" >"$work/said" 2>&1 ||
    { tail -20 "$work/said" | sed 's/^/# /'; return 1; }; }
built() { modinfo -F vermagic "$work/dkms/millrace/$version/$1/x86_64/module/millrace.ko" | grep -q "^$1 "; }
ok dkms_add dkms_ add
ok dkms_builds_for_the_installed_headers dkms_ build -k "$release" --kernelsourcedir "$KDIR"
ok dkms_has_built_it built "$release"
if kdir=$(BUILD=$build tests/driver/kernels.sh 6.12); then
    other=$(release_of "$kdir")
    ok dkms_builds_for_6.12 dkms_ build -k "$other" --kernelsourcedir "$kdir"
    ok dkms_has_built_it_for_6.12 built "$other"
else
    ok "dkms_builds_for_6.12 # SKIP no headers of 6.12" true
fi
ok dkms_remove dkms_ remove --all
ok dkms_leaves_no_module test -z "$(find "$work/dkms" -name '*.ko*')"
done_testing
