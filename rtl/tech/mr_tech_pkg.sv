// SPDX-License-Identifier: Apache-2.0
// Which form the technology blocks take where their instance asks for DSP48E2: the primitives only
// if the build has MILLRACE_DSP48E2, as synthesis for UltraScale+ has, else the portable form with
// the same bits. Simulators take the portable form, which is several times as fast.
package mr_tech_pkg;

`ifdef MILLRACE_DSP48E2
  localparam int Have = 1;
`else
  localparam int Have = 0;
`endif

endpackage
