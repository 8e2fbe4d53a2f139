// SPDX-License-Identifier: Apache-2.0
// Technology block behind mr_dot: alignment shift and 48-bit accumulator of one dot product.
//
//   acc = (first ? 0 : acc) + ((d << 18) >>> min(38, row difference + column difference))
//
// With GRAD, for gradients in training, the differences are signed and a step with grad_i rounds:
//
//   s = row difference + column difference;  acc = (first ? 0 : acc) + RNE((d << 18) / 2^s)
//
// s < 0 counts as 0 and sets below_o, s > 38 gives 0, because |d| < 2^19. Without grad_i the step
// is as above; it may not have s < 0. GRAD 0 costs nothing.
//
// Parameters
//   DSP   1: term register and accumulator in a DSP48E2
//   FOLD  sums that take turns (DSP 0 only): a step works on the one of FOLD steps ago
//   GRAD  1: gradients; SW (derived) bits of a difference
//
// Forms, with the same bits in the same cycles: portable (DSP 0), or with term register and
// accumulator in a DSP48E2 (DSP 1; portable where the build has no MILLRACE_DSP48E2). The shifter
// stays in LUTs, and what rounding adds is the DSP's carry.
//
// Timing: v_i holds the enables of three stages, which a step passes in consecutive cycles. Bit 0:
// d_i is not there yet, dr_i, dc_i and grad_i are (without grad_i each difference is already
// limited to 38). Bit 1: d_i is valid, 20 bits signed. Bit 2, with first_i: accumulate; acc_o is
// the new sum in the next cycle, in its low 48 bits, above it those of the steps before. below_o:
// of the step that had bit 0 in the cycle before.
module mr_dot_acc #(
  parameter int DSP = 0,
  parameter int FOLD = 1,
  parameter int GRAD = 0,
  localparam int SW = (GRAD != 0) ? 11 : 6
) (
  input  logic               clk_i,
  input  logic        [ 2:0] v_i,
  input  logic               first_i,
  input  logic               grad_i,
  input  logic      [SW-1:0] dr_i,
  input  logic      [SW-1:0] dc_i,
  input  logic signed [31:0] d_i,
  output logic [48*FOLD-1:0] acc_o,
  output logic               below_o
);

  // The shift amount, limited to 38, and in bit 6 whether the sum is negative.
  function automatic logic [6:0] shift(input logic [SW-1:0] a, input logic [SW-1:0] b);
    logic signed [SW:0] s;
    if (GRAD != 0) begin
      s = $signed({a[SW-1], a}) + $signed({b[SW-1], b});
      shift = (s < 0) ? 7'h40 : {1'b0, (s > 38) ? 6'd38 : s[5:0]};
    end else begin
      s = $signed({1'b0, a}) + $signed({1'b0, b});
      shift = {1'b0, (7'(s) > 7'd38) ? 6'd38 : s[5:0]};
    end
  endfunction

  // Does RNE of x / 2^sh go up? x has 18 zeros below d: at least half, and more or odd. Bit sh of
  // twice x is the half. What is below it is found by a mask that needs no carry.
  function automatic logic up(input logic [19:0] d, input logic [5:0] sh);
    logic [39:0] x, x2;
    x  = {{2{d[19]}}, d, 18'd0};
    x2 = {x[38:0], 1'b0};
    up = x2[sh] && (x[sh] || (x2 & ~({40{1'b1}} << sh)) != '0);
  endfunction

  logic [5:0] sh_q;
  logic round;
  if (GRAD != 0) begin : gen_grad
    logic grad_q;
    always_ff @(posedge clk_i) begin
      if (v_i[0]) begin
        grad_q  <= grad_i;
        below_o <= shift(dr_i, dc_i) >= 7'h40;
      end
    end
    assign round = grad_q && up(d_i[19:0], sh_q);
  end else begin : gen_no_grad
    assign round   = 1'b0;
    assign below_o = 1'b0;
    logic unused;
    assign unused = grad_i;
  end

  if (DSP != 0 && mr_tech_pkg::Have != 0) begin : gen_dsp48e2
    logic [37:0] m;
    assign m = 38'($signed({d_i[19:0], 18'd0}) >>> sh_q);
    always_ff @(posedge clk_i) begin
      if (v_i[0]) sh_q <= 6'(shift(dr_i, dc_i));
    end
    mr_dot_sum #(.GRAD(GRAD)) u_sum (
      .clk_i, .v_i(v_i[2:1]), .first_i, .term_i({{10{m[37]}}, m}), .round_i(round), .acc_o
    );
    logic unused;
    assign unused = ^d_i[31:20];
  end else begin : gen_portable
    logic signed [63:0] m_q;  // 38 bits of value; 64 declared because it simulates faster
    logic round_q;
    if (GRAD != 0) begin : gen_round
      always_ff @(posedge clk_i) if (v_i[1]) round_q <= round;
    end else begin : gen_no_round
      assign round_q = 1'b0;
    end
    // What rounds up is carried from a bit below.
    function automatic logic [47:0] plus(input logic [47:0] a, input logic [47:0] b,
                                         input logic up_by);
      // verilator lint_off UNUSED
      logic [48:0] s;  // the bit below has done its work
      // verilator lint_on UNUSED
      s = {a, 1'b1} + {b, up_by};
      plus = s[48:1];
    endfunction
    always_ff @(posedge clk_i) begin
      if (v_i != 3'd0) begin  // one test for an idle element in simulation
        if (v_i[0]) sh_q <= 6'(shift(dr_i, dc_i));
        if (v_i[1]) m_q <= $signed({{26{d_i[19]}}, d_i[19:0], 18'd0}) >>> sh_q;
        // one LUT a bit
        if (v_i[2]) begin
          acc_o <= (48*FOLD)'({acc_o, (GRAD == 0) ?
              m_q[47:0] + (first_i ? 48'd0 : acc_o[48*FOLD-1-:48]) :
              plus(m_q[47:0], first_i ? 48'd0 : acc_o[48*FOLD-1-:48], round_q)});
        end
      end
    end
    logic unused;
    assign unused = ^{m_q[63:48], d_i[31:20], round, round_q};
  end

endmodule
