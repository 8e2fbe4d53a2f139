// SPDX-License-Identifier: Apache-2.0
// Neither source of mr_reader can hold up the other one: with a prompt memory and a prompt consumer
// of its own a source that has work gets a beat within BOUND cycles, although the other source's
// consumer may stop returning credits for ever. KV = 0 watches the weights, 1 the KV side. Small
// depths, so that the bounds are small: checked for every run of some length from reset, not by
// induction.
module reader_progress #(
  parameter int KV = 0,
  parameter int BOUND = 20
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       w_job_valid_i,
  input logic [1:0] w_beats_i,
  input logic [1:0] w_off_i,
  input logic       w_credit_i,
  input logic       kv_job_valid_i,
  input logic [1:0] kv_beats_i,
  input logic [1:0] kv_off_i,
  input logic       kv_credit_i,
  input logic       arready_i,
  input logic       rvalid_i
);

  logic w_ready, kv_ready, w_valid, kv_valid, arvalid, rlast, idle, err;
  logic [7:0] arlen;
  logic [3:0] unused_data;
  logic [63:0] unused_addr, unused_err_addr;
  logic [7:0] unused_code;
  logic [5:0] unused_cnt;
  mr_reader #(
    .DW(4), .W_DEPTH(2), .KV_DEPTH(2), .W_BURST(2), .KV_BURST(2), .QUANTUM(2), .OUTSTANDING(2)
  ) dut (
    .clk_i, .rst_ni,
    .w_job_valid_i, .w_job_ready_o(w_ready), .w_job_off_i({26'd15, 4'b1111, w_off_i}),
    .w_job_beats_i({30'b0, w_beats_i}), .w_base_i(64'd0), .w_limit_i(32'hFFFFFFFF),
    .w_valid_o(w_valid), .w_credit_i,
    .kv_job_valid_i, .kv_job_ready_o(kv_ready), .kv_job_off_i({26'd31, 4'b1111, kv_off_i}),
    .kv_job_beats_i({30'b0, kv_beats_i}), .kv_base_i(64'd0), .kv_limit_i(32'hFFFFFFFF),
    .kv_valid_o(kv_valid), .kv_credit_i,
    .data_o(unused_data), .flush_i(1'b0), .idle_o(idle),
    .err_valid_o(err), .err_code_o(unused_code), .err_addr_o(unused_err_addr),
    .cnt_nocredit_o(unused_cnt[0]), .cnt_wait_o(unused_cnt[1]), .cnt_idle_o(unused_cnt[2]),
    .cnt_issue_o(unused_cnt[3]), .cnt_w_beat_o(unused_cnt[4]), .cnt_kv_beat_o(unused_cnt[5]),
    .m_arvalid_o(arvalid), .m_arready_i(arready_i), .m_araddr_o(unused_addr), .m_arlen_o(arlen),
    .m_rvalid_i(rvalid_i), .m_rdata_i(4'b0), .m_rresp_i(2'b00), .m_rlast_i(rlast)
  );

  logic init = 1'b1;
  always_ff @(posedge clk_i) init <= 1'b0;
  always @* if (init) assume (!rst_ni);
  always @* if (!init) assume (rst_ni);
  always @* assume (w_beats_i != 2'd0 && kv_beats_i != 2'd0);

  // Memory: two bursts, then the beats in order.
  logic [2:0] len0, len1, beat;
  logic mw, mr;
  logic [1:0] mn;
  assign rlast = (beat == (mr ? len1 : len0));
  always @* if (mn == 2'd0) assume (!rvalid_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mw <= 1'b0;
      mr <= 1'b0;
      mn <= 2'd0;
      beat <= 3'd0;
    end else begin
      if (arvalid && arready_i) begin
        mw <= !mw;
        if (mw) len1 <= arlen[2:0];
        else len0 <= arlen[2:0];
      end
      if (rvalid_i) beat <= rlast ? 3'd0 : beat + 3'd1;
      if (rvalid_i && rlast) mr <= !mr;
      mn <= mn + {1'b0, arvalid && arready_i} - {1'b0, rvalid_i && rlast};
    end
  end

  // Consumers.
  logic [2:0] w_held, kv_held;
  always @* if (w_held == 3'd0) assume (!w_credit_i);
  always @* if (kv_held == 3'd0) assume (!kv_credit_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_held  <= 3'd0;
      kv_held <= 3'd0;
    end else begin
      w_held  <= w_held + {2'b0, w_valid} - {2'b0, w_credit_i};
      kv_held <= kv_held + {2'b0, kv_valid} - {2'b0, kv_credit_i};
    end
  end

  // Prompt: without a wait.
  always @* begin
    assume (arready_i);
    if (mn != 2'd0) assume (rvalid_i);
    if ((KV != 0) && kv_held != 3'd0) assume (kv_credit_i);
    if ((KV == 0) && w_held != 3'd0) assume (w_credit_i);
  end

  // Work: beats of accepted jobs that have not come.
  logic [5:0] work, wait_q;
  logic take, got;
  assign take = (KV != 0) ? kv_job_valid_i && kv_ready : w_job_valid_i && w_ready;
  assign got  = (KV != 0) ? kv_valid : w_valid;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      work   <= 6'd0;
      wait_q <= 6'd0;
    end else begin
      work   <= work + (take ? ((KV != 0) ? {4'b0, kv_beats_i} : {4'b0, w_beats_i}) : 6'd0) -
                {5'b0, got};
      wait_q <= (work == 6'd0 || got) ? 6'd0 : wait_q + 6'd1;
    end
  end
  always @* if (!init) assert (wait_q < 6'(BOUND));

endmodule
