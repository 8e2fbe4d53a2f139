# SPDX-License-Identifier: Apache-2.0
# Which parts of millrace_core lie together, and on which die of a card with HBM: a hint for the placer (soft areas),
# which v++ reads before it places. The memory is at SLR0. Read by a test, not yet run: see docs/board/xrt.md.
# Between channels, array and results wide words move in every cycle; attention and vector path have their own memories.
set groups {
    memory  SLR0 {u_channels u_matmul u_host u_control}
    results SLR1 {u_results u_vector u_kv}
}
foreach {name slr parts} $groups {
    set area [create_pblock millrace_$name]
    resize_pblock $area -add $slr
    set_property IS_SOFT TRUE $area
    foreach part $parts {
        set cells [get_cells -hierarchical -filter "NAME =~ */u_kernel/u_core/$part"]
        if {[llength $cells] == 0} {
            error "floorplan.tcl: millrace_core has no part $part"
        }
        add_cells_to_pblock $area $cells
    }
}
