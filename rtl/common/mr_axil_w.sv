// SPDX-License-Identifier: Apache-2.0
// The write side of an AXI4-Lite slave: address and word in any order, one response a pair.
//
// Parameters: AW  address bits
//
// Ports
//   w_   w_valid_o: an address and its word are there, and the response before has been taken. They
//        stand until w_take_i; w_done_i, then or later, makes the response, which is OKAY. The
//        next pair may come in between, and be taken after w_done_i
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_axil_w #(
  parameter int AW = 12
) (
  input  logic clk_i,
  input  logic rst_ni,
  `MR_AXIL_W_S(, AW),
  `MR_PUT_M(w_, AW)
);

  logic aw_q, w_q;
  assign awready_o = !aw_q;
  assign wready_o  = !w_q;
  assign bresp_o   = '0;
  assign w_valid_o = aw_q && w_q && !bvalid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_q     <= 1'b0;
      w_q      <= 1'b0;
      bvalid_o <= 1'b0;
    end else begin
      aw_q     <= aw_q ? !w_take_i : awvalid_i;
      w_q      <= w_q ? !w_take_i : wvalid_i;
      bvalid_o <= w_done_i || (bvalid_o && !bready_i);
    end
    if (awvalid_i && awready_o) w_addr_o <= awaddr_i;
    if (wvalid_i && wready_o) {w_strb_o, w_data_o} <= {wstrb_i, wdata_i};
  end

  `MR_ASSERT(take, !w_take_i || w_valid_o)
  `MR_ASSERT(done, !w_done_i || !bvalid_o)

  // What the proof assumes of the user, too: one at a time, and an answer of what was taken.
`ifdef MILLRACE_ASSERT
  logic busy_q;
  always_ff @(posedge clk_i) busy_q <= rst_ni && (busy_q || w_take_i) && !w_done_i;
  `MR_ASSERT(one, !w_take_i || !busy_q)
  `MR_ASSERT(answer, !w_done_i || w_take_i || busy_q)
`endif

`ifdef FORMAL
  `include "mr_axil_w_props.svh"
`endif

endmodule
