// SPDX-License-Identifier: Apache-2.0
// Four DSP48E2 in a cascade: four lanes of two dot products that share a_i.
//
//   up = BIAS + sum of (hi * 2^18 + lo) * a over the bytes of hi_i, lo_i and a_i
//
// Timing: v_i bit 0 takes the operands, bit 1 their products, bit 2 the sum (one register at the
// cascade's end).
module mr_dot_cascade #(
  parameter logic [47:0] BIAS = 48'd0
) (
  input  logic        clk_i,
  input  logic [ 2:0] v_i,
  input  logic [31:0] a_i,
  input  logic [31:0] lo_i,
  input  logic [31:0] hi_i,
  output logic [47:0] up_o
);

  logic [47:0] up0, up1, up2;
  mr_dot_lane #(
    .FIRST(1),
    .BIAS (BIAS)
  ) u_lane0 (
    .clk_i,
    .v_i,
    .a_i   (a_i[7:0]),
    .lo_i  (lo_i[7:0]),
    .hi_i  (hi_i[7:0]),
    .down_i(48'd0),
    .up_o  (up0)
  );
  mr_dot_lane u_lane1 (
    .clk_i,
    .v_i,
    .a_i   (a_i[15:8]),
    .lo_i  (lo_i[15:8]),
    .hi_i  (hi_i[15:8]),
    .down_i(up0),
    .up_o  (up1)
  );
  mr_dot_lane u_lane2 (
    .clk_i,
    .v_i,
    .a_i   (a_i[23:16]),
    .lo_i  (lo_i[23:16]),
    .hi_i  (hi_i[23:16]),
    .down_i(up1),
    .up_o  (up2)
  );
  mr_dot_lane #(
    .LAST(1)
  ) u_lane3 (
    .clk_i,
    .v_i,
    .a_i   (a_i[31:24]),
    .lo_i  (lo_i[31:24]),
    .hi_i  (hi_i[31:24]),
    .down_i(up2),
    .up_o
  );

endmodule
