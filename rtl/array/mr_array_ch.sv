// SPDX-License-Identifier: Apache-2.0
// One channel of the array: R rows x 4 columns of processing elements, two columns an instance, the
// shadow registers, the adder for two-pass row pairs and this channel's share of the result FIFO's
// memory.
//
// Parameters
//   R     token rows
//   PAIR  1: columns 2i and 2i+1 share their multipliers where there are DSP48E2 (mr_dot)
//   DF    depth of the result FIFO in tokens (power of two)
//   FOLD  1; or 4: a PE a row, whose columns take turns in four cycles (PAIR and GRAD 0)
//   GRAD  1: steps of GRAD too; SW (derived) bits of an exponent difference
//
// With GRAD, a step with grad_i is one of a sum of gradients with the unit 2^g_i: each term is
// rounded at s = g + 284 - acode - wcode (mr_dot_acc), and the maxima are not looked at. A code of
// 255 makes a term that adds nothing. flags_o, beside rdata_o, is of the token's sums in this
// channel: bit 0 an s was negative, bit 1 a code was 255; 0 for other steps.
//
// Timing (t = cycle in which a step's operands are at the inputs):
//   t    v_i (one bit a live row), act_i, acode_i, rmax_i, w_i, wcode_i, cmax_i, grad_i, g_i
//   t+1  operand registers; products, partial sums, dot product, aligned term in t+2..t+5
//   t+5  first_i: this step starts a new sum (accumulator written at the end of t+5)
//   t+6  last_i: this step ended a sum; the live rows' accumulators go to the shadows
//   t+7  take_i adds the shadow of row_i to (add_i), or loads it into, the result register
//   wen_i writes the result register, one cycle after its take_i at the earliest; ren_i/rdata_o RAM
//   port.
// With FOLD 4 steps come four cycles apart at least. Their operands stay at the inputs, and column
// c has the times above c cycles later: last_i comes at t+9, take_i at t+10.
// A row without a live slot does nothing: each stage of a row has its own enable. In decode all but
// the first row stand still and have their own clock, and so have drain and FIFO: see
// mr_clk_gate. The gates are outside, one for all channels:
//   clk_rows_i  rows after the first one
//   clk_drain_i shadow registers, result register and FIFO
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_array_ch #(
  parameter int R = 4,
  parameter int PAIR = 0,
  parameter int DF = 32,
  parameter int FOLD = 1,
  parameter int GRAD = 0,
  localparam int SW = (GRAD != 0) ? 11 : 6
) (
  input  logic                  clk_i,
  input  logic                  clk_rows_i,
  input  logic                  clk_drain_i,
  input  logic                  rst_ni,
  input  logic [         R-1:0] v_i,
  input  logic                  first_i,
  input  logic                  last_i,
  input  logic [     R*256-1:0] act_i,
  input  logic [       R*8-1:0] acode_i,
  input  logic [       R*8-1:0] rmax_i,
  input  logic [        1023:0] w_i,
  input  logic [          31:0] wcode_i,
  input  logic [          31:0] cmax_i,
  input  logic                  grad_i,
  input  logic [          15:0] g_i,
  `MR_ARRAY_SHADOW_S(),
  output logic [         191:0] rdata_o,
  output logic [           1:0] flags_o
);

  localparam int RB = (R > 1) ? $clog2(R) : 1;

  // Distance of a block's exponent from the maximum, limited to the largest shift.
  function automatic logic [5:0] diff38(input logic [7:0] top, input logic [7:0] code);
    logic [7:0] d;
    d = top - code;
    diff38 = (d > 8'd38) ? 6'd38 : d[5:0];
  endfunction

  // The row's and the column's part of a gradient's shift, g + 284 - acode and -wcode. They are
  // limited so that their sum keeps its meaning: below 0, or above 38 where a code is 255.
  function automatic logic [SW-1:0] grad_row(input logic [15:0] g, input logic [7:0] code);
    logic signed [17:0] s;
    s = $signed({{2{g[15]}}, g}) + 18'sd284 - $signed({10'd0, code});
    grad_row = (&code || s > 18'sd1023) ? SW'(1023) : (s < -18'sd512) ? SW'(-512) : SW'(s);
  endfunction
  function automatic logic [SW-1:0] grad_col(input logic [7:0] code);
    grad_col = &code ? SW'(1023) : SW'(-{3'd0, code});
  endfunction
  function automatic logic [SW-1:0] row_term(input logic grad, input logic [15:0] g,
                                             input logic [7:0] top, input logic [7:0] code);
    row_term = (GRAD != 0 && grad) ? grad_row(g, code) : SW'(diff38(top, code));
  endfunction
  function automatic logic [SW-1:0] col_term(input logic grad, input logic [7:0] top,
                                             input logic [7:0] code);
    col_term = (GRAD != 0 && grad) ? grad_col(code) : SW'(diff38(top, code));
  endfunction

  // Columns of a cycle, the first of them, and the rows that are live in it.
  localparam int COLS = 4 / FOLD;
  logic [1:0] column;
  logic [R-1:0] v;
  if (FOLD > 1) begin : gen_fold
    logic [3*R-1:0] turns_q;  // live rows of the steps one, two and three cycles ago
    always_ff @(posedge clk_i) begin
      if (!rst_ni) turns_q <= '0;
      else turns_q <= {turns_q[2*R-1:0], v_i};
    end
    `MR_ASSERT(apart, v_i == '0 || turns_q == '0)
    assign v = v_i | turns_q[R-1:0] | turns_q[2*R-1:R] | turns_q[3*R-1:2*R];
    assign column = {turns_q[R] || turns_q[2*R], turns_q[0] || turns_q[2*R]};
  end else begin : gen_no_fold
    assign v = v_i;
    assign column = 2'd0;
  end

  // Column exponents. Row 0 is live whenever any row is, so its enables serve the columns.
  logic [1:0] v0;
  logic [COLS*SW-1:0] dc1_q, dc2_q, dc3_q;
  logic grad;  // of the steps in their third cycle
  always_ff @(posedge clk_i) begin
    if (v[0]) begin
      for (int c = 0; c < COLS; c++) begin
        dc1_q[SW*c+:SW] <= col_term(grad_i, cmax_i[8*(32'(column)+c)+:8],
                                    wcode_i[8*(32'(column)+c)+:8]);
      end
    end
    if (v0[0]) dc2_q <= dc1_q;
    if (v0[1]) dc3_q <= dc2_q;
  end

  logic [47:0] shadow_q [0:4*R-1];  // by row and column
  logic [2*R-1:0] flags;             // by row, as shadow_q

  // A step of GRAD, its unit, and whether a column of it is not a number.
  logic col_nan, grad1;  // grad1, g1: of the steps in their second cycle
  logic [15:0] g1;
  if (GRAD != 0) begin : gen_grad
    logic grad1_q, grad2_q, grad3_q;
    logic [15:0] g1_q;
    always_ff @(posedge clk_i) begin
      if (v_i[0]) begin
        grad1_q <= grad_i;
        g1_q    <= g_i;
      end
      if (v0[0]) grad2_q <= grad1_q;
      if (v0[1]) grad3_q <= grad2_q;
    end
    assign grad    = grad3_q;
    assign grad1   = grad1_q;
    assign g1      = g1_q;
    assign col_nan = &wcode_i[7:0] || &wcode_i[15:8] || &wcode_i[23:16] || &wcode_i[31:24];
  end else begin : gen_no_grad
    assign grad    = 1'b0;
    assign grad1   = 1'b0;
    assign g1      = 16'd0;
    assign col_nan = 1'b0;
  end

  for (genvar r = 0; r < R; r++) begin : gen_row
    logic [5:0] v_q;  // enables of the stages after the inputs
    logic [7:0] rmax_q, acode_q;  // as they come out of memory, whose read takes most of a cycle
    logic [SW-1:0] dr2_q, dr3_q;

    logic clk;
    if (r == 0) begin : gen_first
      assign v0  = v_q[1:0];
      assign clk = clk_i;
    end else begin : gen_later
      assign clk = clk_rows_i;
    end

    always_ff @(posedge clk) begin
      if (!rst_ni) v_q <= 6'd0;
      else v_q <= {v_q[4:0], v[r]};
    end
    always_ff @(posedge clk) begin
      if (v[r]) begin
        rmax_q  <= rmax_i[8*r+:8];
        acode_q <= acode_i[8*r+:8];
      end
      if (v_q[0]) dr2_q <= row_term(grad1, g1, rmax_q, acode_q);
      if (v_q[1]) dr3_q <= dr2_q;
    end
    logic [3:0] below;  // of the step in its fifth cycle
    if (FOLD > 1) begin : gen_fold
      logic [191:0] acc;
      mr_pe #(.FOLD(FOLD)) u_pe (
        .clk_i(clk), .v_i({v_q[4:0], v[r]}), .first_i, .grad_i(grad), .a_i(act_i[256*r+:256]),
        .w_i({256'd0, w_i[256*32'(column)+:256]}), .dr_i(dr3_q), .dc_i({6'd0, dc3_q}), .acc_o(acc),
        .below_o(below[1:0])
      );
      assign below[3:2] = 2'd0;
      always_ff @(posedge clk_drain_i) begin
        if (last_i && v_q[5]) begin
          for (int c = 0; c < 4; c++) shadow_q[4*r+c] <= acc[48*(3-c)+:48];
        end
      end
    end
    for (genvar p = 0; p < COLS / 2; p++) begin : gen_pe
      logic [95:0] acc;
      mr_pe #(.DSP(PAIR), .GRAD(GRAD)) u_pe (
        .clk_i(clk), .v_i({v_q[4:0], v_i[r]}), .first_i, .grad_i(grad), .a_i(act_i[256*r+:256]),
        .w_i(w_i[512*p+:512]), .dr_i(dr3_q), .dc_i(dc3_q[2*SW*p+:2*SW]), .acc_o(acc),
        .below_o(below[2*p+:2])
      );
      always_ff @(posedge clk_drain_i) begin
        if (last_i && v_q[5]) begin
          shadow_q[4*r+2*p]   <= acc[47:0];
          shadow_q[4*r+2*p+1] <= acc[95:48];
        end
      end
    end

    // Flags of a sum: they follow its accumulator, one register each for all columns.
    if (GRAD != 0) begin : gen_flags
      logic grad_q, col_nan_q;  // of the steps in their second cycle; acode_q is of a memory, late
      logic [2:0] nan_q;        // in their third to fifth
      logic [1:0] step_q, sum_q, shadow_flags_q;
      always_ff @(posedge clk) begin
        grad_q    <= v_i[r] && grad_i;
        col_nan_q <= col_nan;
        nan_q     <= {nan_q[1:0], grad_q && (col_nan_q || &acode_q)};
        if (v_q[3]) step_q <= {nan_q[2], below != '0};
        if (v_q[4]) sum_q <= (first_i ? 2'd0 : sum_q) | step_q;
      end
      always_ff @(posedge clk_drain_i) begin
        if (last_i && v_q[5]) shadow_flags_q <= sum_q;
      end
      assign flags[2*r+:2] = shadow_flags_q;
    end else begin : gen_no_flags
      assign flags[2*r+:2] = '0;
      logic unused_below;
      assign unused_below = ^below;
    end
  end

  logic [191:0] sum_q;
  always_ff @(posedge clk_drain_i) begin
    if (take_i) begin
      for (int c = 0; c < 4; c++) begin
        sum_q[48*c+:48] <= (add_i ? sum_q[48*c+:48] : 48'd0) + shadow_q[4*32'(row_i[RB-1:0])+c];
      end
    end
  end

  mr_ram_1r1w #(.W(192), .DEPTH(DF)) u_ram (
    .clk_i(clk_drain_i), .wen_i, .waddr_i, .wdata_i(sum_q),
    .ren_i, .raddr_i, .rdata_o
  );

  if (GRAD != 0) begin : gen_flags
    logic [1:0] sum_flags_q;
    always_ff @(posedge clk_drain_i) begin
      if (take_i) begin
        sum_flags_q <= (add_i ? sum_flags_q : 2'd0) | flags[2*32'(row_i[RB-1:0])+:2];
      end
    end
    mr_ram_1r1w #(.W(2), .DEPTH(DF)) u_flags (
      .clk_i(clk_drain_i), .wen_i, .waddr_i, .wdata_i(sum_flags_q),
      .ren_i, .raddr_i, .rdata_o(flags_o)
    );
  end else begin : gen_no_flags
    assign flags_o = '0;
    logic unused_flags;
    assign unused_flags = ^{flags, g_i, col_nan};
  end

  logic unused;
  assign unused = ^{row_i, clk_rows_i};

endmodule
