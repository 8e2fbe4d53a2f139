// SPDX-License-Identifier: Apache-2.0
// Between words of two widths, one a multiple of the other: joins narrow words, or splits wide
// ones, from the low end. Valid/ready on both sides, and no register between them: a joined word
// leaves in the cycle in which its last part comes, a wide word's first part leaves in the cycle in
// which the word comes, and the others follow at one a cycle.
//
//   in_ready_o   joining: the word is not finished, or out_ready_i; splitting: out_ready_i, and no
//                parts are left of the word before
//   out_valid_o  joining: in_valid_i, and it finishes a word; splitting: in_valid_i, or parts are
//                left. Payload is stable while the input is
//   clear_i      drops what is gathered or left
//
// Parameters
//   IN, OUT  widths in bits
`include "mr_assert.svh"
module mr_width #(
  parameter int IN = 128,
  parameter int OUT = 512
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic           clear_i,

  input  logic           in_valid_i,
  output logic           in_ready_o,
  input  logic [IN-1:0]  in_data_i,
  output logic           out_valid_o,
  input  logic           out_ready_i,
  output logic [OUT-1:0] out_data_o
);

  localparam int PARTS = (IN < OUT) ? OUT / IN : IN / OUT;
  localparam int CW = (PARTS > 1) ? $clog2(PARTS) : 1;

  if (PARTS == 1) begin : gen_same
    assign in_ready_o  = out_ready_i;
    assign out_valid_o = in_valid_i;
    assign out_data_o  = in_data_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni, clear_i};
  end else begin : gen_parts
    logic [CW-1:0] n_q;  // parts that are in, or out
    logic          part;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i) n_q <= '0;
      else if (part) n_q <= (n_q == CW'(PARTS - 1)) ? '0 : n_q + CW'(1);
    end

    if (IN < OUT) begin : gen_join
      logic            last;
      logic [OUT-1:IN] parts_q;
      assign last        = n_q == CW'(PARTS - 1);
      assign in_ready_o  = !last || out_ready_i;
      assign part        = in_valid_i && in_ready_o;
      assign out_valid_o = in_valid_i && last;
      assign out_data_o  = {in_data_i, parts_q};
      always_ff @(posedge clk_i) begin
        if (in_valid_i && !last) parts_q <= (OUT - IN)'({in_data_i, parts_q} >> IN);
      end
    end else begin : gen_split
      logic [IN-OUT-1:0] rest_q;
      assign in_ready_o  = out_ready_i && n_q == '0;
      assign out_valid_o = in_valid_i || n_q != '0;
      assign part        = out_valid_o && out_ready_i;
      assign out_data_o  = (n_q == '0) ? in_data_i[OUT-1:0] : rest_q[OUT-1:0];
      always_ff @(posedge clk_i) begin
        if (part) rest_q <= (n_q == '0) ? in_data_i[IN-1:OUT] : rest_q >> OUT;
      end
    end
  end

`ifndef FORMAL  // proofs hold it to nothing
  `MR_ASSERT_STABLE(in, in_valid_i, in_ready_o || clear_i, in_data_i)
  `MR_ASSERT_STABLE(out, out_valid_o, out_ready_i || clear_i, out_data_o)
`endif

`ifdef FORMAL
  `include "mr_width_props.svh"
`endif

endmodule
