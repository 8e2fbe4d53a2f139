// SPDX-License-Identifier: Apache-2.0
// Two processing elements of neighbouring rows (lo = even row, hi = odd row) that share the
// multipliers: one 27 x 8 bit product gives both rows' products with the same weight (two a
// DSP48E2).
//
//   pk = hi * 2^18 + lo;  sum over 8 lanes of pk * w = (sum of hi * w) * 2^18 + (sum of lo * w)
//
// The halves separate exactly while |sum of lo * w| < 2^17: activations are within +-127 and
// weights -128..127, so eight terms stay within 127 * 128 * 8 = 130048. Same results and timing as
// two mr_pe.
//
// Timing: as mr_pe; v_i enables the shared stages (bits 0..2) and both rows' alignment (bit 3); the
// accumulators have their own enables v_lo_i, v_hi_i, in the cycle of what is bit 4 of mr_pe's v_i.
module mr_pe_pair (
  input  logic         clk_i,
  input  logic [  3:0] v_i,
  input  logic         v_lo_i,
  input  logic         v_hi_i,
  input  logic         first_i,
  input  logic [255:0] a_lo_i,
  input  logic [255:0] a_hi_i,
  input  logic [255:0] w_i,
  input  logic [  5:0] dr_lo_i,
  input  logic [  5:0] dr_hi_i,
  input  logic [  5:0] dc_i,
  output logic [ 47:0] acc_lo_o,
  output logic [ 47:0] acc_hi_o
);
  /*verilator no_inline_module*/

  // The product is written with 27 and 8 bit operands so that it maps to one multiplier.
  function automatic logic signed [63:0] mul(input logic [7:0] hi, input logic [7:0] lo,
                                             input logic [7:0] w);
    logic signed [26:0] pk;
    logic signed [34:0] y;
    pk = $signed({hi[7], hi, 18'd0}) + $signed({{19{lo[7]}}, lo});
    y = 35'(pk) * 35'($signed(w));
    mul = 64'(y);
  endfunction

  // Low half as a signed number, and the high half with the borrow of a negative low half undone.
  function automatic logic signed [31:0] low(input logic [17:0] s);
    low = 32'($signed(s));
  endfunction
  function automatic logic signed [31:0] high(input logic [17:0] s, input logic borrow);
    high = 32'($signed(s)) + 32'(borrow);
  endfunction

  logic signed [63:0] p_q[0:31];
  logic signed [63:0] s_q[0:3];
  logic signed [31:0] lo_q, hi_q;

  // Group i is byte i of every word: eight neighbours are handled alike, which is a vector in C++.
  always_ff @(posedge clk_i) begin
    if (v_i != 4'd0) begin
      if (v_i[0]) begin
        for (int b = 0; b < 4; b++) begin
          for (int j = 0; j < 8; j++) begin
            p_q[8*b+j] <= mul(a_hi_i[32*j+8*b+:8], a_lo_i[32*j+8*b+:8], w_i[32*j+8*b+:8]);
          end
        end
      end
      if (v_i[1]) begin
        for (int i = 0; i < 4; i++) begin
          s_q[i] <= ((p_q[8*i] + p_q[8*i+1]) + (p_q[8*i+2] + p_q[8*i+3])) +
                    ((p_q[8*i+4] + p_q[8*i+5]) + (p_q[8*i+6] + p_q[8*i+7]));
        end
      end
      if (v_i[2]) begin
        lo_q <= (low(s_q[0][17:0]) + low(s_q[1][17:0])) + (low(s_q[2][17:0]) + low(s_q[3][17:0]));
        hi_q <= (high(s_q[0][35:18], s_q[0][17]) + high(s_q[1][35:18], s_q[1][17])) +
                (high(s_q[2][35:18], s_q[2][17]) + high(s_q[3][35:18], s_q[3][17]));
      end
    end
  end

  mr_pe_acc u_lo (
    .clk_i,
    .v_i    ({v_lo_i, v_i[3:2]}),
    .first_i,
    .dr_i   (dr_lo_i),
    .dc_i,
    .d_i    (lo_q),
    .acc_o  (acc_lo_o)
  );

  mr_pe_acc u_hi (
    .clk_i,
    .v_i    ({v_hi_i, v_i[3:2]}),
    .first_i,
    .dr_i   (dr_hi_i),
    .dc_i,
    .d_i    (hi_q),
    .acc_o  (acc_hi_o)
  );

endmodule
