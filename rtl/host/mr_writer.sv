// SPDX-License-Identifier: Apache-2.0
// Write side of the host AXI4 port: jobs of several clients, each a run of consecutive beats.
//
// Parameters
//   CLIENTS  clients
//   BURSTS   bursts whose data is complete but whose response has not come, a power of two
//   FIFO     beats of the data buffer, a power of two, >= 128
//
// Jobs: job_valid_i/job_ready_o (bit per client), job_addr_i 64-byte aligned, job_beats_i > 0,
// job_strb_i the byte enables of the job's last beat (all others are written whole). The client has
// checked its window. One job at a time is collected; clients take turns by job. After its job was
// taken the client delivers exactly job_beats_i beats on data_valid_i/data_ready_o, and must do so
// without waiting for anything that another client may hold up.
// done_o (bit per client): pulse per job, in job order, when the responses of all its bursts are
// in. A response other than OKAY gives err_valid_o, WRITE, address of the burst, and done_o all
// the same.
// AXI: one ID, INCR, <= 64 beats, never across 4 KiB. AWVALID and WVALID rise only when the burst's
// data is complete, so W never waits for a client; BREADY is constantly 1.
// flush_i (level): drops the job that is being collected and takes no other; complete bursts go
// out and are acknowledged, without done_o. idle_o: nothing collected, nothing outstanding.
// cnt_beat_o: a W beat was accepted.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_writer #(
  parameter int CLIENTS = 2,
  parameter int BURSTS = 16,
  parameter int FIFO = 128
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   flush_i,

  input  logic [CLIENTS-1:0]     job_valid_i,
  output logic [CLIENTS-1:0]     job_ready_o,
  input  logic [CLIENTS*64-1:0]  job_addr_i,
  input  logic [CLIENTS*16-1:0]  job_beats_i,
  input  logic [CLIENTS*64-1:0]  job_strb_i,
  input  logic [CLIENTS-1:0]     data_valid_i,
  output logic [CLIENTS-1:0]     data_ready_o,
  input  logic [CLIENTS*512-1:0] data_i,
  output logic [CLIENTS-1:0]     done_o,

  output logic                   idle_o,
  `MR_ERR_M(err_, 1),
  output logic                   cnt_beat_o,

  `MR_AXI_W_M(m_, 1)
);

  localparam int IW = (CLIENTS > 1) ? $clog2(CLIENTS) : 1;
  localparam int BW = $clog2(BURSTS);
  localparam int FW = $clog2(FIFO);

  // ---- job --------------------------------------------------------------------------------------
  localparam logic [1:0] S_IDLE = 2'd0, S_CUT = 2'd1, S_FILL = 2'd2;
  logic [1:0]    state_q, state_d;
  logic [IW-1:0] who_q, pick;
  logic          any;
  logic [63:0]   strb_q;
  logic [6:0]    blen_q;   // current burst
  logic [6:0]    need_q;   // its beats still to come
  logic          blast_q;  // it is the job's last

  // The client after the last served one comes first. One-hot, each bit from few inputs.
  function automatic [CLIENTS-1:0] first_after(input [CLIENTS-1:0] asks, input [IW-1:0] last);
    logic found;
    begin
      first_after = '0;
      for (int w = 0; w < CLIENTS; w++) begin
        found = last != IW'(w);
        for (int k = 1; k <= CLIENTS; k++) begin
          if (asks[(w+k)%CLIENTS] && !found) begin
            first_after[(w+k)%CLIENTS] = 1'b1;
            found = 1'b1;
          end
        end
      end
    end
  endfunction
  logic [CLIENTS-1:0] grant;
  assign grant = first_after(job_valid_i, who_q);
  assign any   = |job_valid_i;
  always_comb begin
    pick = '0;
    for (int i = 1; i < CLIENTS; i++) if (grant[i]) pick = IW'(i);
  end

  logic take, push, commit;
  logic [CLIENTS-1:0] ready_q;  // beats of who_q are taken: filling, and there is space
  assign take         = (state_q == S_IDLE) && any && !flush_i;
  assign job_ready_o  = (state_q == S_IDLE) && !flush_i ? grant : '0;
  assign data_ready_o = ready_q;

  logic [BW:0] ring_q;  // bursts from commit to response

  // The job that is being collected, burst by burst.
  logic        cut, unused_busy, unused_valid;
  logic [57:0] addr, new_addr;
  logic [15:0] new_beats;
  logic [6:0]  blen;
  always_comb begin
    new_addr  = job_addr_i[6+:58];
    new_beats = job_beats_i[15:0];
    for (int i = 1; i < CLIENTS; i++) begin
      if (pick == IW'(i)) begin
        new_addr  = job_addr_i[i*64+6+:58];
        new_beats = job_beats_i[i*16+:16];
      end
    end
  end
`ifdef FORMAL
  logic [15:0] f_left;
`endif
  mr_cut_4k #(.PAGE_LOG2(6), .ADDR(58), .LEFT(16)) u_cut (
    .clk_i, .rst_ni, .clear_i(flush_i), .load_i(take), .addr_i(new_addr), .left_i(new_beats),
    .busy_o(unused_busy), .valid_o(unused_valid), .next_i((state_q == S_CUT) && !ring_q[BW]),
    .addr_o(addr), .n_o(blen), .last_o(cut)
`ifdef FORMAL
    , .f_left_o(f_left)
`endif
  );

  assign push   = |(data_valid_i & data_ready_o);
  assign commit = push && (need_q == 7'd1);
  logic b_beat, push_ok;
  assign b_beat  = m_bvalid_i && (ring_q != '0);
  assign push_ok = commit && !flush_i;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      S_IDLE: if (take) state_d = S_CUT;
      S_CUT: if (!ring_q[BW]) state_d = S_FILL;
      S_FILL: if (commit) state_d = blast_q ? S_IDLE : S_CUT;
      default: state_d = S_IDLE;
    endcase
    if (flush_i) state_d = S_IDLE;
  end
  logic [FW:0] fill_d;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      who_q   <= '0;
      ready_q <= '0;
    end else begin
      state_q <= state_d;
      if (take) who_q <= pick;
      for (int i = 0; i < CLIENTS; i++) begin
        ready_q[i] <= (state_d == S_FILL) && !fill_d[FW] && (who_q == IW'(i));
      end
    end
  end

  logic [57:0] baddr_q;
  always_ff @(posedge clk_i) begin
    if (take) begin
      for (int i = 0; i < CLIENTS; i++) begin
        if (pick == IW'(i)) strb_q <= job_strb_i[i*64+:64];
      end
    end
    if (state_q == S_CUT) begin
      baddr_q <= addr;
      blen_q  <= blen;
      need_q  <= blen;
      blast_q <= cut;
    end
    if (push) need_q <= need_q - 7'd1;
  end

  // ---- data buffer ------------------------------------------------------------------------------
  logic [FW-1:0] wptr_q, cptr_q, rptr_q;  // write, committed, read
  logic [FW:0]   fill_q;                  // beats inside
  logic [FW:0]   comm_q;                  // of them, beats of complete bursts
  logic          ren;
  assign fill_d = flush_i ? comm_q - (FW + 1)'(ren) :
                  fill_q + (FW + 1)'(push) - (FW + 1)'(ren);

  logic [511:0] push_data;
  always_comb begin
    push_data = data_i[511:0];
    for (int i = 1; i < CLIENTS; i++) begin
      if (who_q == IW'(i)) push_data = data_i[i*512+:512];
    end
  end

  // Only beats of complete bursts are read.
  mr_ram_1r1w #(.W(512), .DEPTH(FIFO), .APART(1)) u_data (
    .clk_i, .wen_i(push), .waddr_i(wptr_q), .wdata_i(push_data),
    .ren_i(ren), .raddr_i(rptr_q), .rdata_o(m_wdata_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      cptr_q <= '0;
      rptr_q <= '0;
      fill_q <= '0;
      comm_q <= '0;
    end else begin
      if (flush_i) wptr_q <= cptr_q;
      else if (push) wptr_q <= wptr_q + 1'b1;
      if (push_ok) cptr_q <= wptr_q + 1'b1;
      if (ren) rptr_q <= rptr_q + 1'b1;
      comm_q <= comm_q + (push_ok ? (FW + 1)'(blen_q) : '0) - (FW + 1)'(ren);
      fill_q <= fill_d;
    end
  end

  // ---- bursts: one ring, read by AW, by W and by B ----------------------------------------------
  logic [57:0]   ring_addr [0:BURSTS-1];
  logic [6:0]    ring_len  [0:BURSTS-1];
  logic [63:0]   ring_strb [0:BURSTS-1];
  logic [IW:0]   ring_tag  [0:BURSTS-1];  // {last of its job, client}
  logic [BW-1:0] rw_q, aw_q, w_q, b_q;
  // Bursts that wait for AW; bursts whose AW has been offered (not: taken) and that wait for W.
  logic [BW:0]   aw_cnt_q, w_cnt_q;

  always_ff @(posedge clk_i) begin
    if (commit) begin
      ring_addr[rw_q] <= baddr_q;
      ring_len[rw_q]  <= blen_q;
      ring_strb[rw_q] <= blast_q ? strb_q : '1;
      ring_tag[rw_q]  <= {blast_q, who_q};
    end
  end

  // AW
  logic        awv_q, aw_load;
  logic [57:0] awaddr_q;
  logic [6:0]  awlen_q;
  assign aw_load = (aw_cnt_q != '0) && (!awv_q || m_awready_i);
  always_ff @(posedge clk_i) begin
    if (aw_load) begin
      awaddr_q <= ring_addr[aw_q];
      awlen_q  <= ring_len[aw_q] - 7'd1;
    end
  end
  assign m_awvalid_o = awv_q;
  assign m_awaddr_o  = {awaddr_q, 6'b0};
  assign m_awlen_o   = {1'b0, awlen_q};

  // W: the buffer's read register is the output register.
  logic        wv_q, wlast_q, w_end;
  logic [6:0]  wbeat_q;  // beat of the burst that is read next
  logic [63:0] wstrb_q;
  assign ren   = (w_cnt_q != '0) && (!wv_q || m_wready_i);
  assign w_end = ren && (wbeat_q + 7'd1 == ring_len[w_q]);
  always_ff @(posedge clk_i) begin
    if (ren) begin
      wlast_q <= w_end;
      wstrb_q <= w_end ? ring_strb[w_q] : '1;
    end
  end
  assign m_wvalid_o = wv_q;
  assign m_wlast_o  = wlast_q;
  assign m_wstrb_o  = wstrb_q;
  assign m_bready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rw_q     <= '0;
      aw_q     <= '0;
      w_q      <= '0;
      b_q      <= '0;
      aw_cnt_q <= '0;
      w_cnt_q  <= '0;
      ring_q   <= '0;
      awv_q    <= 1'b0;
      wv_q     <= 1'b0;
      wbeat_q  <= '0;
    end else begin
      if (push_ok) rw_q <= rw_q + 1'b1;
      if (aw_load) aw_q <= aw_q + 1'b1;
      if (w_end) w_q <= w_q + 1'b1;
      if (b_beat) b_q <= b_q + 1'b1;
      aw_cnt_q <= aw_cnt_q + (BW + 1)'(push_ok) - (BW + 1)'(aw_load);
      w_cnt_q  <= w_cnt_q + (BW + 1)'(aw_load) - (BW + 1)'(w_end);
      ring_q   <= ring_q + (BW + 1)'(push_ok) - (BW + 1)'(b_beat);
      if (aw_load) awv_q <= 1'b1;
      else if (m_awready_i) awv_q <= 1'b0;
      if (ren) wv_q <= 1'b1;
      else if (m_wready_i) wv_q <= 1'b0;
      if (ren) wbeat_q <= w_end ? '0 : wbeat_q + 7'd1;
    end
  end

  // ---- responses --------------------------------------------------------------------------------
  logic [CLIENTS-1:0] done_q;
  logic               err_q;
  logic [57:0]        err_addr_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      done_q <= '0;
      err_q  <= 1'b0;
    end else begin
      for (int i = 0; i < CLIENTS; i++) begin
        done_q[i] <= b_beat && !flush_i && (ring_tag[b_q] == {1'b1, IW'(i)});
      end
      err_q <= b_beat && (m_bresp_i != 2'b00);
    end
  end
  always_ff @(posedge clk_i) begin
    if (b_beat) err_addr_q <= ring_addr[b_q];
  end
  assign done_o      = done_q;
  assign err_valid_o = err_q;
  assign err_code_o  = mr_pkg::DEVERR_WRITE[7:0];
  assign err_addr_o  = {err_addr_q, 6'b0};
  assign idle_o      = (state_q == S_IDLE) && (ring_q == '0);
  assign cnt_beat_o  = m_wvalid_o && m_wready_i;

  `MR_ASSERT(state, state_q <= S_FILL)
  `MR_ASSERT_STABLE(aw, m_awvalid_o, m_awready_i, {m_awaddr_o, m_awlen_o})
  `MR_ASSERT_STABLE(w, m_wvalid_o, m_wready_i, {m_wdata_o, m_wstrb_o, m_wlast_o})
  `MR_ASSERT_COUNT(bursts, ring_q, push_ok, b_beat, BURSTS)
  `MR_ASSERT_COUNT(fill, fill_q, push, ren, FIFO)
  `MR_ASSERT_COUNT(complete, comm_q, push_ok ? blen_q : 7'd0, ren, FIFO)
  `MR_ASSERT_ONEHOT0(grants, job_ready_o)
  `MR_ASSERT_ONEHOT0(turn, data_ready_o)
`ifndef FORMAL  // the proof does not rely on it
  for (genvar i = 0; i < CLIENTS; i++) begin : gen_client
    `MR_ASSERT_STABLE(job, job_valid_i[i], job_ready_o[i] || flush_i,
                      {job_addr_i[64*i+:64], job_beats_i[16*i+:16], job_strb_i[64*i+:64]})
    `MR_ASSERT_STABLE(data, data_valid_i[i], data_ready_o[i] || flush_i, data_i[512*i+:512])
  end
`else
  `include "mr_writer_props.svh"
`endif

endmodule
