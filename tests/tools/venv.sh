#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Python environment of pinned packages; made anew when the list has changed.
# usage: tests/tools/venv.sh DIR LIST WHO   (WHO: the make target, for messages). PIP_OPTIONS are pip's.
set -u
venv=$1 list=$2 who=$3
! [ -e "$venv/installed" ] || ! cmp -s "$list" "$venv/installed" || exit 0
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    echo "$who: python3 with venv and pip is needed: apt-get install python3-venv" >&2
    exit 1
fi
mkdir -p "$(dirname "$venv")"
# shellcheck disable=SC2086
if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q ${PIP_OPTIONS:-} -r "$list" && cp "$list" "$venv/installed"; }; then
    echo "$who: the environment of $list could not be made in $venv (network? disk? Python 3.11?)" >&2
    exit 1
fi
