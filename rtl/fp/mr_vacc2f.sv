// SPDX-License-Identifier: Apache-2.0
//
// LANES integer accumulators to fp32: y = acc * 2^exp, rounded once, bit-exact to mr_acc_to_f32 of
// host/cmodel/num.h.
//
// LANES: number of lanes. acc_i: 48 bits, signed, a lane; exp_i: 11 bits, signed, a lane.
// Timing: operands with valid_i; y_o with valid_o, mr_fp_pkg::ACC2F_LAT (3) cycles later; one
// operation a cycle, no stall. y_o keeps its value while valid_o is low. ovf_o: pulse beside
// valid_o, some lane overflowed to infinity.
module mr_vacc2f #(
    parameter int LANES = 4
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                valid_i,
    input  logic [LANES*48-1:0] acc_i,
    input  logic [LANES*11-1:0] exp_i,
    output logic                valid_o,
    output logic [LANES*32-1:0] y_o,
    output logic                ovf_o
);
  logic [1:0] valid_q;
  logic [LANES-1:0] ovf_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 2'b00;
      valid_o <= 1'b0;
    end else begin
      valid_q <= {valid_q[0], valid_i};
      valid_o <= valid_q[1];
    end
  end

  assign ovf_o = valid_o && ovf_q != '0;

  for (genvar l = 0; l < LANES; l++) begin : gen_lane
    logic [mr_fp_pkg::CVT1_W-1:0] s1_q;
    logic [mr_fp_pkg::CVT2_W-1:0] s2_q;

    always_ff @(posedge clk_i) begin
      if (valid_i) s1_q <= mr_fp_pkg::cvt_s1(acc_i[48*l+:48], exp_i[11*l+:11]);
      if (valid_q[0]) s2_q <= mr_fp_pkg::cvt_s2(s1_q);
      if (valid_q[1]) {ovf_q[l], y_o[32*l+:32]} <= mr_fp_pkg::cvt_s3(s2_q);
    end
  end
endmodule
