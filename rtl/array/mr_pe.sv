// SPDX-License-Identifier: Apache-2.0
// Processing element: one 32-lane int8 x int8 dot product a cycle, aligned and accumulated in 48
// bits.
//
// Elements are two's complement, lane 0 in the low byte. Weights may be -128. The type of the
// weight (MXINT8, or MXFP4 as doubled values) makes no difference here.
//
// Timing: v_i holds one enable a stage (0 products, 1 partial sums, 2 sum and shift amount, 3
// aligned term, 4 accumulate); a step sets bit s in its s-th cycle. a_i and w_i belong to bit 0,
// dr_i and dc_i (row and column exponent differences, each limited to 38) to bit 2, first_i (starts
// a new sum) to bit 4. acc_o holds the sum from the cycle after a step's bit 4. No enables are
// generated here: one pipeline of them serves a whole row.
module mr_pe (
  input  logic         clk_i,
  input  logic [  4:0] v_i,
  input  logic         first_i,
  input  logic [255:0] a_i,
  input  logic [255:0] w_i,
  input  logic [  5:0] dr_i,
  input  logic [  5:0] dc_i,
  output logic [ 47:0] acc_o
);
  /*verilator no_inline_module*/  // one body that the C++ compiler can vectorise

  // 32 bits declared: the C++ needs no masks; synthesis trims them to 16, 18 and 21.
  logic signed [31:0] p_q[0:31];
  logic signed [31:0] s_q[0:7];
  logic signed [31:0] d_q;

  // Lane order (byte b of word j): eight neighbours are handled alike, which is a vector in C++.
  always_ff @(posedge clk_i) begin
    if (v_i != 5'd0) begin
      if (v_i[0]) begin
        for (int b = 0; b < 4; b++) begin
          for (int j = 0; j < 8; j++) begin
            p_q[8*b+j] <= 32'($signed(a_i[32*j+8*b+:8])) * 32'($signed(w_i[32*j+8*b+:8]));
          end
        end
      end
      if (v_i[1]) begin
        for (int j = 0; j < 8; j++) begin
          s_q[j] <= (p_q[j] + p_q[8+j]) + (p_q[16+j] + p_q[24+j]);
        end
      end
      if (v_i[2]) begin
        d_q <= ((s_q[0] + s_q[1]) + (s_q[2] + s_q[3])) + ((s_q[4] + s_q[5]) + (s_q[6] + s_q[7]));
      end
    end
  end

  mr_pe_acc u_acc (
    .clk_i,
    .v_i    (v_i[4:2]),
    .first_i,
    .dr_i,
    .dc_i,
    .d_i    (d_q),
    .acc_o
  );

endmodule
