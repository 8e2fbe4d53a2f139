// SPDX-License-Identifier: Apache-2.0
// The kernel `millrace_update` as RTL: a step of the optimizer over patches of the store, on a card
// whose memory holds them (hls/README.md). hls/millrace_update.cpp says what it does, byte for
// byte.
//
//   jobs --> load --> lanes --> store ---------------------> writes
//     |               (compute)  \--> blocks --> sections --> put --^
//     \-----------------------------------------------------> put
//
// Everything works at once: tiles are read ahead, updated, written back and quantised, sections of
// one patch leave while the next one's are made.
//
// Parameters
//   LANES  weights in a cycle: 1, 2 or 4
//
// Control port: mr_update_regs. A run ends when memory has acknowledged all its writes. After an
// error of memory, or a job that makes no sense, nothing is requested any more; what is under way
// is awaited and dropped, all blocks are reset, and the run ends with a status.
// Memory port: AXI4, one ID in order, INCR bursts of whole beats, at most 64, none across 4 KiB; 16
// reads and 16 writes outstanding. A write is offered when all its data is there; RREADY and BREADY
// are constantly 1. Pointers are multiples of 64.
module mr_update #(
  parameter int LANES = 2
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         s_axil_awvalid_i,
  output logic         s_axil_awready_o,
  input  logic [11:0]  s_axil_awaddr_i,
  input  logic         s_axil_wvalid_i,
  output logic         s_axil_wready_o,
  input  logic [31:0]  s_axil_wdata_i,
  input  logic [3:0]   s_axil_wstrb_i,
  output logic         s_axil_bvalid_o,
  input  logic         s_axil_bready_i,
  output logic [1:0]   s_axil_bresp_o,
  input  logic         s_axil_arvalid_i,
  output logic         s_axil_arready_o,
  input  logic [11:0]  s_axil_araddr_i,
  output logic         s_axil_rvalid_o,
  input  logic         s_axil_rready_i,
  output logic [31:0]  s_axil_rdata_o,
  output logic [1:0]   s_axil_rresp_o,
  output logic         irq_o,

  output logic         m_arvalid_o,
  input  logic         m_arready_i,
  output logic [63:0]  m_araddr_o,
  output logic [7:0]   m_arlen_o,
  input  logic         m_rvalid_i,
  output logic         m_rready_o,
  input  logic [511:0] m_rdata_i,
  input  logic [1:0]   m_rresp_i,
  input  logic         m_rlast_i,
  output logic         m_awvalid_o,
  input  logic         m_awready_i,
  output logic [63:0]  m_awaddr_o,
  output logic [7:0]   m_awlen_o,
  output logic         m_wvalid_o,
  input  logic         m_wready_i,
  output logic [511:0] m_wdata_o,
  output logic [63:0]  m_wstrb_o,
  output logic         m_wlast_o,
  input  logic         m_bvalid_i,
  output logic         m_bready_o,
  input  logic [1:0]   m_bresp_i
);

  localparam int AW = mr_update_pkg::AW;
  localparam int TILE_W = mr_update_pkg::TILE_W;
  localparam int BANKS = (LANES > 2) ? LANES / 2 : 1;
  localparam int COLS = (LANES > 1) ? 2 : 1;

  // ---- registers --------------------------------------------------------------------------------
  logic        start, done_q;
  logic [31:0] status_q;
  logic [63:0] where_q;
  // Beats have no low bits; reserved words.
  // verilator lint_off UNUSEDSIGNAL
  logic [32*mr_update_pkg::ARGS-1:0] args;
  // verilator lint_on UNUSEDSIGNAL
  mr_update_regs u_regs (
    .clk_i,
    .rst_ni,
    .s_axil_awvalid_i,
    .s_axil_awready_o,
    .s_axil_awaddr_i,
    .s_axil_wvalid_i,
    .s_axil_wready_o,
    .s_axil_wdata_i,
    .s_axil_wstrb_i,
    .s_axil_bvalid_o,
    .s_axil_bready_i,
    .s_axil_bresp_o,
    .s_axil_arvalid_i,
    .s_axil_arready_o,
    .s_axil_araddr_i,
    .s_axil_rvalid_o,
    .s_axil_rready_i,
    .s_axil_rdata_o,
    .s_axil_rresp_o,
    .irq_o,
    .start_o (start),
    .args_o  (args),
    .done_i  (done_q),
    .status_i(status_q),
    .where_i (where_q)
  );

  logic [31:0] channels;
  logic [2:0]  log2_q;
  logic        legal_q;
  assign channels = args[32*mr_update_pkg::A_CHANNELS+:32];
  always_ff @(posedge clk_i) begin
    log2_q  <= channels[4] ? 3'd4 : channels[3] ? 3'd3 : channels[2] ? 3'd2 : {2'd0, channels[1]};
    legal_q <= channels == 32'd1 || channels == 32'd2 || channels == 32'd4 || channels == 32'd8 ||
               channels == 32'd16;
  end

  // ---- a run ------------------------------------------------------------------------------------
  // START: the first jobs are asked for. DRAIN: after an error. RESET: of all blocks, in any case.
  localparam logic [2:0] IDLE = 3'd0, START = 3'd1, RUN = 3'd2, DRAIN = 3'd3, RESET = 3'd4;
  localparam logic [3:0] RESET_CYCLES = 4'd15;
  logic [2:0]  state_q;
  logic [3:0]  reset_q;
  logic        unit_rst_nq, flush_q, begin_run, finished_q;
  logic        rd_idle, wr_idle, rd_err, wr_err, bad_job, jobs_idle, load_idle, put_idle;
  logic        tile_begin, store_free, blocks_free;
  logic [63:0] rd_err_addr, wr_err_addr;
  logic [57:0] bad_at;
  logic [3:0]  stores_q, blocks_q;  // tiles that are not through
  assign begin_run = state_q == START && legal_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= IDLE;
      unit_rst_nq <= 1'b0;
      flush_q     <= 1'b0;
      done_q      <= 1'b0;
    end else begin
      unique case (state_q)
        IDLE:    if (start) state_q <= START;
        START:   state_q <= legal_q ? RUN : RESET;
        RUN:     if (rd_err || wr_err || bad_job) state_q <= DRAIN;
                 else if (finished_q) state_q <= RESET;
        DRAIN:   if (flush_q && rd_idle && wr_idle) state_q <= RESET;
        default: if (reset_q == RESET_CYCLES) state_q <= IDLE;
      endcase
      unit_rst_nq <= state_q != RESET;
      flush_q     <= state_q == DRAIN;
      done_q      <= state_q == RESET && reset_q == RESET_CYCLES;
    end
    reset_q <= state_q == RESET ? reset_q + 4'd1 : '0;
    // Twice in a row would be the same: nothing begins by itself.
    finished_q <= state_q == RUN && jobs_idle && load_idle && put_idle && stores_q == '0 &&
                  blocks_q == '0 && rd_idle && wr_idle;
    if (state_q == START) begin
      status_q <= legal_q ? mr_update_pkg::ENDED_WELL : mr_update_pkg::BAD_CHANNELS;
      where_q  <= '0;
    end else if (state_q == RUN && (rd_err || wr_err || bad_job)) begin
      status_q <= rd_err ? mr_update_pkg::BAD_READ : wr_err ? mr_update_pkg::BAD_WRITE :
                                                              mr_update_pkg::BAD_JOB;
      where_q  <= rd_err ? rd_err_addr : wr_err ? wr_err_addr : {bad_at, 6'd0};
    end
  end
  always_ff @(posedge clk_i) begin
    if (!unit_rst_nq) begin
      stores_q <= '0;
      blocks_q <= '0;
    end else begin
      if (tile_begin != store_free) stores_q <= tile_begin ? stores_q + 4'd1 : stores_q - 4'd1;
      if (tile_begin != blocks_free) blocks_q <= tile_begin ? blocks_q + 4'd1 : blocks_q - 4'd1;
    end
  end

  // ---- memory -----------------------------------------------------------------------------------
  // Clients of reads: jobs, tiles. Of writes: tiles, streams.
  logic [1:0]    rd_valid, rd_ready, rd_data_valid, wr_valid, wr_ready, wr_data_valid;
  logic [1:0]    wr_data_ready, unused_wr_done;
  logic [127:0]  rd_addr, wr_addr, wr_strb;
  logic [31:0]   rd_beats, wr_beats;
  logic [511:0]  rd_data;
  logic [1023:0] wr_data;
  logic          rd_last, unused_rd_beat, unused_wr_beat;
  logic [7:0]    unused_rd_code, unused_wr_code;
  mr_hostrd #(
    .CLIENTS    (2),
    .OUTSTANDING(16)
  ) u_reads (
    .clk_i,
    .rst_ni     (unit_rst_nq),
    .flush_i    (flush_q),
    .req_valid_i(rd_valid),
    .req_ready_o(rd_ready),
    .req_addr_i (rd_addr),
    .req_beats_i(rd_beats),
    .valid_o    (rd_data_valid),
    .last_o     (rd_last),
    .data_o     (rd_data),
    .idle_o     (rd_idle),
    .err_valid_o(rd_err),
    .err_code_o (unused_rd_code),
    .err_addr_o (rd_err_addr),
    .cnt_beat_o (unused_rd_beat),
    .m_arvalid_o,
    .m_arready_i,
    .m_araddr_o,
    .m_arlen_o,
    .m_rvalid_i,
    .m_rdata_i,
    .m_rresp_i,
    .m_rlast_i
  );
  assign m_rready_o = 1'b1;
  mr_writer #(
    .CLIENTS(2),
    .BURSTS (16),
    .FIFO   (256)
  ) u_writes (
    .clk_i,
    .rst_ni      (unit_rst_nq),
    .flush_i     (flush_q),
    .job_valid_i (wr_valid),
    .job_ready_o (wr_ready),
    .job_addr_i  (wr_addr),
    .job_beats_i (wr_beats),
    .job_strb_i  (wr_strb),
    .data_valid_i(wr_data_valid),
    .data_ready_o(wr_data_ready),
    .data_i      (wr_data),
    .done_o      (unused_wr_done),
    .idle_o      (wr_idle),
    .err_valid_o (wr_err),
    .err_code_o  (unused_wr_code),
    .err_addr_o  (wr_err_addr),
    .cnt_beat_o  (unused_wr_beat),
    .m_awvalid_o,
    .m_awready_i,
    .m_awaddr_o,
    .m_awlen_o,
    .m_wvalid_o,
    .m_wready_i,
    .m_wdata_o,
    .m_wstrb_o,
    .m_wlast_o,
    .m_bvalid_i,
    .m_bready_o,
    .m_bresp_i
  );

  // ---- jobs -------------------------------------------------------------------------------------
  logic load_valid, load_ready, put_valid, put_ready;
  logic [mr_update_pkg::LOAD_W-1:0] load_job;
  logic [mr_update_pkg::PUT_W-1:0]  put_job;
  mr_update_jobs u_jobs (
    .clk_i,
    .rst_ni      (unit_rst_nq),
    .start_i     (begin_run),
    .base_i      (args[32*mr_update_pkg::A_JOBS+6+:58]),
    .count_i     (args[32*mr_update_pkg::A_COUNT+:32]),
    .req_valid_o (rd_valid[0]),
    .req_ready_i (rd_ready[0]),
    .req_addr_o  (rd_addr[63:0]),
    .req_beats_o (rd_beats[15:0]),
    .data_valid_i(rd_data_valid[0]),
    .data_last_i (rd_last),
    .data_i      (rd_data),
    .load_valid_o(load_valid),
    .load_ready_i(load_ready),
    .load_o      (load_job),
    .put_valid_o (put_valid),
    .put_ready_i (put_ready),
    .put_o       (put_job),
    .bad_o       (bad_job),
    .bad_at_o    (bad_at),
    .idle_o      (jobs_idle)
  );

  // ---- tiles ------------------------------------------------------------------------------------
  logic              tile_valid, tile_ready, decays, old_ren, old_free, new_wen, new_valid;
  logic [TILE_W-1:0] tile, new_tile;
  logic [15:0]       unit;
  logic [1:0]        slot;
  logic [AW-1:0]     old_raddr, new_waddr;
  logic [2047:0]     old_rdata;
  logic [1535:0]     new_wdata;
  mr_update_load u_load (
    .clk_i,
    .rst_ni      (unit_rst_nq),
    .job_valid_i (load_valid),
    .job_ready_o (load_ready),
    .job_i       (load_job),
    .old_i       (args[32*mr_update_pkg::A_OLD_STATE+6+:58]),
    .gradients_i (args[32*mr_update_pkg::A_GRADIENTS+6+:58]),
    .new_i       (args[32*mr_update_pkg::A_NEW_STATE+6+:58]),
    .req_valid_o (rd_valid[1]),
    .req_ready_i (rd_ready[1]),
    .req_addr_o  (rd_addr[127:64]),
    .req_beats_o (rd_beats[31:16]),
    .data_valid_i(rd_data_valid[1]),
    .data_i      (rd_data),
    .tile_valid_o(tile_valid),
    .tile_ready_i(tile_ready),
    .tile_o      (tile),
    .unit_o      (unit),
    .decays_o    (decays),
    .slot_o      (slot),
    .ren_i       (old_ren),
    .raddr_i     (old_raddr),
    .rdata_o     (old_rdata),
    .free_i      (old_free),
    .begin_o     (tile_begin),
    .idle_o      (load_idle)
  );

  logic [255:0] factors;
  for (genvar k = 0; k < 8; k++) begin : gen_factor
    assign factors[32*k+:32] = args[32*(mr_update_pkg::A_FACTORS+2*k)+:32];
  end
  logic                    down_wen, along_wen;
  logic [7-$clog2(LANES):0] down_waddr;
  logic [8*LANES-1:0]      down_wdata;
  logic [7:0]              along_waddr, along_wdata;
  mr_update_compute #(
    .LANES(LANES)
  ) u_compute (
    .clk_i,
    .rst_ni       (unit_rst_nq),
    .tile_valid_i (tile_valid),
    .tile_ready_o (tile_ready),
    .tile_i       (tile),
    .unit_i       (unit),
    .decays_i     (decays),
    .slot_i       (slot),
    .ren_o        (old_ren),
    .raddr_o      (old_raddr),
    .rdata_i      (old_rdata),
    .free_o       (old_free),
    .factors_i    (factors),
    .decay_i      (args[32*mr_update_pkg::A_DECAY+:32]),
    .wen_o        (new_wen),
    .waddr_o      (new_waddr),
    .wdata_o      (new_wdata),
    .down_wen_o   (down_wen),
    .down_waddr_o (down_waddr),
    .down_wdata_o (down_wdata),
    .along_wen_o  (along_wen),
    .along_waddr_o(along_waddr),
    .along_wdata_o(along_wdata),
    .done_o       (new_valid),
    .done_tile_o  (new_tile),
    .store_free_i (store_free),
    .blocks_free_i(blocks_free)
  );
  mr_update_store u_store (
    .clk_i,
    .rst_ni      (unit_rst_nq),
    .wen_i       (new_wen),
    .waddr_i     (new_waddr),
    .wdata_i     (new_wdata),
    .tile_valid_i(new_valid),
    .tile_i      (new_tile),
    .free_o      (store_free),
    .job_valid_o (wr_valid[0]),
    .job_ready_i (wr_ready[0]),
    .job_addr_o  (wr_addr[63:0]),
    .job_beats_o (wr_beats[15:0]),
    .data_valid_o(wr_data_valid[0]),
    .data_ready_i(wr_data_ready[0]),
    .data_o      (wr_data[511:0])
  );
  assign wr_strb[63:0] = '1;

  // ---- streams ----------------------------------------------------------------------------------
  logic                    vec_valid, vec_ready, dn_wen, al_wen, al_half, dn_code_wen, al_code_wen;
  logic                    dn_full, dn_free, al_full, al_free;
  logic [511:0]            vec_data, codes, sec_data;
  logic [12:0]             dn_addr;
  logic [5:0]              dn_row;
  logic [8*COLS*BANKS-1:0] dn_data;
  logic [8:0]              al_addr;
  logic [255:0]            al_data;
  logic [7:0]              dn_code_addr, al_code;
  logic [3:0]              dn_code_block, al_code_addr, al_code_block;
  logic [31:0]             dn_code;
  logic [1:0]              al_code_row;
  logic                    sec_start, sec_ready, sec_idle, sec_down, sec_buf, codes_valid;
  logic                    sec_valid, sec_data_ready;
  logic [6:0]              sec_group;
  logic [4:0]              sec_blocks;
  mr_update_blocks #(
    .LANES(LANES)
  ) u_blocks (
    .clk_i,
    .rst_ni         (unit_rst_nq),
    .wen_i          (new_wen),
    .waddr_i        (new_waddr),
    .wdata_i        (new_wdata[511:0]),
    .down_wen_i     (down_wen),
    .down_waddr_i   (down_waddr),
    .down_wdata_i   (down_wdata),
    .along_wen_i    (along_wen),
    .along_waddr_i  (along_waddr),
    .along_wdata_i  (along_wdata),
    .tile_valid_i   (new_valid),
    .tile_i         (new_tile),
    .free_o         (blocks_free),
    .vec_valid_o    (vec_valid),
    .vec_ready_i    (vec_ready),
    .vec_data_o     (vec_data),
    .dn_wen_o       (dn_wen),
    .dn_addr_o      (dn_addr),
    .dn_row_o       (dn_row),
    .dn_data_o      (dn_data),
    .al_wen_o       (al_wen),
    .al_addr_o      (al_addr),
    .al_half_o      (al_half),
    .al_data_o      (al_data),
    .dn_code_wen_o  (dn_code_wen),
    .dn_code_addr_o (dn_code_addr),
    .dn_code_block_o(dn_code_block),
    .dn_code_o      (dn_code),
    .al_code_wen_o  (al_code_wen),
    .al_code_addr_o (al_code_addr),
    .al_code_block_o(al_code_block),
    .al_code_row_o  (al_code_row),
    .al_code_o      (al_code),
    .dn_full_o      (dn_full),
    .dn_free_i      (dn_free),
    .al_full_o      (al_full),
    .al_free_i      (al_free)
  );
  mr_update_sections #(
    .LANES(LANES)
  ) u_sections (
    .clk_i,
    .rst_ni         (unit_rst_nq),
    .dn_wen_i       (dn_wen),
    .dn_addr_i      (dn_addr),
    .dn_row_i       (dn_row),
    .dn_data_i      (dn_data),
    .al_wen_i       (al_wen),
    .al_addr_i      (al_addr),
    .al_half_i      (al_half),
    .al_data_i      (al_data),
    .dn_code_wen_i  (dn_code_wen),
    .dn_code_addr_i (dn_code_addr),
    .dn_code_block_i(dn_code_block),
    .dn_code_i      (dn_code),
    .al_code_wen_i  (al_code_wen),
    .al_code_addr_i (al_code_addr),
    .al_code_block_i(al_code_block),
    .al_code_row_i  (al_code_row),
    .al_code_i      (al_code),
    .start_i        (sec_start),
    .ready_o        (sec_ready),
    .idle_o         (sec_idle),
    .down_i         (sec_down),
    .buf_i          (sec_buf),
    .group_i        (sec_group),
    .blocks_i       (sec_blocks),
    .codes_valid_o  (codes_valid),
    .codes_o        (codes),
    .data_valid_o   (sec_valid),
    .data_ready_i   (sec_data_ready),
    .data_o         (sec_data)
  );
  mr_update_put u_put (
    .clk_i,
    .rst_ni          (unit_rst_nq),
    .job_valid_i     (put_valid),
    .job_ready_o     (put_ready),
    .job_i           (put_job),
    .w_i             (args[32*mr_update_pkg::A_W+6+:58]),
    .w_vectors_i     (args[32*mr_update_pkg::A_W_VECTORS+6+:58]),
    .wt_i            (args[32*mr_update_pkg::A_WT+6+:58]),
    .w_channel_i     (args[32*mr_update_pkg::A_W_CHANNEL+:58]),
    .wt_channel_i    (args[32*mr_update_pkg::A_WT_CHANNEL+:58]),
    .channels_log2_i (log2_q),
    .clear_i         (begin_run),
    .vec_valid_i     (vec_valid),
    .vec_ready_o     (vec_ready),
    .vec_data_i      (vec_data),
    .dn_full_i       (dn_full),
    .dn_free_o       (dn_free),
    .al_full_i       (al_full),
    .al_free_o       (al_free),
    .sec_start_o     (sec_start),
    .sec_ready_i     (sec_ready),
    .sec_idle_i      (sec_idle),
    .sec_down_o      (sec_down),
    .sec_buf_o       (sec_buf),
    .sec_group_o     (sec_group),
    .sec_blocks_o    (sec_blocks),
    .codes_valid_i   (codes_valid),
    .codes_i         (codes),
    .sec_valid_i     (sec_valid),
    .sec_data_ready_o(sec_data_ready),
    .sec_data_i      (sec_data),
    .wr_job_valid_o  (wr_valid[1]),
    .wr_job_ready_i  (wr_ready[1]),
    .wr_job_addr_o   (wr_addr[127:64]),
    .wr_job_beats_o  (wr_beats[31:16]),
    .wr_job_strb_o   (wr_strb[127:64]),
    .wr_data_valid_o (wr_data_valid[1]),
    .wr_data_ready_i (wr_data_ready[1]),
    .wr_data_o       (wr_data[1023:512]),
    .idle_o          (put_idle)
  );
endmodule
