// SPDX-License-Identifier: Apache-2.0
// Four DSP48E2 in a cascade: four lanes of two dot products that share a_i.
//
//   up = BIAS + sum of (hi * 2^18 + lo) * a over the bytes of hi_i, lo_i and a_i
//
// With ALONE 1 (mr_dot_lane) of one dot product, of lo and a; or with alone_i four products
// p_i * a, which p_o has.
//
// Timing: v_i bit 0 takes the operands but p_i, bit 1 their products, bit 2 the sum (one register
// at the cascade's end). alone_i and link_i as mr_dot_lane says.
module mr_dot_cascade #(
  parameter logic [47:0] BIAS = 48'd0,
  parameter int          ALONE = 0
) (
  input  logic         clk_i,
  input  logic [  2:0] v_i,
  input  logic         alone_i,
  input  logic         link_i,
  input  logic [ 31:0] a_i,
  input  logic [ 31:0] lo_i,
  input  logic [ 31:0] hi_i,
  input  logic [ 26:0] p_i,
  output logic [ 47:0] up_o,
  output logic [191:0] p_o
);

  logic [47:0] up0, up1, up2;
  mr_dot_lane #(.FIRST(1), .BIAS(BIAS), .ALONE(ALONE)) u_lane0 (
    .clk_i, .v_i, .alone_i, .link_i, .a_i(a_i[7:0]), .lo_i(lo_i[7:0]), .hi_i(hi_i[7:0]), .p_i,
    .down_i(48'd0), .up_o(up0), .p_o(p_o[47:0])
  );
  mr_dot_lane #(.ALONE(ALONE)) u_lane1 (
    .clk_i, .v_i, .alone_i, .link_i, .a_i(a_i[15:8]), .lo_i(lo_i[15:8]), .hi_i(hi_i[15:8]), .p_i,
    .down_i(up0), .up_o(up1), .p_o(p_o[95:48])
  );
  mr_dot_lane #(.ALONE(ALONE)) u_lane2 (
    .clk_i, .v_i, .alone_i, .link_i, .a_i(a_i[23:16]), .lo_i(lo_i[23:16]), .hi_i(hi_i[23:16]), .p_i,
    .down_i(up1), .up_o(up2), .p_o(p_o[143:96])
  );
  mr_dot_lane #(.LAST(1), .ALONE(ALONE)) u_lane3 (
    .clk_i, .v_i, .alone_i, .link_i, .a_i(a_i[31:24]), .lo_i(lo_i[31:24]), .hi_i(hi_i[31:24]), .p_i,
    .down_i(up2), .up_o, .p_o(p_o[191:144])
  );

endmodule
