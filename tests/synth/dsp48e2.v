// SPDX-License-Identifier: Apache-2.0
// DSP48E2 as Yosys 0.23 uses it (/usr/share/yosys/xilinx/xcu_dsp_map.v): a signed 27 x 18 multiplier without
// registers. Yosys has no simulation model of this cell; any other use is an unknown module here.
module DSP48E2 #(
  parameter ACASCREG = 1,
  parameter ADREG = 1,
  parameter A_INPUT = "DIRECT",
  parameter ALUMODEREG = 1,
  parameter AREG = 1,
  parameter BCASCREG = 1,
  parameter B_INPUT = "DIRECT",
  parameter BREG = 1,
  parameter CARRYINREG = 1,
  parameter CARRYINSELREG = 1,
  parameter CREG = 1,
  parameter DREG = 1,
  parameter INMODEREG = 1,
  parameter MREG = 1,
  parameter OPMODEREG = 1,
  parameter PREG = 1,
  parameter USE_MULT = "MULTIPLY",
  parameter USE_SIMD = "ONE48",
  parameter AMULTSEL = "A",
  parameter BMULTSEL = "B"
) (
  input  [29:0] A,
  input  [17:0] B,
  input  [47:0] C,
  input  [26:0] D,
  output [47:0] P,
  input  [ 4:0] INMODE,
  input  [ 3:0] ALUMODE,
  input  [ 8:0] OPMODE,
  input  [ 2:0] CARRYINSEL,
  input  [29:0] ACIN,
  input  [17:0] BCIN,
  input  [47:0] PCIN,
  input         CARRYIN
);
  generate
    if (AREG != 0 || BREG != 0 || CREG != 0 || DREG != 0 || MREG != 0 || PREG != 0 || ADREG != 0) begin : gen_no
      dsp48e2_use_without_a_model u_no ();
    end
  endgenerate
  wire signed [47:0] a = {{21{A[26]}}, A[26:0]};
  wire signed [47:0] b = {{30{B[17]}}, B};
  // INMODE 0, OPMODE 5 (X and Y: product; Z: 0), ALUMODE 0: P = A * B. Anything else shows as a wrong result.
  assign P = INMODE == 5'd0 && OPMODE == 9'd5 && ALUMODE == 4'd0 && !CARRYIN && CARRYINSEL == 3'd0 ? a * b : ~48'd0;
endmodule
