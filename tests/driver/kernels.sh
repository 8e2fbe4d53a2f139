#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the driver's checks need of Debian beside installed packages, unpacked to build/kernels; nothing is installed.
#   6.12     headers of the 6.12 kernel that Debian 12 offers; the path for KDIR is printed
#   vmlinuz  the path of that kernel itself, for the virtual machine
#   scripts  checkpatch.pl, coccicheck, get_abi.pl and kernel-doc of the 6.1 kernel's sources (a download of 139 MB)
#   udev     udevd, for the virtual machine
# usage: [BUILD=build] tests/driver/kernels.sh 6.12|vmlinuz|scripts|udev
set -uo pipefail
what=$1 out=$(realpath -m "${BUILD:-build}/kernels")
mkdir -p "$out"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

die() {
    echo "kernels.sh: $*" >&2
    exit 1
}
download() { # PACKAGE...
    cd "$dir" || exit 1
    apt-get download -qq "$@" 2>/dev/null || { $sudo apt-get update -qq && apt-get download -qq "$@"; } ||
        die "apt has no $*"
}
case $what in
6.12)
    if [ ! -s "$out/6.12/release" ]; then
        headers() { apt-cache depends linux-headers-6.12-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-headers-6.*\)/\1/p'; }
        [ -n "$(headers)" ] || $sudo apt-get update -qq
        headers=$(headers)
        [ -n "$headers" ] || die "apt has no linux-headers-6.12-cloud-amd64: it is in bookworm-security and bookworm-backports"
        release=${headers#linux-headers-} base=${headers%-cloud-amd64}
        download "$headers" "$base-common" "linux-kbuild-${base#linux-headers-}"
        for deb in *.deb; do dpkg -x "$deb" root || exit 1; done
        # The tree knows where it would have been installed. Without vmlinux there is no BTF, and no need of pahole.
        rm -rf "root/usr/src/$headers/vmlinux" "$out/6.12"
        echo "include \$(dir \$(lastword \$(MAKEFILE_LIST)))../$base-common/Makefile" >"root/usr/src/$headers/Makefile"
        echo "$release" >root/release
        mv root "$out/6.12" || exit 1
    fi
    echo "$out/6.12/usr/src/linux-headers-$(cat "$out/6.12/release")"
    ;;
vmlinuz)
    kdir=$(BUILD=${BUILD:-build} "$0" 6.12) || exit 1
    release=${kdir##*/linux-headers-}
    if [ ! -s "$out/vmlinuz-$release" ]; then
        download "linux-image-$release"
        dpkg -x linux-image-*.deb root && mv "root/boot/vmlinuz-$release" "$out/" || exit 1
    fi
    echo "$out/vmlinuz-$release"
    ;;
scripts)
    if [ ! -d "$out/scripts" ]; then
        download linux-source-6.1
        dpkg --fsys-tarfile linux-source-6.1_*.deb | tar xO ./usr/src/linux-source-6.1.tar.xz |
            tar xJ --strip-components=1 --wildcards 'linux-source-6.1/scripts/*' || die "linux-source-6.1 is not as expected"
        mv scripts "$out/scripts" || exit 1
    fi
    ;;
udev)
    if [ ! -d "$out/udev" ]; then
        download udev
        dpkg -x udev_*.deb root && mv root "$out/udev" || exit 1
    fi
    ;;
*) die "what is '$what'?" ;;
esac
