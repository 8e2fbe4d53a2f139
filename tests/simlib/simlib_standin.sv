// SPDX-License-Identifier: Apache-2.0
// A stand-in for millrace_core, with its ports, for tests of the simulation library. On start each
// channel's read port sums BEATS beats from byte BASE of its channel, and the host port sums as
// many from RUN_ADDR on; then one beat is written to RUN_ADDR: word c = sum of channel c, word 15 =
// sum of the host port. With the write's response it is done and interrupts.
//
// Registers: 0x010 MAGIC, 0x018 GEOMETRY, 0x040 CTRL (bit 0 start), 0x044 STATUS (bit 1 done, bit 2
// error), 0x048/0x04C RUN_ADDR, 0x054 IRQ_STATUS (write 1 to clear), 0x080 BASE, 0x084 BEATS,
// 0x0F0 a write stops the simulation with $stop; an access to 0x0F8 is never answered.
module simlib_standin #(
    parameter BREAK_AR = 0,
    `include "core_params.svh"
) (
    `include "core_ports.svh"
);

  // Registers. One access at a time; write address and data are awaited separately.
  logic        aw_q, w_q, b_q, ar_q, r_q;
  logic [11:0] awaddr_q, araddr_q;
  logic [31:0] wdata_q, rdata_q, base_q, beats_q;
  logic [63:0] run_addr_q;
  logic        start_q, done_q, error_q, irq_q, busy_q, writing_q;
  logic [15:0] runs_q;

  logic [N:0]       reader_done, reader_error;
  logic [N*32+31:0] reader_sum;

  always_ff @(posedge clk_i) begin
    start_q <= 1'b0;
    if (!rst_ni) begin
      aw_q   <= 1'b0;
      w_q    <= 1'b0;
      b_q    <= 1'b0;
      ar_q   <= 1'b0;
      r_q    <= 1'b0;
      done_q <= 1'b0;
      irq_q  <= 1'b0;
      busy_q <= 1'b0;
      runs_q <= 16'd0;
    end else begin
      if (s_axil_awvalid_i && s_axil_awready_o) begin
        aw_q     <= 1'b1;
        awaddr_q <= s_axil_awaddr_i;
      end
      if (s_axil_wvalid_i && s_axil_wready_o) begin
        w_q     <= 1'b1;
        wdata_q <= s_axil_wdata_i;
      end
      if (aw_q && w_q && !b_q && awaddr_q != 12'h0F8) begin
        b_q <= 1'b1;
        case (awaddr_q)
          12'h040: begin
            start_q <= wdata_q[0];
            busy_q  <= 1'b1;
            done_q  <= 1'b0;
          end
          12'h048: run_addr_q[31:0] <= wdata_q;
          12'h04C: run_addr_q[63:32] <= wdata_q;
          12'h054: irq_q <= irq_q && !wdata_q[0];
          12'h080: base_q <= wdata_q;
          12'h084: beats_q <= wdata_q;
`ifndef SYNTHESIS
          12'h0F0: $stop;
`endif
          default: ;
        endcase
      end
      if (s_axil_bvalid_o && s_axil_bready_i) begin
        aw_q <= 1'b0;
        w_q  <= 1'b0;
        b_q  <= 1'b0;
      end
      if (s_axil_arvalid_i && s_axil_arready_o) begin
        ar_q     <= 1'b1;
        araddr_q <= s_axil_araddr_i;
      end
      if (ar_q && !r_q && araddr_q != 12'h0F8) begin
        r_q <= 1'b1;
        case (araddr_q)
          12'h010: rdata_q <= 32'h4C4C494D;
          12'h018: rdata_q <= N;
          12'h044: rdata_q <= {29'd0, error_q, done_q, busy_q};
          12'h048: rdata_q <= run_addr_q[31:0];
          12'h04C: rdata_q <= run_addr_q[63:32];
          12'h054: rdata_q <= {31'd0, irq_q};
          12'h080: rdata_q <= base_q;
          12'h084: rdata_q <= beats_q;
          default: rdata_q <= 32'd0;
        endcase
      end
      if (s_axil_rvalid_o && s_axil_rready_i) begin
        ar_q <= 1'b0;
        r_q  <= 1'b0;
      end
      if (m_host_bvalid_i) begin
        busy_q  <= 1'b0;
        done_q  <= 1'b1;
        irq_q   <= 1'b1;
        error_q <= m_host_bresp_i != 2'd0 || |reader_error;
        runs_q  <= runs_q + 16'd1;
      end
    end
  end

  assign s_axil_awready_o = !aw_q;
  assign s_axil_wready_o  = !w_q;
  assign s_axil_bvalid_o  = b_q;
  assign s_axil_bresp_o   = 2'd0;
  assign s_axil_arready_o = !ar_q;
  assign s_axil_rvalid_o  = r_q;
  assign s_axil_rdata_o   = rdata_q;
  assign s_axil_rresp_o   = 2'd0;
  assign irq_o            = irq_q;
  assign busy_o           = busy_q;
  assign finish_o         = m_host_bvalid_i && rst_ni;

  genvar c;
  generate
    for (c = 0; c < N; c = c + 1) begin : gen_ch
      logic [3:0] last_q;

      simlib_reader #(
          .BREAK_AR(BREAK_AR)
      ) u_reader (
          .clk_i      (clk_i),
          .rst_ni     (rst_ni),
          .start_i    (start_q),
          .base_i     ({24'd0, 4'(c), 4'd0, base_q}),
          .beats_i    (beats_q),
          .done_o     (reader_done[c]),
          .error_o    (reader_error[c]),
          .sum_o      (reader_sum[32*c+:32]),
          .m_arvalid_o(m_ch_arvalid_o[c]),
          .m_arready_i(m_ch_arready_i[c]),
          .m_araddr_o (m_ch_araddr_o[64*c+:64]),
          .m_arlen_o  (m_ch_arlen_o[8*c+:8]),
          .m_rvalid_i (m_ch_rvalid_i[c]),
          .m_rready_o (m_ch_rready_o[c]),
          .m_rdata_i  (m_ch_rdata_i[512*c+:512]),
          .m_rresp_i  (m_ch_rresp_i[2*c+:2]),
          .m_rlast_i  (m_ch_rlast_i[c])
      );

      // The last sixteen beats, in a ring, for tests of the view.
      always_ff @(posedge clk_i) begin
        if (start_q) last_q <= 4'd0;
        else if (m_ch_rvalid_i[c]) last_q <= last_q + 4'd1;
      end

      simlib_ram u_ram (
          .clk_i  (clk_i),
          .wen_i  (m_ch_rvalid_i[c]),
          .waddr_i(last_q),
          .wdata_i(m_ch_rdata_i[512*c+:512])
      );
    end
  endgenerate

  simlib_reader u_host_reader (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .start_i    (start_q),
      .base_i     (run_addr_q),
      .beats_i    (beats_q),
      .done_o     (reader_done[N]),
      .error_o    (reader_error[N]),
      .sum_o      (reader_sum[32*N+:32]),
      .m_arvalid_o(m_host_arvalid_o),
      .m_arready_i(m_host_arready_i),
      .m_araddr_o (m_host_araddr_o),
      .m_arlen_o  (m_host_arlen_o),
      .m_rvalid_i (m_host_rvalid_i),
      .m_rready_o (m_host_rready_o),
      .m_rdata_i  (m_host_rdata_i),
      .m_rresp_i  (m_host_rresp_i),
      .m_rlast_i  (m_host_rlast_i)
  );

  // The result, once everybody is done.
  logic [511:0] result_q;
  logic         awvalid_q, wvalid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      awvalid_q <= 1'b0;
      wvalid_q  <= 1'b0;
      writing_q <= 1'b0;
    end else begin
      if (busy_q && &reader_done && !writing_q && !start_q) begin
        awvalid_q <= 1'b1;
        wvalid_q  <= 1'b1;
        writing_q <= 1'b1;
      end
      if (awvalid_q && m_host_awready_i) awvalid_q <= 1'b0;
      if (wvalid_q && m_host_wready_i) wvalid_q <= 1'b0;
      if (m_host_bvalid_i) writing_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (busy_q && !writing_q) begin
      result_q             <= 512'd0;
      result_q[32*N-1:0]   <= reader_sum[32*N-1:0];
      result_q[32*15+:32]  <= reader_sum[32*N+:32];
    end
  end

  assign m_host_awvalid_o = awvalid_q;
  assign m_host_awaddr_o  = run_addr_q;
  assign m_host_awlen_o   = 8'd0;
  assign m_host_wvalid_o  = wvalid_q;
  assign m_host_wdata_o   = result_q;
  assign m_host_wstrb_o   = 64'hFFFF_FFFF_FFFF_FFFF;
  assign m_host_wlast_o   = 1'b1;
  assign m_host_bready_o  = 1'b1;

  assign done_valid_o = {m_host_bvalid_i && rst_ni, 4'd0};
  assign done_index_o = {runs_q, 64'd0};

  wire unused_ok = &{1'b0, s_axil_wstrb_i};

endmodule
