// SPDX-License-Identifier: Apache-2.0
// Read master of the stand-in core: after start_i reads beats_i beats from base_i in bursts of up
// to 64 that do not cross 4 KiB, and adds up all 32-bit words. done_o stays high from the last
// beat to the next start_i. BREAK_AR is a bug on demand: AR payload changes while it waits.
module simlib_reader #(
    parameter BREAK_AR = 0
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         start_i,
    input  logic [63:0]  base_i,
    input  logic [31:0]  beats_i,
    output logic         done_o,
    output logic         error_o,
    output logic [31:0]  sum_o,
    output logic         m_arvalid_o,
    input  logic         m_arready_i,
    output logic [63:0]  m_araddr_o,
    output logic [7:0]   m_arlen_o,
    input  logic         m_rvalid_i,
    output logic         m_rready_o,
    input  logic [511:0] m_rdata_i,
    input  logic [1:0]   m_rresp_i,
    input  logic         m_rlast_i
);

  logic        busy_q, done_q, error_q, arvalid_q, sum_valid_q;
  logic [31:0] unasked_q, untaken_q, sum_q, beat_sum_q;
  logic [63:0] addr_q;
  logic [6:0]  burst_q;

  logic [6:0] room, burst;
  assign room  = 7'd64 - {1'b0, addr_q[11:6]};
  assign burst = (unasked_q < {25'd0, room}) ? unasked_q[6:0] : room;

  function automatic [31:0] words(input logic [511:0] beat);
    integer i;
    begin
      words = 32'd0;
      for (i = 0; i < 16; i = i + 1) words = words + beat[32*i+:32];
    end
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      done_q      <= 1'b0;
      arvalid_q   <= 1'b0;
      sum_valid_q <= 1'b0;
    end else begin
      sum_valid_q <= m_rvalid_i && m_rready_o;
      if (start_i) begin
        busy_q    <= 1'b1;
        done_q    <= 1'b0;
        error_q   <= 1'b0;
        addr_q    <= base_i;
        unasked_q <= beats_i;
        untaken_q <= beats_i;
      end else if (busy_q) begin
        if (!arvalid_q && unasked_q != 0) begin
          arvalid_q <= 1'b1;
          burst_q   <= burst;
        end else if (arvalid_q && m_arready_i) begin
          arvalid_q <= 1'b0;
          unasked_q <= unasked_q - {25'd0, burst_q};
          addr_q    <= addr_q + {51'd0, burst_q, 6'd0};
        end else if (BREAK_AR != 0 && arvalid_q) begin
          addr_q <= addr_q + 64'd64;
        end
        if (m_rvalid_i) begin
          untaken_q <= untaken_q - 32'd1;
          if (m_rresp_i != 2'd0) error_q <= 1'b1;
        end
        if (untaken_q == 0 && !sum_valid_q) begin
          busy_q <= 1'b0;
          done_q <= 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) sum_q <= 32'd0;
    else if (sum_valid_q) sum_q <= sum_q + beat_sum_q;
    if (m_rvalid_i) beat_sum_q <= words(m_rdata_i);
  end

  assign done_o      = done_q;
  assign error_o     = error_q;
  assign sum_o       = sum_q;
  assign m_arvalid_o = arvalid_q;
  assign m_araddr_o  = addr_q;
  assign m_arlen_o   = {1'b0, burst_q} - 8'd1;
  assign m_rready_o  = 1'b1;

  wire unused_ok = &{1'b0, m_rlast_i};

endmodule
