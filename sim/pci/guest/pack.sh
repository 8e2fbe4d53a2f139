#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Initial file system: busybox, init, the module, and programs with the libraries that they load.
# usage: sim/pci/guest/pack.sh OUTPUT MODULE FILE... (a directory among them goes to /)
set -euo pipefail
out=$(realpath -m "$1") module=$2
shift 2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,proc,sys,tmp,etc}
cp "$(command -v busybox)" "$root/bin/busybox"
for name in $("$root/bin/busybox" --list); do ln -s busybox "$root/bin/$name" 2>/dev/null || true; done
ln -s bin "$root/sbin"
cp sim/pci/guest/init sim/pci/guest/reports "$root/"
cp sim/pci/guest/detectors.sh "$root/bin/"
objcopy --strip-debug "$module" "$root/millrace.ko"
for file in "$@"; do
    if [ -d "$file" ]; then
        cp -r "$file" "$root/"
        continue
    fi
    cp "$file" "$root/bin/"
    { ldd "$file" 2>/dev/null || true; } | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r lib; do
        mkdir -p "$root$(dirname "$lib")"
        cp -L "$lib" "$root$lib"
    done
done
chmod 755 "$root" "$root/init"
(cd "$root" && find . | sort | cpio -o -H newc --quiet --owner=0:0) >"$out.tmp"
mv "$out.tmp" "$out"
