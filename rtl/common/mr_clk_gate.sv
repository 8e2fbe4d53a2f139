// SPDX-License-Identifier: Apache-2.0
// Clock of a unit that changes no state while it is idle. Without MILLRACE_CLK_GATE (synthesis for
// an FPGA, benches, proofs, view builds) it is the clock itself; with it, edges are left out while
// the unit is idle. See "Clock gating" in docs/inside/rtl.md.
//
// Parameters
//   HOLD  cycles, 1..255, that the clock goes on after the last cycle with active_i: at least the
//         time that the unit's pipelines need to come to rest
//
// active_i: an input of the unit or something inside will change its state at the next edge: it is
// high in the cycle before that edge, and in reset. It settles while clk_i is low.
// What the unit owes: when active_i has been low for HOLD cycles, no edge changes its state until
// active_i is high again. So nothing in it runs freely, and active_i covers each valid it sees.
module mr_clk_gate #(
  // verilator lint_off UNUSED
  // The wire needs neither.
  parameter int HOLD = 48
) (
  input  logic clk_i,
  input  logic active_i,
  // verilator lint_on UNUSED
  output logic clk_o
);

`ifdef MILLRACE_CLK_GATE
  logic [7:0] left_q;
  logic       enable;
  always_ff @(posedge clk_i) begin
    if (active_i) left_q <= 8'(HOLD);
    else if (left_q != '0) left_q <= left_q - 8'd1;
  end
  // Held while the clock is high: clk_o has no edge that is not one of clk_i.
  always_latch begin
    if (!clk_i) enable = active_i || left_q != '0;
  end
  assign clk_o = clk_i && enable;
`else
  assign clk_o = clk_i;
`endif

endmodule
