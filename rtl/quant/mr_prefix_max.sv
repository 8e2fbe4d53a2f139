// SPDX-License-Identifier: Apache-2.0
// Prefix maxima of the V blocks' codes: pm[token][block] = max(own code, pm of the position
// before).
//
// Parameters
//   T         tokens
//   PM_WORDS  16-bit words a token: blocks 2w (low byte) and 2w+1; a power of two
//   SUBS      blocks of one token that follow each other before the next token's (V/32, at least 1)
//
// Blocks: blk_valid_i pulse (no backpressure, up to one a cycle) with token, block and code, when a
// first-pass block of a prefix_max command leaves mr_quant. For one block index the tokens come in
// ascending order, with only the other blocks of the same SUBS in between. The position before a
// token is the previous token where row_continues_i has the token's bit, else the value that the
// load port put into pm[token][block] before. The new value is in the memory three cycles after
// blk_valid_i.
// Load port (PM_LOAD): ld_we_i, ld_waddr_i = token * PM_WORDS + word, both bytes.
// Read ports a, b: RAM ports by word address. A read uses the port's own copy; port a shares its
// copy with the read of the unit itself, so it must be idle while blocks arrive (the data hazard
// says so too).
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_prefix_max #(
  parameter int T = 8,
  parameter int PM_WORDS = 8,
  parameter int SUBS = 1,
  localparam int TW = $clog2(T),
  localparam int BW = $clog2(PM_WORDS) + 1,
  localparam int AW = $clog2(T * PM_WORDS)
) (
  input  logic          clk_i,
  input  logic          rst_ni,

  `MR_PM_S(blk_, TW, BW),
  input  logic [T-1:0]  row_continues_i,

  `MR_RAM_W_S(ld_, AW, 16),

  `MR_RAM_R_S(a_, AW, 16),
  `MR_RAM_R_S(b_, AW, 16)
);

  localparam int SW = (SUBS > 1) ? $clog2(SUBS) : 1;

  // 1: read; 2: maximum; 3: write.
  logic          v1_q, v2_q, v3_q, cont2_q;
  logic [TW-1:0] tok1_q;
  logic [BW-1:0] idx1_q;
  logic [7:0]    code1_q, code2_q, new3_q;
  logic [AW-1:0] addr2_q, addr3_q;
  logic          odd2_q, odd3_q;
  logic [SW-1:0] sub2_q;
  logic [AW-1:0] addr1;
  logic [15:0]   rdata;
  assign addr1 = AW'(32'(tok1_q) * PM_WORDS + 32'(idx1_q[BW-1:1]));

  logic [SUBS*8-1:0] carry_q;  // of the token before, by block inside the beat
  logic [7:0]        carry, prior, newest;
  always_comb begin
    carry = carry_q[7:0];
    for (int s = 1; s < SUBS; s++) if (sub2_q == SW'(s)) carry = carry_q[s*8+:8];
  end
  assign prior  = cont2_q ? carry : odd2_q ? rdata[15:8] : rdata[7:0];
  assign newest = (code2_q > prior) ? code2_q : prior;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
      v3_q <= 1'b0;
    end else begin
      v1_q <= blk_valid_i;
      v2_q <= v1_q;
      v3_q <= v2_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (blk_valid_i) begin
      tok1_q  <= blk_token_i;
      idx1_q  <= blk_index_i;
      code1_q <= blk_code_i;
    end
    if (v1_q) begin
      addr2_q <= addr1;
      odd2_q  <= idx1_q[0];
      sub2_q  <= (SUBS > 1) ? idx1_q[SW-1:0] : '0;
      cont2_q <= row_continues_i[tok1_q];
      code2_q <= code1_q;
    end
    if (v2_q) begin
      addr3_q <= addr2_q;
      odd3_q  <= odd2_q;
      new3_q  <= newest;
      for (int s = 0; s < SUBS; s++) if (sub2_q == SW'(s)) carry_q[s*8+:8] <= newest;
    end
  end

  logic [1:0]    wen;
  logic [AW-1:0] waddr;
  logic [15:0]   wdata;
  assign wen   = ld_we_i ? 2'b11 : {v3_q && odd3_q, v3_q && !odd3_q};
  assign waddr = ld_we_i ? ld_waddr_i : addr3_q;
  assign wdata = ld_we_i ? ld_wdata_i : {new3_q, new3_q};

  mr_ram_1r1w #(.W(16), .DEPTH(T * PM_WORDS), .WE_W(8)) u_copy_a (
    .clk_i, .wen_i(wen), .waddr_i(waddr), .wdata_i(wdata),
    .ren_i(v1_q || a_ren_i), .raddr_i(v1_q ? addr1 : a_raddr_i), .rdata_o(rdata)
  );
  assign a_rdata_o = rdata;

  mr_ram_1r1w #(.W(16), .DEPTH(T * PM_WORDS), .WE_W(8)) u_copy_b (
    .clk_i, .wen_i(wen), .waddr_i(waddr), .wdata_i(wdata),
    .ren_i(b_ren_i), .raddr_i(b_raddr_i), .rdata_o(b_rdata_o)
  );

  // A port of a memory does one thing at a time. A token that continues follows the one before.
  `MR_ASSERT(read, !v1_q || !a_ren_i)
  `MR_ASSERT(write, !v3_q || !ld_we_i)
`ifdef MILLRACE_ASSERT
  logic [SUBS*(TW+BW)-1:0] last_q;  // token and block that were carried, by block inside the beat
  logic [TW+BW-1:0]        last;
  logic [SW-1:0]           sub1;
  assign sub1 = (SUBS > 1) ? idx1_q[SW-1:0] : '0;
  always_comb begin
    last = last_q[TW+BW-1:0];
    for (int s = 1; s < SUBS; s++) if (sub1 == SW'(s)) last = last_q[s*(TW+BW)+:TW+BW];
  end
  always_ff @(posedge clk_i) begin
    for (int s = 0; s < SUBS; s++) begin
      if (v1_q && sub1 == SW'(s)) last_q[s*(TW+BW)+:TW+BW] <= {tok1_q, idx1_q};
    end
  end
  `MR_ASSERT(order, !v1_q || !row_continues_i[tok1_q] || {tok1_q - TW'(1), idx1_q} == last)
`endif

endmodule
