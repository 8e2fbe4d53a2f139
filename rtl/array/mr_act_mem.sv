// SPDX-License-Identifier: Apache-2.0
// Activation memory: quantised blocks of all row slots in R banks, and the row maxima of their
// codes.
//
// Parameters
//   R          banks = array rows (power of two); row slot s lies in bank s % R, group s / R
//   T          row slots (power of two, multiple of R)
//   ACT_WORDS  words of {code, 32 int8} a slot (power of two)
//   SET        1: b_set_i and b_max_i count
//   ACT_AW, RMAX_AW  (derived) address widths
//
// Write ports a_ and b_ (valid/ready; a_ wins, a_ready_o is always 1): one block at word x_word_i
// (< ACT_WORDS) of slot x_slot_i (< T). The row maximum {x_region_i, slot} becomes the code if
// x_first_i, else the maximum of itself and the code. With x_lo_i (second pass, odd slot; it
// follows its first-pass block) the even slot's maximum is copied instead: both slots of a pair end
// with the first pass' maximum. With b_set_i the maximum becomes b_max_i. A block accepted in
// cycle t is seen, with its maximum, by reads from t+3 on.
//
// Read ports (RAM ports, data one cycle after the enable, held): act_ren_i one enable a bank,
// act_raddr_i = group * ACT_WORDS + word for all banks, act_rdata_o the elements and act_rcode_o
// the codes (bank 0 low); rmax_raddr_i = {region, group}, one byte a bank.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_act_mem #(
  parameter int R = 4,
  parameter int T = 128,
  parameter int ACT_WORDS = 64,
  parameter int SET = 0,
  parameter int ACT_AW = $clog2(T / R * ACT_WORDS),
  parameter int RMAX_AW = $clog2(T / R * 4)
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  `MR_BLK_S(a_),

  `MR_BLK_S(b_),
  input  logic               b_set_i,
  input  logic [        7:0] b_max_i,

  `MR_ACT_R_S(act_, R, ACT_AW),
  `MR_RAM_R_S(rmax_, RMAX_AW, R*8)
);

  localparam int LR = $clog2(R);
  localparam int LA = $clog2(ACT_WORDS);
  localparam int LS = $clog2(T);
  localparam int SAW = $clog2(T * 4);  // maxima by {region, slot}

  if (SET == 0) begin : gen_no_set
    logic unused;
    assign unused = ^{b_set_i, b_max_i};
  end

  assign a_ready_o = 1'b1;
  assign b_ready_o = !a_valid_i;

  // ---- t+1: the accepted block ------------------------------------------------------------------
  logic w_valid_q, w_first_q, w_lo_q, w_set_q;
  logic [7:0] w_max_q;
  logic [LS-1:0] w_slot_q;
  logic [ACT_AW-1:0] w_addr_q;
  logic [1:0] w_region_q;
  logic [263:0] w_data_q;
  logic [R-1:0] w_bank_q;

  function automatic logic [R-1:0] bank(input logic [15:0] slot);
    for (int r = 0; r < R; r++) bank[r] = ((slot & 16'(R - 1)) == 16'(r));
  endfunction

  function automatic logic [ACT_AW-1:0] address(input logic [15:0] slot, input logic [15:0] word);
    address = ACT_AW'(((32'(slot) >> LR) << LA) | 32'(word));
  endfunction

  // Nothing moves here without a block. The memories themselves are read in every step.
  logic clk_w;
  mr_clk_gate #(.HOLD(4)) u_gate (
    .clk_i, .active_i(!rst_ni || a_valid_i || b_valid_i), .clk_o(clk_w)
  );
  always_ff @(posedge clk_w) begin
    if (!rst_ni) begin
      w_valid_q <= 1'b0;
      w_bank_q  <= '0;
    end else begin
      w_valid_q <= a_valid_i || b_valid_i;
      if (a_valid_i) w_bank_q <= bank(a_slot_i);
      else if (b_valid_i) w_bank_q <= bank(b_slot_i);
      else w_bank_q <= '0;
    end
  end
  always_ff @(posedge clk_w) begin
    if (a_valid_i) begin
      w_slot_q   <= LS'(a_slot_i);
      w_addr_q   <= address(a_slot_i, a_word_i);
      w_region_q <= a_region_i;
      w_first_q  <= a_first_i;
      w_lo_q     <= a_lo_i;
      w_set_q    <= 1'b0;
      w_data_q   <= a_data_i;
    end else if (b_valid_i) begin
      w_slot_q   <= LS'(b_slot_i);
      w_addr_q   <= address(b_slot_i, b_word_i);
      w_region_q <= b_region_i;
      w_first_q  <= b_first_i;
      w_lo_q     <= b_lo_i;
      w_set_q    <= SET != 0 ? b_set_i : 1'b0;
      w_max_q    <= b_max_i;
      w_data_q   <= b_data_i;
    end
  end

  for (genvar r = 0; r < R; r++) begin : gen_bank
    logic [263:0] rdata;
    assign act_rdata_o[256*r+:256] = rdata[255:0];
    assign act_rcode_o[8*r+:8] = rdata[263:256];
    // A semaphore stands between who writes and who reads (docs/inside/commands.md).
    mr_ram_1r1w #(.W(264), .DEPTH(T / R * ACT_WORDS), .APART(1)) u_act (
      .clk_i, .wen_i(w_bank_q[r]), .waddr_i(w_addr_q), .wdata_i(w_data_q),
      .ren_i(act_ren_i[r]), .raddr_i(act_raddr_i), .rdata_o(rdata)
    );
  end

  // ---- row maxima: read in t+1, modify and write in t+2 -----------------------------------------
  logic m_valid_q, m_first_q, m_lo_q;
  logic [R-1:0] m_bank_q;
  logic [SAW-1:0] m_waddr_q;
  logic [7:0] m_code_q;
  always_ff @(posedge clk_w) begin
    if (!rst_ni) begin
      m_valid_q <= 1'b0;
      m_bank_q  <= '0;
    end else begin
      m_valid_q <= w_valid_q;
      m_bank_q  <= w_bank_q;
    end
  end

  // A second pass block reads its even neighbour.
  logic [SAW-1:0] w_maddr, w_mread;
  assign w_maddr = (SAW'(w_region_q) << LS) | SAW'(w_slot_q);
  assign w_mread = {w_maddr[SAW-1:1], w_maddr[0] && !w_lo_q};

  // The entry that is being written while it is read: the memory still gives the old one.
  logic fwd_q;
  logic [7:0] fwd_max_q, m_old, m_ram, m_new;
  always_ff @(posedge clk_w) begin
    if (w_valid_q) begin
      m_first_q <= w_first_q || (SET != 0 ? w_set_q : 1'b0);
      m_lo_q    <= w_lo_q;
      m_code_q  <= (SET != 0 ? w_set_q : 1'b0) ? w_max_q : w_data_q[263:256];
      m_waddr_q <= w_maddr;
      fwd_q     <= m_valid_q && (m_waddr_q == w_mread);
      fwd_max_q <= m_new;
    end
  end

  assign m_old = fwd_q ? fwd_max_q : m_ram;
  always_comb begin
    if (m_lo_q) m_new = m_old;
    else if (m_first_q || m_code_q > m_old) m_new = m_code_q;
    else m_new = m_old;
  end

  mr_ram_1r1w #(.W(8), .DEPTH(T * 4)) u_max (
    .clk_i(clk_w), .wen_i(m_valid_q), .waddr_i(m_waddr_q), .wdata_i(m_new),
    .ren_i(w_valid_q), .raddr_i(w_mread), .rdata_o(m_ram)
  );

  // The array's copy, by bank: {region, group}.
  logic [RMAX_AW-1:0] m_gaddr;
  assign m_gaddr = RMAX_AW'(m_waddr_q >> LR);
  for (genvar r = 0; r < R; r++) begin : gen_max
    mr_ram_1r1w #(.W(8), .DEPTH(T / R * 4)) u_max (
      .clk_i, .wen_i(m_bank_q[r]), .waddr_i(m_gaddr), .wdata_i(m_new),
      .ren_i(rmax_ren_i), .raddr_i(rmax_raddr_i), .rdata_o(rmax_rdata_o[8*r+:8])
    );
  end

  `MR_ASSERT(a_place, !a_valid_i || (32'(a_slot_i) < T && 32'(a_word_i) < ACT_WORDS))
  `MR_ASSERT(b_place, !b_valid_i || (32'(b_slot_i) < T && 32'(b_word_i) < ACT_WORDS))
  `MR_ASSERT(second, !w_valid_q || !w_lo_q || w_slot_q[0])
  `MR_ASSERT_ONEHOT0(bank, w_bank_q)

endmodule
