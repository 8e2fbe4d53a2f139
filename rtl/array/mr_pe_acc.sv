// SPDX-License-Identifier: Apache-2.0
// Second half of a processing element: alignment shift, 48-bit accumulator, shadow register.
//
//   acc = (first ? 0 : acc) + ((d << 18) >>> min(38, row difference + column difference))
//
// Timing: the enables are one bit a stage, in consecutive cycles for one step. In the cycle of v_y_i
// d_i is not there yet, dr_i and dc_i are (each already limited to 38); v_m_i: d_i is valid; v_acc_i
// with first_i: accumulate. cap_i: acc -> shadow. shift_i: the next row's shadow (chain_i) -> shadow,
// so that the rows of a column leave through row 0's chain_o. cap_i wins.
module mr_pe_acc (
  input  logic               clk_i,
  input  logic               v_y_i,
  input  logic               v_m_i,
  input  logic               v_acc_i,
  input  logic               first_i,
  input  logic               cap_i,
  input  logic               shift_i,
  input  logic        [ 5:0] dr_i,
  input  logic        [ 5:0] dc_i,
  input  logic signed [31:0] d_i,
  input  logic        [47:0] chain_i,
  output logic        [47:0] chain_o
);

  function automatic logic [5:0] sum38(input logic [5:0] a, input logic [5:0] b);
    logic [6:0] s;
    s = {1'b0, a} + {1'b0, b};
    sum38 = (s > 7'd38) ? 6'd38 : s[5:0];
  endfunction

  logic        [ 5:0] sh_q;
  logic signed [63:0] m_q;  // 39 bits of value; 64 declared because it simulates faster
  logic        [47:0] acc_q;

  always_ff @(posedge clk_i) begin
    if (v_y_i) sh_q <= sum38(dr_i, dc_i);
  end

  always_ff @(posedge clk_i) begin
    if (v_m_i) m_q <= $signed({{25{d_i[20]}}, d_i[20:0], 18'd0}) >>> sh_q;
  end

  always_ff @(posedge clk_i) begin
    if (v_acc_i) acc_q <= (first_i ? 48'd0 : acc_q) + m_q[47:0];
  end

  always_ff @(posedge clk_i) begin
    if (cap_i) chain_o <= acc_q;
    else if (shift_i) chain_o <= chain_i;
  end

  logic unused;
  assign unused = ^{m_q[63:48], d_i[31:21]};

endmodule
