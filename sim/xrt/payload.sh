#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs what hw_emu unpacks and starts into a zip file: the emulator and its launch script.
# usage: payload.sh OUT.zip EMULATOR KERNEL_LIBRARY [ARGUMENTS OF THE EMULATOR]
set -eu
out=$(realpath -m "$1") emulator=$2 library=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
run=$dir/behav_waveform/xsim
mkdir -p "$run"
cp "$emulator" "$run/millrace-emulator"
cp "$library" "$run/libmillrace-kernel.so"
cat >"$run/launch_hw_emu.sh" <<END
#!/bin/sh
# Started by XRT in this directory. What the emulator says goes where the host looks for it.
exec ./millrace-emulator $* 2>"\${MILLRACE_EMU_DIR:-.}/emulator.log"
END
chmod +x "$run/launch_hw_emu.sh"
rm -f "$out"
cd "$dir"
zip -q -r -X "$out" behav_waveform
