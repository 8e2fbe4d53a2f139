// SPDX-License-Identifier: Apache-2.0
//
// The exact product of 24 and 17 bits: the multiplier of one DSP slice. The generated cores have it
// between two of their registers.
//
// Timing: combinational.
module mr_hls_product (
    input  logic [23:0] a_i,
    input  logic [16:0] b_i,
    output logic [40:0] p_o
);
  assign p_o = {17'd0, a_i} * {24'd0, b_i};
endmodule
