// SPDX-License-Identifier: Apache-2.0
// The read side of an AXI4-Lite slave: a word for each address, in order.
//
// Parameters: AW  address bits
//
// Ports
//   r_   r_valid_o: an address is there, and the word before has been taken. It stands until
//        r_take_i; r_done_i, then or later, makes the answer, which is OKAY: r_data_i from the
//        next cycle on, a register that stands up to the next r_done_i. The next address may come
//        in between, and be taken after r_done_i
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_axil_r #(
  parameter int AW = 12
) (
  input  logic clk_i,
  input  logic rst_ni,
  `MR_AXIL_R_S(, AW),
  `MR_GET_M(r_, AW)
);

  logic ar_q;
  assign arready_o = !ar_q;
  assign rresp_o   = '0;
  assign rdata_o   = r_data_i;
  assign r_valid_o = ar_q && !rvalid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_q     <= 1'b0;
      rvalid_o <= 1'b0;
    end else begin
      ar_q     <= ar_q ? !r_take_i : arvalid_i;
      rvalid_o <= r_done_i || (rvalid_o && !rready_i);
    end
    if (arvalid_i && arready_o) r_addr_o <= araddr_i;
  end

  `MR_ASSERT(take, !r_take_i || r_valid_o)
  `MR_ASSERT(done, !r_done_i || !rvalid_o)

  // What the proof assumes of the user, too: one at a time, and an answer of what was taken.
`ifdef MILLRACE_ASSERT
  logic busy_q;
  always_ff @(posedge clk_i) busy_q <= rst_ni && (busy_q || r_take_i) && !r_done_i;
  `MR_ASSERT(one, !r_take_i || !busy_q)
  `MR_ASSERT(answer, !r_done_i || r_take_i || busy_q)
  `MR_ASSERT_STABLE(data, rvalid_o && !r_done_i, rready_i, r_data_i)
`endif

`ifdef FORMAL
  `include "mr_axil_r_props.svh"
`endif

endmodule
