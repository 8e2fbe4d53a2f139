// SPDX-License-Identifier: Apache-2.0
// Technology block behind mr_dot: alignment shift and 48-bit accumulator of one dot product.
//
//   acc = (first ? 0 : acc) + ((d << 18) >>> min(38, row difference + column difference))
//
// Forms, with the same bits in the same cycles: portable (DSP 0), or with term register and
// accumulator in a DSP48E2 (DSP 1; portable where the build has no MILLRACE_DSP48E2). The shifter
// stays in LUTs.
//
// Timing: v_i holds the enables of three stages, which a step passes in consecutive cycles. Bit 0:
// d_i is not there yet, dr_i and dc_i are (each already limited to 38). Bit 1: d_i is valid, 20
// bits signed. Bit 2, with first_i: accumulate; acc_o is the new sum in the next cycle.
module mr_dot_acc #(
  parameter int DSP = 0
) (
  input  logic               clk_i,
  input  logic        [ 2:0] v_i,
  input  logic               first_i,
  input  logic        [ 5:0] dr_i,
  input  logic        [ 5:0] dc_i,
  input  logic signed [31:0] d_i,
  output logic        [47:0] acc_o
);

  function automatic logic [5:0] sum38(input logic [5:0] a, input logic [5:0] b);
    logic [6:0] s;
    s = {1'b0, a} + {1'b0, b};
    sum38 = (s > 7'd38) ? 6'd38 : s[5:0];
  endfunction

  logic [5:0] sh_q;

  if (DSP != 0 && mr_dot_pkg::Have != 0) begin : gen_dsp48e2
    logic [37:0] m;
    assign m = 38'($signed({d_i[19:0], 18'd0}) >>> sh_q);
    always_ff @(posedge clk_i) begin
      if (v_i[0]) sh_q <= sum38(dr_i, dc_i);
    end
    mr_dot_sum u_sum (
      .clk_i,
      .v_i    (v_i[2:1]),
      .first_i,
      .term_i ({{10{m[37]}}, m}),
      .acc_o
    );
    logic unused;
    assign unused = ^d_i[31:20];
  end else begin : gen_portable
    logic signed [63:0] m_q;  // 38 bits of value; 64 declared because it simulates faster
    always_ff @(posedge clk_i) begin
      if (v_i != 3'd0) begin  // one test for an idle element in simulation
        if (v_i[0]) sh_q <= sum38(dr_i, dc_i);
        if (v_i[1]) m_q <= $signed({{26{d_i[19]}}, d_i[19:0], 18'd0}) >>> sh_q;
        if (v_i[2]) acc_o <= (first_i ? 48'd0 : acc_o) + m_q[47:0];
      end
    end
    logic unused;
    assign unused = ^{m_q[63:48], d_i[31:20]};
  end

endmodule
