#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What make xclbin hands to Vitis, as far as it can be looked at without: XML against the RTL's ports and the
# register map, bank mapping against the configuration, the Tcl script with stand-ins for Vivado's commands.
set -u
. tests/tools/tap.sh
build=$(realpath "${BUILD:-build}")

files() { # what it says last is what there is
    make --no-print-directory card-files PLATFORM="x_$1_y" BUILD="$build" >"$work/out" || return 1
    [ "$(tail -n 1 "$work/out")" = "$build/card/$1: kernel.xml, millrace_kernel.v, sources ($(wc -l <"$build/card/$1/sources") files)" ]
}
# "name width direction" of every port, by Verilator.
ports() {
    awk '/^  (input|output)/ { sub(/,$/, ""); w = 1; if (match($0, /\[[0-9]+:0\]/)) w = substr($0, RSTART + 1) + 1
         print $NF, w, $1 }' "$1"
}
axi="awvalid awready awaddr awlen awsize awburst awid awlock awcache awprot awqos awregion wvalid wready wdata wstrb wlast bvalid bready bresp bid arvalid arready araddr arlen arsize arburst arid arlock arcache arprot arqos arregion rvalid rready rdata rlast rresp rid"

xml_matches_rtl() { # card
    local dir=$build/card/$1 p s
    ports "$dir/millrace_kernel.v" >"$work/ports"
    xmllint_ports=$(sed -n 's/.*<port name="\([a-z0-9_]*\)".*/\1/p' "$dir/kernel.xml" | sort)
    [ "$xmllint_ports" = "$(sed -nE 's/^((s|m)_axi_[a-z0-9_]+)_arvalid .*/\1/p' "$work/ports" | sort)" ] || return 1
    grep -q '^ap_clk 1 input$' "$work/ports" && grep -q '^ap_rst_n 1 input$' "$work/ports" &&
        grep -q '^interrupt 1 output$' "$work/ports" || return 1
    while read -r p width; do
        grep -q "^${p}_rdata $width input$" "$work/ports" && grep -q "^${p}_wdata $width output$" "$work/ports" &&
            grep -q "^${p}_araddr 64 output$" "$work/ports" || return 1
        for s in $axi; do grep -q "^${p}_$s " "$work/ports" || { echo "# ${p}_$s"; return 1; }; done
    done < <(sed -n 's/.*<port name="\(m_axi[a-z0-9_]*\)" mode="master".*dataWidth="\([0-9]*\)".*/\1 \2/p' "$dir/kernel.xml")
    grep -q '<port name="s_axi_control" mode="slave" range="0x1000" dataWidth="32"' "$dir/kernel.xml" &&
        grep -q '^s_axi_control_awaddr 12 input$' "$work/ports"
}
# Arguments: numbered from 0, on ports that are there, inside the control range, none over another or over a
# register of the engine, apart from the two that are one.
arguments() { # card
    local dir=$build/card/$1
    { sed -n 's/^reg *\([A-Z_0-9]*\) *\(0x[0-9A-F]*\)/reg \1 \2/p' rtl/spec/device.def
      sed -n 's/.*<arg name="\([a-z0-9_]*\)" addressQualifier="\([01]\)" id="\([0-9]*\)" port="\([a-z0-9_]*\)" size="0x\([48]\)" offset="\(0x[0-9A-F]*\)".*/arg \1 \2 \3 \4 \5 \6/p' "$dir/kernel.xml"
    } | awk -v xml="$dir/kernel.xml" '
        function hex(t,   i, v) { for (i = 3; i <= length(t); i++) v = 16 * v + index("0123456789ABCDEF", substr(t, i, 1)) - 1; return v }
        function bad(why) { print "# " why; failed = 1 }
        BEGIN { while ((getline line <xml) > 0) if (line ~ /<arg /) lines++ }
        $1 == "reg" { reg[hex($3)] = $2; if ($2 == "COUNTERS") for (i = 0; i < 176; i += 4) reg[hex($3) + i] = $2 }
        $1 == "arg" {
            if ($4 != args + 0) bad($2 " is number " $4); args++
            at = hex($7)
            if (at < 16 || at + $6 > 4096 || at % 4) bad($2 " lies at " $7)
            if (($3 == 1) != ($5 ~ /^m_axi/)) bad($2 " on " $5)
            for (i = 0; i < $6; i += 4) {
                if ((at + i) in used) bad($2 " lies over " used[at + i])
                if ((at + i) in reg && !($2 == "run" && reg[at + i] ~ /^RUN/ || $2 == "watchdog" && reg[at + i] == "WATCHDOG")) bad($2 " lies over " reg[at + i])
                used[at + i] = $2
            }
        }
        END { if (args != lines || !args) bad(args " of " lines " arguments understood"); exit failed }'
}
banks() { # card: every channel's arguments once, no bank of two channels, as many a channel as docs/board/xrt.md says, all of
    # the card's and no other; the pages of a channel with HBM in memories of their own, all as large; the host port everywhere
    local dir=$build/card/$1 kind all each
    case $1 in
    u50) kind=HBM all=32 each=8 ;;
    u250) kind=DDR all=4 each=1 ;;
    u280) kind=HBM all=32 each=4 ;;
    esac
    sed -n 's/^sp=millrace_kernel_1\.\([a-z0-9_]*\):\([A-Z]*\)\[\([0-9]*\):*\([0-9]*\)\]$/\1 \2 \3 \4/p' "rtl/kernel/package/$1.cfg" >"$work/sp"
    [ "$(grep -c '^sp=' "rtl/kernel/package/$1.cfg")" = "$(wc -l <"$work/sp")" ] &&
        grep -q '^nk=millrace_kernel:1:millrace_kernel_1$' "rtl/kernel/package/$1.cfg" &&
        # By argument, or by port for all arguments of it.
        diff <(awk 'FNR == NR { port[$1] = $2; next } $1 in port { print $1; next } { for (a in port) if (port[a] == $1) print a }' \
            <(arguments_of "$1") "$work/sp" | sort) <(arguments_of "$1" | awk '{ print $1 }' | sort) &&
        awk -v kind=$kind -v all=$all -v each=$each '
             function bad(why) { print "# " $0 ": " why; failed = 1 }
             { last = $4 == "" ? $3 : $4
               if ($2 != kind || last >= all) bad("no memory of the card")
               channel = $1; sub(/^(m_axi_gmem|kv_|weights[1-3]?_)/, "", channel)
               if ($1 ~ /^weights/) { width = last - $3 + 1; if (width * 4 != each) bad("not a quarter of the channel") }
               else if ($1 !~ /_host$/ && last - $3 + 1 != each) bad("not all of the channel")
               for (b = $3; b <= last; b++)
                   if ($1 ~ /_host$/) host[b]
                   else { if ((b in of) && of[b] != channel) bad("of two channels"); of[b] = channel
                          if ($1 ~ /^weights/) { if (b in page) bad("of two pages"); page[b] } } }
             END { for (b = 0; b < all; b++) if (!(b in host) || !(b in of)) { print "# memory " b " is not used"; failed = 1 }
                   exit failed }' "$work/sp"
}
update_banks() { # card: each memory argument of millrace_update once, none else; both states in one memory; memories of the card
    local cfg=rtl/kernel/package/update-$1.cfg most
    case $1 in
    u50) most="HBM 32" ;;
    u250) most="DDR 4" ;;
    u280) most="HBM 32 DDR 2" ;;
    esac
    sed -n 's/^sp=millrace_update_1\.\([a-z_]*\):\([A-Z]*\)\[\([0-9]*\):*\([0-9]*\)\]$/\1 \2 \3 \4/p' "$cfg" >"$work/sp"
    [ "$(grep -c '^sp=' "$cfg")" = "$(wc -l <"$work/sp")" ] && grep -q '^nk=millrace_update:1:millrace_update_1$' "$cfg" &&
        sed -n '/^typedef void mr_update_kernel(/,/;/p' hls/millrace_update.h | grep -oE '\*[a-z_]+' | tr -d '*' | sort >"$work/pointers" &&
        [ -s "$work/pointers" ] && awk '{ print $1 }' "$work/sp" | sort | diff "$work/pointers" - &&
        awk -v most="$most" 'BEGIN { n = split(most, m); for (i = 1; i < n; i += 2) of[m[i]] = m[i + 1] }
             { last = $4 == "" ? $3 : $4; if (!($2 in of) || last >= of[$2] || last < $3) { print "# " $0; bad = 1 } }
             $1 ~ /_state$/ { if (state != "" && state != $2 $3 $4) bad = 1; state = $2 $3 $4 }
             END { exit bad || state == "" }' "$work/sp"
}
arguments_of() { # card: "argument port" of those that are memory
    sed -n 's/.*<arg name="\([a-z0-9_]*\)" addressQualifier="1" .* port="\([a-z0-9_]*\)".*/\1 \2/p' "$build/card/$1/kernel.xml"
}
for card in u50 u250 u280; do
    ok "package_${card}_files" files "$card"
    ok "package_${card}_xml_has_the_ports_of_the_rtl" xml_matches_rtl "$card"
    ok "package_${card}_arguments_fit_the_register_map" arguments "$card"
    ok "package_${card}_banks_fit_the_configuration" banks "$card"
    ok "package_${card}_banks_of_the_update_are_the_card_s" update_banks "$card"
done

# The script runs to its end on commands that only note what they were called with.
tcl() {
    local dir=$build/card/u280
    cat >"$work/stub.tcl" <<END
set script [lindex \$argv 0]
set argv [lrange \$argv 1 end]
foreach c {create_project add_files set_property update_compile_order current_fileset close_project package_xo
           ipx::package_project ipx::unload_core ipx::edit_ip_in_project ipx::current_core ipx::get_bus_interfaces
           ipx::associate_bus_interfaces ipx::add_bus_parameter ipx::create_xgui_files ipx::update_checksums
           ipx::check_integrity ipx::save_core} {
    namespace eval [namespace qualifiers ::\$c] {}
    proc ::\$c args "puts \"\$c \\\$args\"; return \$c"
}
set f [open \$script]
if {![info complete [read \$f]]} { error incomplete }
close \$f
source \$script
END
    tclsh "$work/stub.tcl" rtl/kernel/package/package_kernel.tcl "$work/a.xo" "$dir/kernel.xml" part "$work" rtl/common \
        $(cat "$dir/sources") >"$work/calls" || return 1
    [ "$(grep -c '^ipx::associate_bus_interfaces ' "$work/calls")" = 10 ] && # 8 channels, host, control
        grep -q "^package_xo -xo_path $work/a.xo -kernel_name millrace_kernel -ip_directory $work/ip -kernel_xml" "$work/calls" &&
        grep -q '^add_files .*rtl/millrace_core.sv.*millrace_kernel.v' "$work/calls" &&
        [ "$(grep -o '^add_files .*' "$work/calls" | tr ' {}' '\n\n\n' | grep -cFxf "$dir/sources")" = "$(wc -l <"$dir/sources")" ] &&
        ! tclsh "$work/stub.tcl" rtl/kernel/package/package_kernel.tcl one two >/dev/null 2>&1
}
ok package_tcl_runs_on_stand_ins tcl
# Every part of the core is in a group, once.
floorplan() {
    cat >"$work/plan.tcl" <<'END'
foreach c {create_pblock resize_pblock set_property add_cells_to_pblock} { proc $c args {} }
proc get_cells args { regsub {.*/} [lindex $args end] {} part; puts $part; return $part }
source rtl/kernel/package/floorplan.tcl
END
    tclsh "$work/plan.tcl" | sort >"$work/groups"
    sed -n '/^  \/\/ ---- the parts/,$s/^  \(mr_.* #.*\)\{0,1\}) \(u_[a-z]*\) ($/\2/p' rtl/millrace_core.sv | sort | diff - "$work/groups"
}
ok package_floorplan_has_every_part_once floorplan
# The files that are packed, read with nothing defined: two PEs are in DSP48E2 then.
dsp_form() {
    local sources=$build/card/u280/sources
    ! grep -l 'def MILLRACE_DSP48E2' $(cat "$sources") | grep -v "^$build/card/u280/rtl/" | grep -q . &&
        yosys -q -p "read_verilog -sv $(grep -E '/(mr_tech_pkg|mr_(dot|dsp)[a-z_0-9]*|mr_pe)\.sv$' "$sources" | tr '\n' ' ')
            read_verilog -lib +/xilinx/cells_xtra.v
            hierarchy -top mr_pe -chparam DSP 1; proc; flatten; select -assert-count 34 t:DSP48E2" >"$work/out" 2>&1 ||
        { tail -3 "$work/out" | sed 's/^/# /'; return 1; }
}
ok package_has_the_form_for_dsp48e2 dsp_form
says() { # WORDS ARGUMENTS...: refused in one line beside make's own, and nothing is made
    local words=$1
    shift
    PATH=/usr/bin:/bin make --no-print-directory BUILD="$work/refused" "$@" >"$work/out" 2>&1 && return 1
    grep -q -- "$words" "$work/out" && [ "$(grep -cv '^make: \*\*\*' "$work/out")" = 1 ] && [ ! -e "$work/refused/card" ]
}
ok xclbin_without_vitis_is_refused says "make xclbin: vivado is not on the path" xclbin PLATFORM=xilinx_u280_gen3x16_xdma_1_202211_1
for target in xclbin card-files; do
    ok "${target}_for_no_card_is_refused" says "^make $target: give the platform of a card: PLATFORM=xilinx_" $target
    ok "${target}_for_an_unknown_card_is_refused" says "^make $target: PLATFORM='xilinx_vck5000' names no known card" $target PLATFORM=xilinx_vck5000
    ok "${target}_for_a_kv260_says_why_not" says "^make $target: a KV260 has no XRT shell .*faq.md#can-i-run" $target PLATFORM=xilinx_kv260_base
done
no_configuration() { # the generator alone: an empty name is none, either
    for config in '' huge; do
        awk -v config=$config -v out=top -f rtl/kernel/gen_kernel.awk -f rtl/kernel/gen_update.awk rtl/spec/configs.def \
            rtl/spec/kernel.def rtl/spec/core_ports.def >"$work/out" 2>&1 && return 1
        grep -q 'no configuration' "$work/out" || return 1
    done
}
ok kernel_of_no_configuration_is_refused no_configuration
# With stand-ins for Vitis' programs: the last line says what was linked.
mkdir "$work/vitis"
printf '#!/bin/sh\nexit 0\n' >"$work/vitis/vivado"
printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" != -o ] || printf kernel >"$2"; shift; done\n' >"$work/vitis/v++"
chmod +x "$work/vitis"/*
linked() {
    local built=$work/built
    PATH="$work/vitis:$PATH" make --no-print-directory xclbin PLATFORM=/p/x_u50_y.xpfm BUILD="$built" >"$work/out" 2>&1 &&
        [ "$(tail -n 1 "$work/out")" = "$built/xrt/millrace-u50.xclbin: 6 bytes, for x_u50_y.xpfm" ]
}
ok xclbin_says_what_was_linked linked
done_testing
