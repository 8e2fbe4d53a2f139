// SPDX-License-Identifier: Apache-2.0
// The largest scale codes of all columns, until a matrix' headers are written: a word of four
// columns for each group, of both streams.
//
// clear_i   pulse: everything becomes zero; busy_o until then
// codes_valid_i  pulse with codes_i, a section's codes (zeros behind the last block), its stream
//           and its group's word_i: the larger codes stay. Two pulses are four cycles apart or more
// read_i    pulse: word_o of turned_i and word_i, two cycles later; the word is zero then. Not
//           beside a codes_valid_i of the four cycles before
module mr_update_tops (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         clear_i,
  output logic         busy_o,

  input  logic         codes_valid_i,
  input  logic [511:0] codes_i,
  input  logic         read_i,
  input  logic         turned_i,
  input  logic [13:0]  word_i,
  output logic [31:0]  word_o
);

  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    larger = a > b ? a : b;
  endfunction

  // ---- sixteen blocks' codes: four, one, and what was there -------------------------------------
  logic [127:0] four_q;
  logic [31:0]  one_q, largest_q, old;
  logic [2:0]   valid_q;
  logic [14:0]  at_q;  // the word that is in work
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[1:0], codes_valid_i};
    if (codes_valid_i) begin
      for (int k = 0; k < 16; k++) begin  // blocks k / 4 + {0, 4, 8, 12}
        four_q[8*k+:8] <= larger(larger(codes_i[8*k+:8], codes_i[8*k+128+:8]),
                                 larger(codes_i[8*k+256+:8], codes_i[8*k+384+:8]));
      end
    end
    if (valid_q[0]) begin
      for (int k = 0; k < 4; k++) begin
        one_q[8*k+:8] <= larger(larger(four_q[8*k+:8], four_q[8*k+32+:8]),
                                larger(four_q[8*k+64+:8], four_q[8*k+96+:8]));
      end
    end
    if (valid_q[1]) begin
      for (int k = 0; k < 4; k++) largest_q[8*k+:8] <= larger(one_q[8*k+:8], old[8*k+:8]);
    end
  end

  // ---- the memory: {of Wt, of W} ----------------------------------------------------------------
  logic        clearing_q, read_q;
  logic [13:0] clear_q;
  logic [63:0] words;
  logic        wen;
  assign busy_o = clearing_q;
  assign wen    = clearing_q || read_q || valid_q[2];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b0;
      read_q     <= 1'b0;
    end else begin
      clearing_q <= clear_i || (clearing_q && clear_q != '1);
      read_q     <= read_i;
    end
    clear_q <= clearing_q ? clear_q + 14'd1 : '0;
    if (codes_valid_i || read_i) at_q <= {turned_i, word_i};
    if (read_q) word_o <= old;
  end
  assign old = at_q[14] ? words[63:32] : words[31:0];
  mr_ram_1r1w #(
    .W    (64),
    .DEPTH(16384),
    .WE_W (32)
  ) u_ram (
    .clk_i,
    .wen_i  ({wen && (clearing_q || at_q[14]), wen && (clearing_q || !at_q[14])}),
    .waddr_i(clearing_q ? clear_q : at_q[13:0]),
    .wdata_i(valid_q[2] ? {2{largest_q}} : '0),
    .ren_i  (codes_valid_i || read_i),
    .raddr_i(word_i),
    .rdata_o(words)
  );
endmodule
