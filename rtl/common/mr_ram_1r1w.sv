// SPDX-License-Identifier: Apache-2.0
// Memory with one write port and one synchronous read port.
//
// Parameters
//   W      word width in bits
//   DEPTH  words, >= 2
//   WE_W   bits that one write enable covers; W (default) is one enable for the word. Divides W.
//   APART  1: nobody reads a word in the cycle in which it is written. Its user says why.
//
// Timing: ren_i with raddr_i in cycle t, rdata_o in t+1, held while ren_i is low. A read of the
// address that is written in the same cycle returns the old word; with APART it must not happen.
// Block RAM of some FPGAs has no old word: without APART it gets registers and a multiplexer.
// Contents and rdata_o are unknown until written and read.
//
// What it becomes on UltraScale+ is stated by the attribute ram_style here: UltraRAM (4096 words of
// 72 bits) from 4096 words of 64 bits on, block RAM above 64 words and 8 Kbit, LUT RAM below;
// host/plan/memories.c has the same rule. For GW5A tests/synth/route/gw5a.sh makes more block RAM.
`include "mr_assert.svh"
module mr_ram_1r1w #(
  parameter int W = 32,
  parameter int DEPTH = 16,
  parameter int WE_W = W,
  // Synthesis and assertions look at it.
  // verilator lint_off UNUSEDPARAM
  parameter int APART = 0
  // verilator lint_on UNUSEDPARAM
) (
  input  logic                     clk_i,
  input  logic [W/WE_W-1:0]        wen_i,
  input  logic [$clog2(DEPTH)-1:0] waddr_i,
  input  logic [W-1:0]             wdata_i,
  input  logic                     ren_i,
  input  logic [$clog2(DEPTH)-1:0] raddr_i,
  output logic [W-1:0]             rdata_o
`ifdef FORMAL
  ,
  input  logic [$clog2(DEPTH)-1:0] f_addr_i,  // proofs look at one word
  output logic [W-1:0]             f_data_o
`endif
);

  // For synthesis; a simulator's memory (MILLRACE_VIEW) has no kind.
  // verilator lint_off UNUSEDPARAM
  localparam STYLE = DEPTH >= 4096 && W >= 64 ? "ultra" :
                     DEPTH > 64 && W * DEPTH > 8192 ? "block" : "distributed";
  // verilator lint_on UNUSEDPARAM

`ifdef MILLRACE_VIEW
  // The simulator's one window into on-chip memory, for comparison with the C model.
  logic [W-1:0] mem [0:DEPTH-1] /*verilator public_flat_rd*/;
`else
  (* ram_style = STYLE, no_rw_check = APART *)
  logic [W-1:0] mem [0:DEPTH-1];
`endif

  if (WE_W == W) begin : gen_word
    always_ff @(posedge clk_i) begin
      if (wen_i[0]) mem[waddr_i] <= wdata_i;
    end
  end else begin : gen_lanes
    always_ff @(posedge clk_i) begin
      for (int i = 0; i < W / WE_W; i++) begin
        if (wen_i[i]) mem[waddr_i][i*WE_W+:WE_W] <= wdata_i[i*WE_W+:WE_W];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (ren_i) rdata_o <= mem[raddr_i];
  end

`ifdef MILLRACE_ASSERT
  // There is no reset here: a first idle cycle is taken for it.
  if (APART != 0) begin : gen_apart
    logic rst_ni;
    assign rst_ni = |wen_i || ren_i;
    `MR_ASSERT(apart, !(|wen_i && ren_i) || waddr_i != raddr_i)
  end
`endif

`ifdef FORMAL
  assign f_data_o = mem[f_addr_i];
`endif

endmodule
