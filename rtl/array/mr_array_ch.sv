// SPDX-License-Identifier: Apache-2.0
// One channel of the array: R rows x 4 columns of processing elements, two columns an instance, the
// shadow registers, the adder for two-pass row pairs and this channel's share of the result FIFO's
// memory.
//
// Parameters
//   R     token rows
//   PAIR  1: columns 2i and 2i+1 share their multipliers where there are DSP48E2 (mr_dot)
//   DF    depth of the result FIFO in tokens (power of two)
//
// Timing (t = cycle in which a step's operands are at the inputs):
//   t    v_i (one bit a live row), act_i, acode_i, rmax_i, w_i, wcode_i, cmax_i
//   t+1  operand registers; products, partial sums, dot product, aligned term in t+2..t+5
//   t+5  first_i: this step starts a new sum (accumulator written at the end of t+5)
//   t+6  last_i: this step ended a sum; the live rows' accumulators go to the shadows
//   t+7  take_i adds the shadow of row_i to (add_i), or loads it into, the result register
//   wen_i writes the result register, one cycle after its take_i at the earliest; ren_i/rdata_o RAM
//   port.
// A row without a live slot does nothing: each stage of a row has its own enable. In decode all but
// the first row stand still and have their own clock, and so have drain and FIFO: see
// mr_clk_gate. The gates are outside, one for all channels:
//   clk_rows_i  rows after the first one
//   clk_drain_i shadow registers, result register and FIFO
module mr_array_ch #(
  parameter int R = 4,
  parameter int PAIR = 0,
  parameter int DF = 32
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
  input  logic                  take_i,
  input  logic                  add_i,
  input  logic [           5:0] row_i,
  input  logic                  wen_i,
  input  logic [$clog2(DF)-1:0] waddr_i,
  input  logic                  ren_i,
  input  logic [$clog2(DF)-1:0] raddr_i,
  output logic [         191:0] rdata_o
);

  localparam int RB = (R > 1) ? $clog2(R) : 1;

  // Distance of a block's exponent from the maximum, limited to the largest shift.
  function automatic logic [5:0] diff38(input logic [7:0] top, input logic [7:0] code);
    logic [7:0] d;
    d = top - code;
    diff38 = (d > 8'd38) ? 6'd38 : d[5:0];
  endfunction

  // Column exponents. Row 0 is live whenever any row is, so its enables serve the columns.
  logic [1:0] v0;
  logic [23:0] dc1_q, dc2_q, dc3_q;
  always_ff @(posedge clk_i) begin
    if (v_i[0]) begin
      for (int c = 0; c < 4; c++) dc1_q[6*c+:6] <= diff38(cmax_i[8*c+:8], wcode_i[8*c+:8]);
    end
    if (v0[0]) dc2_q <= dc1_q;
    if (v0[1]) dc3_q <= dc2_q;
  end

  logic [47:0] shadow_q [0:4*R-1];  // by row and column

  for (genvar r = 0; r < R; r++) begin : gen_row
    logic [5:0] v_q;  // enables of the stages after the inputs
    logic [5:0] dr1_q, dr2_q, dr3_q;

    logic clk;
    if (r == 0) begin : gen_first
      assign v0  = v_q[1:0];
      assign clk = clk_i;
    end else begin : gen_later
      assign clk = clk_rows_i;
    end

    always_ff @(posedge clk) begin
      if (!rst_ni) v_q <= 6'd0;
      else v_q <= {v_q[4:0], v_i[r]};
    end
    always_ff @(posedge clk) begin
      if (v_i[r]) dr1_q <= diff38(rmax_i[8*r+:8], acode_i[8*r+:8]);
      if (v_q[0]) dr2_q <= dr1_q;
      if (v_q[1]) dr3_q <= dr2_q;
    end
    for (genvar p = 0; p < 2; p++) begin : gen_pe
      logic [95:0] acc;
      logic [1:0] unused_below;
      mr_pe #(
        .DSP(PAIR)
      ) u_pe (
        .clk_i  (clk),
        .v_i    ({v_q[4:0], v_i[r]}),
        .first_i,
        .grad_i (1'b0),
        .a_i    (act_i[256*r+:256]),
        .w_i    (w_i[512*p+:512]),
        .dr_i   (dr3_q),
        .dc_i   (dc3_q[12*p+:12]),
        .acc_o  (acc),
        .below_o(unused_below)
      );
      always_ff @(posedge clk_drain_i) begin
        if (last_i && v_q[5]) begin
          shadow_q[4*r+2*p]   <= acc[47:0];
          shadow_q[4*r+2*p+1] <= acc[95:48];
        end
      end
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

  mr_ram_1r1w #(
    .W    (192),
    .DEPTH(DF)
  ) u_ram (
    .clk_i  (clk_drain_i),
    .wen_i,
    .waddr_i,
    .wdata_i(sum_q),
    .ren_i,
    .raddr_i,
    .rdata_o
  );

  logic unused;
  assign unused = ^{row_i, clk_rows_i};

endmodule
