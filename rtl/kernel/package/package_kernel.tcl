# SPDX-License-Identifier: Apache-2.0
# Packs the kernel into an .xo for v++. Read by a test, not yet run: see docs/board/xrt.md.
# usage: vivado -mode batch -source package_kernel.tcl -tclargs OUT.xo KERNEL.xml PART DIR INCLUDE FILE...
if {[llength $argv] < 6} {
    error "usage: package_kernel.tcl OUT.xo KERNEL.xml PART DIR INCLUDE FILE..."
}
lassign $argv xo xml part dir include
set files [lrange $argv 5 end]
set name millrace_kernel

create_project -force $name $dir/project -part $part
add_files -norecurse $files
set_property include_dirs [split $include] [current_fileset]
set_property top $name [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $dir/ip -vendor millrace -library kernel -taxonomy /KernelIP \
    -import_files -set_current false
ipx::unload_core $dir/ip/component.xml
ipx::edit_ip_in_project -upgrade true -name edit -directory $dir/ip $dir/ip/component.xml
set core [ipx::current_core]
set_property core_revision 1 $core

# The clock of every interface, from the kernel's XML: its ports are the RTL's.
set f [open $xml]
set ports [regexp -all -inline {<port name="([a-z0-9_]+)"} [read $f]]
close $f
foreach {match port} $ports {
    ipx::associate_bus_interfaces -busif $port -clock ap_clk $core
}
set clock [ipx::get_bus_interfaces ap_clk -of_objects $core]
set_property value_resolve_type user [ipx::add_bus_parameter FREQ_TOLERANCE_HZ $clock]

set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property supported_families {} $core
set_property auto_family_support_level level_2 $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity -kernel $core
ipx::save_core $core
close_project -delete

file delete -force $xo
package_xo -xo_path $xo -kernel_name $name -ip_directory $dir/ip -kernel_xml $xml
