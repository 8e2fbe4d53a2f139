#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's kernel image of a release, unpacked to build/vm/vmlinuz. Nothing is installed.
# usage: [BUILD=build] sim/pci/guest/kernel.sh RELEASE
set -uo pipefail
release=$1 out=$(realpath -m "${BUILD:-build}/vm")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
echo "FETCH linux-image-$release"
cd "$dir" || exit 1
apt-get download -qq "linux-image-$release" 2>/dev/null ||
    { $sudo apt-get update -qq && apt-get download -qq "linux-image-$release"; } || {
    echo "kernel.sh: no package linux-image-$release; a later linux-headers-cloud-amd64 may have one: apt-get install linux-headers-cloud-amd64" >&2
    exit 1
}
dpkg -x linux-image-*.deb . && mkdir -p "$out" && cp "boot/vmlinuz-$release" "$out/vmlinuz.tmp" && mv "$out/vmlinuz.tmp" "$out/vmlinuz"
