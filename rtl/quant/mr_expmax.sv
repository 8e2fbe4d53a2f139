// SPDX-License-Identifier: Apache-2.0
// Largest fp32 exponent field of a word of floats.
//
// Parameters
//   LANES  floats a word, a power of two, 4..64
//
// Timing: valid_i with data_i in cycle t, valid_o with max_o in t+2; one word a cycle.
module mr_expmax #(
  parameter int LANES = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                valid_i,
  // Only the exponent fields matter.
  // verilator lint_off UNUSED
  input  logic [LANES*32-1:0] data_i,
  // verilator lint_on UNUSED
  output logic                valid_o,
  output logic [7:0]          max_o
);

  localparam int GRP = (LANES < 8) ? LANES : 8;  // lanes of the first step
  localparam int NG = LANES / GRP;

  logic            v1_q, v2_q;
  logic [NG*8-1:0] m1_q;
  logic [7:0]      m2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
    end else begin
      v1_q <= valid_i;
      v2_q <= v1_q;
    end
  end

  function automatic [7:0] max2(input logic [7:0] a, input logic [7:0] b);
    max2 = (a > b) ? a : b;
  endfunction

  // A balanced tree over eight values.
  function automatic [7:0] max8(input logic [63:0] x);
    max8 = max2(max2(max2(x[7:0], x[15:8]), max2(x[23:16], x[31:24])),
                max2(max2(x[39:32], x[47:40]), max2(x[55:48], x[63:56])));
  endfunction

  // Sign and mantissa are not looked at.
  // verilator lint_off UNUSED
  function automatic [7:0] field(input logic [31:0] x);
    field = x[30:23];
  endfunction
  // verilator lint_on UNUSED

  if (GRP == 8) begin : gen_eight
    for (genvar g = 0; g < NG; g++) begin : gen_grp
      always_ff @(posedge clk_i) begin
        if (valid_i) begin
          m1_q[g*8+:8] <= max8({field(data_i[(8*g+7)*32+:32]), field(data_i[(8*g+6)*32+:32]),
                                field(data_i[(8*g+5)*32+:32]), field(data_i[(8*g+4)*32+:32]),
                                field(data_i[(8*g+3)*32+:32]), field(data_i[(8*g+2)*32+:32]),
                                field(data_i[(8*g+1)*32+:32]), field(data_i[(8*g+0)*32+:32])});
        end
      end
    end
  end else begin : gen_four
    always_ff @(posedge clk_i) begin
      if (valid_i) begin
        m1_q <= max2(max2(field(data_i[0+:32]), field(data_i[32+:32])),
                     max2(field(data_i[64+:32]), field(data_i[96+:32])));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (v1_q) m2_q <= max8(64'(m1_q));
  end

  assign valid_o = v2_q;
  assign max_o   = m2_q;

endmodule
