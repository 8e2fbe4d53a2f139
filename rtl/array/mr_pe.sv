// SPDX-License-Identifier: Apache-2.0
// Two processing elements of one row and neighbouring columns: each a 32-lane int8 x int8 dot
// product a cycle, aligned and accumulated in 48 bits. They share the activations, and in the form
// for DSP48E2 (DSP 1, mr_dot) the multipliers.
//
// Elements are two's complement, lane 0 in the low byte. Weights may be -128, activations may not.
// The type of the weight (MXINT8, or MXFP4 as doubled values) makes no difference here. w_i, dc_i
// and acc_o have the even column in the low half.
//
// Timing: v_i holds one enable a stage (0 operands, 1 products, 2 partial sums, 3 sum and shift
// amount, 4 aligned term, 5 accumulate); a step sets bit s in its s-th cycle. a_i and w_i belong to
// bit 0, dr_i and dc_i (row and column exponent differences, each limited to 38) to bit 3, first_i
// (starts a new sum) to bit 5. acc_o holds the sums from the cycle after a step's bit 5. No enables
// are generated here: one pipeline of them serves a whole row.
//
// FOLD 4: one processing element, whose columns take turns in four steps. w_i and dc_i have the
// turn's column in their low half, the other is 0; acc_o all four sums, the newest in the low bits.
//
// GRAD 1: grad_i, with dr_i and dc_i, which are signed then,
// makes a step round as mr_dot_acc says; below_o, a bit a column, is high in the next cycle where
// the step's shift was negative.
module mr_pe #(
  parameter int DSP = 0,
  parameter int FOLD = 1,
  parameter int GRAD = 0,
  localparam int PES = (FOLD > 1) ? 1 : 2,
  localparam int SW = (GRAD != 0) ? 11 : 6
) (
  input  logic            clk_i,
  input  logic [     5:0] v_i,
  input  logic            first_i,
  input  logic [   255:0] a_i,
  input  logic [   511:0] w_i,
  input  logic            grad_i,
  input  logic [  SW-1:0] dr_i,
  input  logic [2*SW-1:0] dc_i,
  output logic [48*FOLD*PES-1:0] acc_o,
  output logic [     1:0] below_o
);
  /*verilator no_inline_module*/  // one body that the C++ compiler can vectorise

  logic [63:0] d;

  mr_dot #(.DSP(DSP), .PES(PES)) u_dot (
    .clk_i, .v_i(v_i[3:0]), .a_i, .w_i, .d_lo_o(d[31:0]), .d_hi_o(d[63:32])
  );

  for (genvar c = 0; c < PES; c++) begin : gen_acc
    mr_dot_acc #(.DSP(DSP), .FOLD(FOLD), .GRAD(GRAD)) u_acc (
      .clk_i, .v_i(v_i[5:3]), .first_i, .grad_i, .dr_i, .dc_i(dc_i[SW*c+:SW]),
      .d_i($signed(d[32*c+:32])), .acc_o(acc_o[48*FOLD*c+:48*FOLD]), .below_o(below_o[c])
    );
  end
  if (FOLD > 1) begin : gen_fold
    assign below_o[1] = 1'b0;
    logic unused;
    assign unused = ^{d[63:32], dc_i[2*SW-1:SW]};
  end

endmodule
