// SPDX-License-Identifier: Apache-2.0
// One channel of the array: R rows x 4 columns of processing elements, the operand registers in front
// of them, the shadow chain, the adder for two-pass row pairs and this channel's share of the result
// FIFO's memory.
//
// Parameters
//   R     token rows
//   PAIR  1: rows 2i and 2i+1 share their multipliers (R even)
//   DF    depth of the result FIFO in tokens (power of two)
//
// Timing (t = cycle in which a step's operands are at the inputs):
//   t    v_i (one bit a live row), act_i, rmax_i, w_i, wcode_i, cmax_i
//   t+1  operand registers; products, partial sums, dot product, aligned term in t+2..t+5
//   t+5  first_i: this step starts a new sum (accumulator written at the end of t+5)
//   t+6  last_i: this step ended a sum; the live rows' accumulators go to the shadows
//   t+7  row 0 can be taken: take_i adds it to (add_i) or loads it into the result register; shift_i
//        moves the rows down by one
//   wen_i writes the result register, one cycle after its take_i at the earliest; ren_i/rdata_o RAM port.
module mr_array_ch #(
  parameter int R = 4,
  parameter int PAIR = 0,
  parameter int DF = 32
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [         R-1:0] v_i,
  input  logic                  first_i,
  input  logic                  last_i,
  input  logic [     R*264-1:0] act_i,
  input  logic [       R*8-1:0] rmax_i,
  input  logic [        1023:0] w_i,
  input  logic [          31:0] wcode_i,
  input  logic [          31:0] cmax_i,
  input  logic                  take_i,
  input  logic                  add_i,
  input  logic                  shift_i,
  input  logic                  wen_i,
  input  logic [$clog2(DF)-1:0] waddr_i,
  input  logic                  ren_i,
  input  logic [$clog2(DF)-1:0] raddr_i,
  output logic [         191:0] rdata_o
);

  // Distance of a block's exponent from the maximum, limited to the largest shift.
  function automatic logic [5:0] diff38(input logic [7:0] top, input logic [7:0] code);
    logic [7:0] d;
    d = top - code;
    diff38 = (d > 8'd38) ? 6'd38 : d[5:0];
  endfunction

  // Enables of the six stages after the inputs, one vector so that it is one shift: stage s at s*R.
  logic [6*R-1:0] v_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) v_q <= '0;
    else v_q <= {v_q[5*R-1:0], v_i};
  end

  logic [R*6-1:0] dr1_q, dr2_q, dr3_q;
  logic [   23:0] dc1_q, dc2_q, dc3_q;
  always_ff @(posedge clk_i) begin
    if (v_i[0]) begin
      for (int r = 0; r < R; r++) dr1_q[6*r+:6] <= diff38(rmax_i[8*r+:8], act_i[264*r+256+:8]);
      for (int c = 0; c < 4; c++) dc1_q[6*c+:6] <= diff38(cmax_i[8*c+:8], wcode_i[8*c+:8]);
    end
    if (v_q[0]) begin
      dr2_q <= dr1_q;
      dc2_q <= dc1_q;
    end
    if (v_q[R]) begin
      dr3_q <= dr2_q;
      dc3_q <= dc2_q;
    end
  end

  logic [1023:0] w_q;
  always_ff @(posedge clk_i) begin
    if (v_i[0]) w_q <= w_i;
  end

  logic [R*256-1:0] a_q;
  for (genvar r = 0; r < R; r++) begin : gen_a
    always_ff @(posedge clk_i) begin
      if (v_i[r]) a_q[256*r+:256] <= act_i[264*r+:256];
    end
  end

  // Shadow chain: row r's shadow is chain[(4 r + c) * 48 +: 48]; nothing comes from above row R-1.
  logic [(R+1)*192-1:0] chain;
  assign chain[R*192+:192] = '0;

  if (PAIR == 0) begin : gen_single
    for (genvar r = 0; r < R; r++) begin : gen_row
      logic cap;
      assign cap = last_i && v_q[5*R+r];
      for (genvar c = 0; c < 4; c++) begin : gen_col
        mr_pe u_pe (
          .clk_i,
          .v_i    ({v_q[4*R+r], v_q[3*R+r], v_q[2*R+r], v_q[R+r], v_q[r]}),
          .first_i,
          .cap_i  (cap),
          .shift_i,
          .a_i    (a_q[256*r+:256]),
          .w_i    (w_q[256*c+:256]),
          .dr_i   (dr3_q[6*r+:6]),
          .dc_i   (dc3_q[6*c+:6]),
          .chain_i(chain[(4*(r+1)+c)*48+:48]),
          .chain_o(chain[(4*r+c)*48+:48])
        );
      end
    end
  end else begin : gen_pair
    for (genvar r = 0; r < R; r = r + 2) begin : gen_row
      logic cap_lo, cap_hi;
      assign cap_lo = last_i && v_q[5*R+r];
      assign cap_hi = last_i && v_q[5*R+r+1];
      assign chain[4*(r+1)*48+:192] = '0;  // inside the pair
      for (genvar c = 0; c < 4; c++) begin : gen_col
        mr_pe_pair u_pe (
          .clk_i,
          .v_i     ({v_q[3*R+r], v_q[2*R+r], v_q[R+r], v_q[r]}),
          .v_lo_i  (v_q[4*R+r]),
          .v_hi_i  (v_q[4*R+r+1]),
          .first_i,
          .cap_lo_i(cap_lo),
          .cap_hi_i(cap_hi),
          .shift_i,
          .a_lo_i  (a_q[256*r+:256]),
          .a_hi_i  (a_q[256*(r+1)+:256]),
          .w_i     (w_q[256*c+:256]),
          .dr_lo_i (dr3_q[6*r+:6]),
          .dr_hi_i (dr3_q[6*(r+1)+:6]),
          .dc_i    (dc3_q[6*c+:6]),
          .chain_i (chain[(4*(r+2)+c)*48+:48]),
          .chain_o (chain[(4*r+c)*48+:48])
        );
      end
    end
  end

  logic [191:0] sum_q;
  always_ff @(posedge clk_i) begin
    if (take_i) begin
      for (int c = 0; c < 4; c++) begin
        sum_q[48*c+:48] <= (add_i ? sum_q[48*c+:48] : 48'd0) + chain[48*c+:48];
      end
    end
  end

  mr_ram_1r1w #(
    .W    (192),
    .DEPTH(DF)
  ) u_ram (
    .clk_i,
    .wen_i,
    .waddr_i,
    .wdata_i(sum_q),
    .ren_i,
    .raddr_i,
    .rdata_o
  );

endmodule
