# SPDX-License-Identifier: Apache-2.0
# The netlists of an elaborated configuration's modules, for timing.sh and area.sh, which set $cache: each module alone
# with its children as black boxes, kept in $cache under a hash of what Yosys reads. Cells are those of UltraScale+.

# Tables of this module that are logic: Yosys 0.23 tries all ways to give a table's read ports to memory blocks, and
# with 16 ports needs more than 16 GB. The GELU of eight lanes and more has so many.
many_ports() { # module-in-Yosys
    case $1 in *mr_vgelu* | *mr_vslope*) [[ $1 =~ LANES=s32.0*1[01]{3,}$ ]] ;; *) return 1 ;; esac
}

# Modules without LUTs of more than six inputs, which are several LUTs and a MUXF: Yosys takes them for a module's longest
# paths, and a wide multiplexer there costs up to three times the LUTs. These modules keep 3.23 ns without them.
narrow() { # module-in-Yosys
    [[ $1 =~ \\(mr_[a-z0-9_]+) ]] && case ${BASH_REMATCH[1]} in
        mr_array_ch | mr_array_ctrl | mr_attn | mr_counters | mr_stash_put | mr_vacc2f | mr_vgelu) return 0 ;;
    esac
    return 1
}

# The steps of one module's synthesis; a part of the cache's key. Yosys gives a flip-flop whose reset or enable is low
# an inverter of its own, and ABC does not see those: opt_merge leaves one for each net.
recipe() { # rtlil module log json [module-in-Yosys]
    local rom='' wide=''
    ! many_ports "${5:-$2}" || rom=' setattr -set rom_style "logic" m:rom;'
    ! narrow "${5:-$2}" || wide=' -nowidelut'
    echo "read_rtlil $1; hierarchy -top $2;$rom synth_xilinx -family xcup -uram -noiopad -noclkbuf$wide -top $2;" \
        "setparam -unset INIT t:LUT*; setattr -unset src -unset module_not_derived */*;" \
        "rename -enumerate -pattern c% t:LUT* t:INV t:MUXF* t:CARRY4 t:FD*; opt_merge -share_all t:INV; opt_clean;" \
        "select $2; tee -o $3 stat -tech xilinx; json -o $4"
}
yosys=$(yosys -V)

# The netlist of a module gets a file in the cache if it has none; $file is its name, $made the seconds that it took.
# Runs beside each other do not make one twice: the second waits for the first.
netlist() { # directory number module-in-Yosys
    local il=$1/$2.il hash lock start=$SECONDS
    hash=$({ echo "$yosys"; recipe IL MODULE LOG JSON "$3"; cat "$il"; } | sha256sum | cut -c1-32)
    file=$cache/$hash.json made=
    [ ! -s "$file" ] || return 0
    exec {lock}>>"$cache/$hash.out"
    flock "$lock"
    if [ ! -s "$file" ]; then
        # 8 GB at most: more would stop others.
        (ulimit -v 8388608
            exec nice -n 10 yosys -q -l "$cache/$hash.log" -p "$(recipe "$il" "$3" "$cache/$hash.stat" "$cache/$hash.tmp")") \
            >"$cache/$hash.out" 2>&1 && mv "$cache/$hash.tmp" "$file" || { tail -3 "$cache/$hash.out" >&2; file=; }
        made=$((SECONDS - start))
    fi
    exec {lock}>&-
    [ -n "$file" ]
}

# DIR/files gets the netlists of the modules of DIR/modules (elaborate.sh), in their order; standard output says how far
# it is.
netlists() { # directory
    local number module of i=0 status=0 list
    of=$(wc -l <"$1/modules")
    list=$(mktemp "$1/files.XXXXXX") || return 1
    while IFS=$'\t' read -r number module _; do
        i=$((i + 1))
        netlist "$1" "$number" "$module" </dev/null || { status=1; echo "# $module does not synthesise"; continue; }
        echo "$file" >>"$list"
        [ -z "$made" ] || echo "# ${1##*/}: synthesised $i of $of modules, the last in $made s"
    done <"$1/modules"
    mv "$list" "$1/files"
    return $status
}

# Whether all these configurations exist; says which does not, and which do.
configurations() { # name..
    local names config
    names=$(awk '!/^#/ && NF { print $1 }' rtl/spec/configs.def)
    for config; do
        grep -qx -e "$config" <<<"$names" ||
            { echo "$config: no such configuration; there are ${names//$'\n'/, }" >&2; return 2; }
    done
}

# Only one run at a time works in a directory: others wait until this one leaves it, or has ended.
enter() { # directory
    mkdir -p "$1"
    exec {entered}>"$1/lock"
    flock -n "$entered" || { echo "# another run works in $1: waiting"; flock "$entered"; }
}
leave() { exec {entered}>&-; }
