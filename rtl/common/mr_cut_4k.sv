// SPDX-License-Identifier: Apache-2.0
// Cuts a run of consecutive units (beats, or bytes) into pieces that no AXI burst must be longer
// than: none crosses a 4 KiB page, none has more than MOST units, and each is as long as that lets
// it be. Every AXI master of the engine gets its bursts from one of these.
//
// Load a run, then take its pieces one after the other:
//   load_i    takes addr_i and left_i (> 0 units); while nothing is inside, or together with the
//             next_i of a run's last piece
//   valid_o   a piece is offered: addr_o, n_o units, last_o if it is the run's last. It stays until
//             next_i, which is given under valid_o only. Outputs come from registers through the
//             comparison that cuts (STAGE 0), or n_o and last_o from registers (STAGE 1)
//   busy_o    a run is inside
//   clear_i   drops it; no load_i in the same cycle
// A piece is offered one cycle after its load or the next_i before it, with STAGE 1 two cycles.
//
// Parameters
//   PAGE_LOG2  units of 4 KiB, log2: 6 for beats of 64 bytes, 12 for bytes
//   ADDR, LEFT widths of an address in units and of a run's length
//   MOST       longest piece, at most a page
//   STAGE      1: a register between what is left and the piece's length
`include "mr_assert.svh"
module mr_cut_4k #(
  parameter int PAGE_LOG2 = 6,
  parameter int ADDR = 58,
  parameter int LEFT = 16,
  parameter int MOST = 64,
  parameter int STAGE = 0
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               clear_i,

  input  logic               load_i,
  input  logic [ADDR-1:0]    addr_i,
  input  logic [LEFT-1:0]    left_i,

  output logic               busy_o,
  output logic               valid_o,
  input  logic               next_i,
  output logic [ADDR-1:0]    addr_o,
  output logic [PAGE_LOG2:0] n_o,
  output logic               last_o
`ifdef FORMAL
  ,
  output logic [LEFT-1:0]    f_left_o  // proofs: units from addr_o on
`endif
);

  localparam int P = PAGE_LOG2;

  logic            busy_q;
  logic [ADDR-1:0] addr_q;
  logic [LEFT-1:0] left_q;

  // To the end of the page, at most MOST, at most what is left; that is looked at up to a page.
  logic [P:0] room, most, left, n;
  logic       more, last;
  assign room = {1'b1, {P{1'b0}}} - {1'b0, addr_q[P-1:0]};
  if (MOST < (1 << P)) begin : gen_most
    assign most = (room < (P + 1)'(MOST)) ? room : (P + 1)'(MOST);
  end else begin : gen_page
    assign most = room;
  end
  assign more = left_q[LEFT-1:P] != '0;
  assign left = more ? {1'b1, {P{1'b0}}} : {1'b0, left_q[P-1:0]};
  assign n    = (left <= most) ? left : most;
  assign last = (left <= most) && (!more || left_q == LEFT'(1 << P));

  // The page is counted beside the comparison, which then only chooses: one carry chain, not two.
  // How far to go is n_o, or with STAGE 0, where that comes late, as far as the page lets: behind a
  // run's last piece nothing looks at addr_q and left_q.
  logic [P:0]        low, step;
  logic [ADDR-P-1:0] page;
  assign step = (STAGE == 0) ? most : n_o;
  assign low  = {1'b0, addr_q[P-1:0]} + step;
  assign page = addr_q[ADDR-1:P] + (ADDR - P)'(1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) busy_q <= 1'b0;
    else if (load_i) busy_q <= 1'b1;
    else if (next_i && last_o) busy_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (load_i) begin
      addr_q <= addr_i;
      left_q <= left_i;
    end else if (next_i) begin
      addr_q <= {low[P] ? page : addr_q[ADDR-1:P], low[P-1:0]};
      left_q <= left_q - LEFT'(step);
    end
  end
  assign busy_o = busy_q;
  assign addr_o = addr_q;

  if (STAGE == 0) begin : gen_direct
    assign valid_o = busy_q;
    assign n_o     = n;
    assign last_o  = last;
  end else begin : gen_stage
    logic       valid_q, last_q;
    logic [P:0] n_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i) valid_q <= 1'b0;
      else valid_q <= valid_q ? !next_i : busy_q;
      if (busy_q && !valid_q) begin
        n_q    <= n;
        last_q <= last;
      end
    end
    assign valid_o = valid_q;
    assign n_o     = n_q;
    assign last_o  = last_q;
  end

`ifndef FORMAL  // proofs hold it to nothing
  `MR_ASSERT(load, !load_i || (left_i != '0 && (!busy_o || (next_i && last_o))))
  `MR_ASSERT(next, !next_i || valid_o)
`endif

`ifdef FORMAL
  assign f_left_o = left_q;
  `include "mr_cut_4k_props.svh"
`endif

endmodule
