#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ggml from the source archive of llama-cpp-python, built for this processor, and the program peer.c that times it.
# usage, from the root: tests/interop/ggml/build.sh VENV DIR; DIR/peer is the program
set -eu
venv=$1 dir=$2
package=llama-cpp-python version=0.3.36
archive=$dir/llama_cpp_python-$version.tar.gz
ggml=llama_cpp_python-$version/vendor/llama.cpp/ggml
mkdir -p "$dir"
if ! [ -e "$archive" ]; then
    # shellcheck disable=SC2086
    "$venv/bin/pip" download -q ${INTEROP_PIP:-} --no-deps --no-binary "$package" -d "$dir" "$package==$version"
fi
if ! [ -e "$dir/$ggml/CMakeLists.txt" ]; then
    tar -xzf "$archive" -C "$dir" "$ggml"
fi
"$venv/bin/cmake" -S tests/interop/ggml -B "$dir/build" -DGGML="$(realpath "$dir/$ggml")" >"$dir/cmake.log"
"$venv/bin/cmake" --build "$dir/build" -j "${JOBS:-2}" --target peer >"$dir/build.log" 2>&1 || { tail -20 "$dir/build.log" >&2; exit 1; }
cp "$dir/build/peer" "$dir/peer"
