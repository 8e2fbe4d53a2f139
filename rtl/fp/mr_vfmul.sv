// SPDX-License-Identifier: Apache-2.0
//
// LANES fp32 multipliers: y = a * b, bit-exact to mr_fmul of host/cmodel/num.h.
//
// LANES: number of lanes. EARLY: 1: y_o comes a cycle before valid_o, in that cycle alone, without
// the last register: for a caller that has one of its own behind a select.
// Timing: operands with valid_i; y_o with valid_o, mr_fp_pkg::FMUL_LAT (3) cycles later; one
// operation a cycle, no stall. y_o keeps its value while valid_o is low. ovf_o: pulse beside
// valid_o, finite operands gave an infinity in some lane.
module mr_vfmul #(
    parameter int LANES = 4,
    parameter int EARLY = 0
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                valid_i,
    input  logic [LANES*32-1:0] a_i,
    input  logic [LANES*32-1:0] b_i,
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
    logic [mr_fp_pkg::MUL1H_W-1:0] s1h_q;
    logic [mr_fp_pkg::MUL1L_W-1:0] s1l_q;
    logic [mr_fp_pkg::MUL2_W-1:0] s2_q;

    always_ff @(posedge clk_i) begin
      if (valid_i) begin
        s1h_q <= mr_fp_pkg::mul_s1h(a_i[32*l+:32], b_i[32*l+:32]);
        s1l_q <= mr_fp_pkg::mul_s1l(a_i[32*l+:23], b_i[32*l+:17]);
      end
      if (valid_q[0]) s2_q <= mr_fp_pkg::mul_s2(s1h_q, s1l_q);
    end

    // The function stands inside a condition, so that a simulator leaves it out.
    if (EARLY != 0) begin : gen_early
      logic ovf;
      always_comb begin
        {ovf, y_o[32*l+:32]} = 33'bx;
        if (valid_q[1]) {ovf, y_o[32*l+:32]} = mr_fp_pkg::mul_s3(s2_q);
      end
      always_ff @(posedge clk_i) begin
        if (valid_q[1]) ovf_q[l] <= ovf;
      end
    end else begin : gen_last
      always_ff @(posedge clk_i) begin
        if (valid_q[1]) {ovf_q[l], y_o[32*l+:32]} <= mr_fp_pkg::mul_s3(s2_q);
      end
    end
  end
endmodule
