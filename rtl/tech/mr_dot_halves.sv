// SPDX-License-Identifier: Apache-2.0
// Takes the sums of mr_dot's cascades apart and adds them up: the two dot products.
//
//   sum of a cascade = 2^34 + 2^16 + hi * 2^18 + lo,  |hi|, |lo| < 2^16
//
// so that bits 16..0 are lo + 2^16 and bits 34..18 are hi + 2^16, without a borrow between them.
// A number with its upper bit inverted is its value less half the range: the offsets vanish so, and
// a bit that is inverted between two additions keeps Yosys from making one tree of compressors out
// of them, which takes twice the LUTs. Combinational. tests/formal proves the sums.
module mr_dot_halves (
  input  logic [8*36-1:0] sums_i,
  output logic [    19:0] lo_o,
  output logic [    19:0] hi_o
);

  function automatic logic [17:0] flip18(input logic [17:0] x);
    flip18 = {~x[17], x[16:0]};
  endfunction
  function automatic logic [18:0] flip19(input logic [18:0] x);
    flip19 = {~x[18], x[17:0]};
  endfunction
  function automatic logic [19:0] flip20(input logic [19:0] x);
    flip20 = {~x[19], x[18:0]};
  endfunction
  // Unsigned, signed and unsigned again: each level's numbers are one bit longer.
  function automatic logic [17:0] add2(input logic [16:0] a, input logic [16:0] b);
    add2 = flip18({1'b0, a} + {1'b0, b});
  endfunction
  function automatic logic [18:0] add4(input logic [17:0] a, input logic [17:0] b);
    add4 = flip19({a[17], a} + {b[17], b});
  endfunction
  function automatic logic [19:0] add8(input logic [18:0] a, input logic [18:0] b);
    add8 = flip20({1'b0, a} + {1'b0, b});
  endfunction

  logic [4*18-1:0] l2, h2;
  for (genvar i = 0; i < 4; i++) begin : gen_two
    assign l2[18*i+:18] = add2(sums_i[72*i+:17], sums_i[72*i+36+:17]);
    assign h2[18*i+:18] = add2(sums_i[72*i+18+:17], sums_i[72*i+54+:17]);
  end
  assign lo_o = add8(add4(l2[0+:18], l2[18+:18]), add4(l2[36+:18], l2[54+:18]));
  assign hi_o = add8(add4(h2[0+:18], h2[18+:18]), add4(h2[36+:18], h2[54+:18]));

  // Bits 17 and 35 are 0.
  logic unused;
  always_comb begin
    unused = 1'b0;
    for (int i = 0; i < 8; i++) unused = unused ^ sums_i[36*i+17] ^ sums_i[36*i+35];
  end

endmodule
