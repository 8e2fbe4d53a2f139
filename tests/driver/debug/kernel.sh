#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The debug kernel: Debian's linux-source-6.1 as kernel.config says, for the virtual machine only. Prints the
# directory that has bzImage and tree/, which modules are built against.
# usage: [BUILD=build] [KERNEL_CACHE=build/kernels/debug] [JOBS=2] tests/driver/debug/kernel.sh
# A kernel is built once for each version of source, configuration, compiler and this script.
set -uo pipefail
config=$(realpath "$(dirname "$0")/kernel.config") source=${KERNEL_SOURCE:-/usr/src/linux-source-6.1.tar.xz}

die() {
    echo "kernel.sh: $*" >&2
    exit 1
}
[ -s "$source" ] || die "no $source; install linux-source-6.1 (make deps-driver-debug)"
cache=$(realpath -m "${KERNEL_CACHE:-${BUILD:-build}/kernels/debug}")
version=$(dpkg-query -W -f='${Version}' linux-source-6.1 2>/dev/null || cksum <"$source")
key=$({ echo "$version" && gcc -dumpfullversion && cat "$config" "$0"; } | sha256sum | cut -c1-16)
out=$cache/$key
mkdir -p "$cache" || die "cannot write to $cache"
exec 9>"$cache/lock"
flock 9
if [ -s "$out/bzImage" ]; then
    echo "$out"
    exit 0
fi
log=$cache/$key.log start=$SECONDS
trap 'rm -rf "$out.tmp"' EXIT
rm -rf "$out.tmp" "$out" && mkdir "$out.tmp" || exit 1
echo "KERNEL linux-source-6.1 $version, debug configuration: some ten minutes, once (log: $log)" >&2
tar xf "$source" -C "$out.tmp" --strip-components=1 || die "$source is not as expected"
cd "$out.tmp" || exit 1
kernel_make() { make --no-print-directory -j"${JOBS:-2}" KBUILD_BUILD_TIMESTAMP=now KBUILD_BUILD_USER=millrace KBUILD_BUILD_HOST=debug "$@"; }
kernel_make -s tinyconfig >"$log" 2>&1 && cat "$config" >>.config && kernel_make olddefconfig >>"$log" 2>&1 ||
    die "the configuration cannot be made: $log"
# Kconfig drops without a word what lacks a dependency.
dropped=$(while read -r line; do
    case $line in
        CONFIG_*=*) grep -qxF -- "$line" .config || echo "$line" ;;
        "# CONFIG_"*" is not set") option=${line#\# } && ! grep -q "^${option%% *}=" .config || echo "$line" ;;
    esac
done <"$config")
[ -z "$dropped" ] || die "lines of $config that this kernel does not take: $dropped"
# Progress for who waits: objects, of about as many.
kernel_make bzImage modules 2>&1 | tee -a "$log" |
    awk -v of=1500 '/^  (CC|AS|AR) / && ++n % 150 == 0 { printf "KERNEL %d objects of about %d\n", n, of | "cat >&2"; fflush("cat >&2") }' ||
    die "the build failed: $log"
cp arch/x86/boot/bzImage ../ || die "no image: $log"
# What building modules needs stays.
find . -mindepth 1 -maxdepth 1 ! -name Makefile ! -name Kbuild ! -name Kconfig ! -name .config ! -name Module.symvers \
    ! -name arch ! -name include ! -name scripts ! -name tools -exec rm -rf {} +
find arch -mindepth 1 -maxdepth 1 ! -name x86 ! -name Kconfig -exec rm -rf {} +
find tools -mindepth 1 -maxdepth 1 ! -name objtool ! -name include -exec rm -rf {} +
find arch -name '*.[oa]' -delete
# The image is there last: a directory without one is not finished.
mkdir "$out" && mv "$out.tmp" "$out/tree" && mv "$cache/bzImage" "$out/" || exit 1
echo "KERNEL built in $((SECONDS - start)) s" >&2
echo "$out"
