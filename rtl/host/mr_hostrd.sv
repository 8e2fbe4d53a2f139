// SPDX-License-Identifier: Apache-2.0
// Read side of the host AXI4 port: several clients share it, their requests are cut into bursts and
// the beats go back in order.
//
// Parameters
//   CLIENTS      clients; a lower number has priority
//   OUTSTANDING  bursts in flight, a power of two
//
// Requests: req_valid_i/req_ready_o (bit per client), req_addr_i 64-byte aligned, req_beats_i > 0;
// the client has checked its window. Requests are served one at a time, in the order of acceptance,
// but the next one's addresses go out while the previous one's data is still coming.
// Data: valid_o (bit per client) with data_o one cycle after the R beat, in order of the client's
// requests, never refused: a client asks for no more than it has room for. RREADY is constantly 1.
// last_o comes with the last beat of a request.
// AXI: one ID, INCR, <= 64 beats, never across 4 KiB; ARVALID and its payload are stable until
// ARREADY.
// Errors: RRESP other than OKAY: err_valid_o pulse, READ, address of the burst; the beat is
// delivered. flush_i (level): takes no request, drops what is left of the current one; outstanding
// beats arrive and are dropped. idle_o: nothing left and nothing outstanding. cnt_beat_o: a beat
// arrived.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_hostrd #(
  parameter int CLIENTS = 2,
  parameter int OUTSTANDING = 8
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  flush_i,

  input  logic [CLIENTS-1:0]    req_valid_i,
  output logic [CLIENTS-1:0]    req_ready_o,
  input  logic [CLIENTS*64-1:0] req_addr_i,
  input  logic [CLIENTS*16-1:0] req_beats_i,
  output logic [CLIENTS-1:0]    valid_o,
  output logic                  last_o,
  output logic [511:0]          data_o,

  output logic                  idle_o,
  `MR_ERR_M(err_, 1),
  output logic                  cnt_beat_o,

  `MR_AXI_R_M(m_, 1)
);

  localparam int IW = (CLIENTS > 1) ? $clog2(CLIENTS) : 1;
  localparam int OW = $clog2(OUTSTANDING);

  // ---- current request --------------------------------------------------------------------------
  logic          busy;
  logic [IW-1:0] who_q;

  logic [IW-1:0] pick;
  logic          any;
  logic [CLIENTS-1:0] grant;  // the lowest that asks
  assign any = |req_valid_i;
  always_comb begin
    pick = '0;
    for (int i = CLIENTS - 1; i >= 0; i--) begin
      if (req_valid_i[i]) pick = IW'(i);
      grant[i] = req_valid_i[i];
      for (int j = 0; j < i; j++) if (req_valid_i[j]) grant[i] = 1'b0;
    end
  end

  logic take;
  assign take        = !busy && any && !flush_i;
  assign req_ready_o = !busy && !flush_i ? grant : '0;

  // The request in work, burst by burst.
  logic        cut, unused_valid;
  logic [57:0] addr, new_addr;
  logic [15:0] new_beats;
  logic [6:0]  blen;
  logic        issue;
  always_comb begin
    new_addr  = req_addr_i[6+:58];
    new_beats = req_beats_i[15:0];
    for (int i = 1; i < CLIENTS; i++) begin
      if (pick == IW'(i)) begin
        new_addr  = req_addr_i[i*64+6+:58];
        new_beats = req_beats_i[i*16+:16];
      end
    end
  end
`ifdef FORMAL
  logic [15:0] f_left;
`endif
  mr_cut_4k #(.PAGE_LOG2(6), .ADDR(58), .LEFT(16)) u_cut (
    .clk_i, .rst_ni, .clear_i(flush_i), .load_i(take), .addr_i(new_addr), .left_i(new_beats),
    .busy_o(busy), .valid_o(unused_valid), .next_i(issue), .addr_o(addr), .n_o(blen), .last_o(cut)
`ifdef FORMAL
    , .f_left_o(f_left)
`endif
  );

  logic        ar_valid_q;
  logic [57:0] ar_addr_q;
  logic [6:0]  ar_len_q;
  logic [OW:0] out_q;
  assign issue = busy && (!ar_valid_q || m_arready_i) && !out_q[OW] && !flush_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_valid_q <= 1'b0;
    end else begin
      if (issue) ar_valid_q <= 1'b1;
      else if (m_arready_i) ar_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) who_q <= pick;
    if (issue) begin
      ar_addr_q <= addr;
      ar_len_q  <= blen - 7'd1;
    end
  end

  assign m_arvalid_o = ar_valid_q;
  assign m_araddr_o  = {ar_addr_q, 6'b0};
  assign m_arlen_o   = {1'b0, ar_len_q};

  // ---- bursts in flight -------------------------------------------------------------------------
  logic [IW+58:0]  order_mem [0:OUTSTANDING-1];  // {last of its request, client, address in beats}
  logic [OW-1:0]   wptr_q, rptr_q;
  logic [IW+58:0]  head;
  logic            r_done;
  assign head   = order_mem[rptr_q];
  assign r_done = m_rvalid_i && m_rlast_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      out_q  <= '0;
    end else begin
      if (issue) wptr_q <= wptr_q + 1'b1;
      if (r_done) rptr_q <= rptr_q + 1'b1;
      if (issue && !r_done) out_q <= out_q + 1'b1;
      if (r_done && !issue) out_q <= out_q - 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (issue) order_mem[wptr_q] <= {cut, who_q, addr};
  end

  // ---- data -------------------------------------------------------------------------------------
  logic [CLIENTS-1:0] valid_q;
  logic               last_q, beat_q, err_q;
  logic [511:0]       data_q;
  logic [57:0]        err_addr_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
      beat_q  <= 1'b0;
      err_q   <= 1'b0;
    end else begin
      for (int i = 0; i < CLIENTS; i++) begin
        valid_q[i] <= m_rvalid_i && !flush_i && (head[58+:IW] == IW'(i));
      end
      beat_q <= m_rvalid_i;
      err_q  <= m_rvalid_i && (m_rresp_i != 2'b00);
    end
  end
  always_ff @(posedge clk_i) begin
    if (m_rvalid_i) begin
      data_q     <= m_rdata_i;
      last_q     <= m_rlast_i && head[58+IW];
      err_addr_q <= head[57:0];
    end
  end

  assign valid_o     = valid_q;
  assign last_o      = last_q;
  assign data_o      = data_q;
  assign cnt_beat_o  = beat_q;
  assign err_valid_o = err_q;
  assign err_code_o  = mr_pkg::DEVERR_READ[7:0];
  assign err_addr_o  = {err_addr_q, 6'b0};
  assign idle_o      = !busy && (out_q == '0);

  `MR_ASSERT_STABLE(ar, m_arvalid_o, m_arready_i, {m_araddr_o, m_arlen_o})
  `MR_ASSERT_COUNT(flight, out_q, issue, r_done, OUTSTANDING)
  `MR_ASSERT_ONEHOT0(grants, req_ready_o)
`ifndef FORMAL  // the proof does not rely on it
  for (genvar i = 0; i < CLIENTS; i++) begin : gen_client
    `MR_ASSERT_STABLE(req, req_valid_i[i], req_ready_o[i] || flush_i,
                      {req_addr_i[64*i+:64], req_beats_i[16*i+:16]})
  end
`else
  `include "mr_hostrd_props.svh"
`endif

endmodule
