// SPDX-License-Identifier: Apache-2.0
// The correction behind mr_dot's cascades: for any eight sums of four products each of two dot
// products (|product| <= 127 * 128), packed 2^18 apart on a cascade's bias, mr_dot_halves gives
// both sums.
module dot_halves (
  input logic [8*18-1:0] lo_i,
  input logic [8*18-1:0] hi_i
);
  localparam int Most = 4 * 127 * 128;
  logic [8*36-1:0] sums;
  logic [19:0] lo, hi;
  mr_dot_halves u_halves (.sums_i(sums), .lo_o(lo), .hi_o(hi));
  for (genvar g = 0; g < 8; g++) begin : gen_sum
    logic [47:0] p;
    assign p = 48'h4_0001_0000 + 48'($signed(lo_i[18*g+:18])) +
               (48'($signed(hi_i[18*g+:18])) << 18);
    assign sums[36*g+:36] = p[35:0];
    always @* begin
      assume ($signed(lo_i[18*g+:18]) <= Most && $signed(lo_i[18*g+:18]) >= -Most);
      assume ($signed(hi_i[18*g+:18]) <= Most && $signed(hi_i[18*g+:18]) >= -Most);
    end
  end
  function automatic logic [19:0] sum(input logic [8*18-1:0] x);
    sum = ((20'($signed(x[0+:18])) + 20'($signed(x[18+:18]))) +
           (20'($signed(x[36+:18])) + 20'($signed(x[54+:18])))) +
          ((20'($signed(x[72+:18])) + 20'($signed(x[90+:18]))) +
           (20'($signed(x[108+:18])) + 20'($signed(x[126+:18]))));
  endfunction
  always @* assert (lo == sum(lo_i) && hi == sum(hi_i));
endmodule
