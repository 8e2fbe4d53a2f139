// SPDX-License-Identifier: Apache-2.0
// The epilogue's residual path: the sum with the row's word, and the row's largest exponent. The
// adder also makes functions' addition: their beats and a residual's never come to it in one cycle,
// because mr_epi_take keeps them apart.
//
// The word is read a cycle before it is needed and has a register behind the memory, and is written
// back three cycles later. With track, the row's exponent is the largest of its words': it is kept
// here, where LayerNorm reads it and mr_rows writes it for rows that come from the host.
//
// Parameters: N, T, D_MAX, TRAIN as mr_epilogue.
//
// Ports
//   p_v_i, p_res_i, p_res_addr_i   at K_PICK - 1: a beat for the residual, and its word. p_read_i,
//           with TRAIN: the word is read
//   d_v_i, d_, val_i   at K_DST: the same beat and the lanes' result
//   set_i   with TRAIN: the word becomes the result, not the sum: result + (-0); stable for a
//           command
//   add_    a function's addition: add_y_o is the sum FADD_LAT cycles after add_v_i, in that cycle
//           only
//   res_    RAM port and write port of the residual memory; the write is at K_RES
//   rexp_   the exponents: write port and RAM port; neither may overlap a command with track
//   fin_o   pulse at K_TOP: the last beat of a command is written
//   ovf_o   pulse: a sum of finite values overflowed
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epi_res #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int D_MAX = 64,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V))
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            p_v_i,
  `MR_EPI_RES_S(),
  input  logic            d_v_i,
  input  logic            d_last_i,
  input  logic [TW-1:0]   d_tok_i,
  input  logic [V*32-1:0] val_i,
  `MR_EPI_ADD_S(),

  `MR_RAM_R_M(res_, RESW, V*32),
  `MR_RAM_W_M(res_, RESW, V*32),
  `MR_RAM_W_S(rexp_, TW, 8),
  `MR_RAM_R_S(rexp_, TW, 8),

  output logic            ovf_o
);

  localparam int K_DST = mr_epi_pkg::K_DST, K_RES = mr_epi_pkg::K_RES, K_MAX = mr_epi_pkg::K_MAX,
                 K_TOP = mr_epi_pkg::K_TOP;

  // The word is in its register when val_i comes.
  logic            read_q;
  logic [V*32-1:0] word_q;
  assign res_ren_o   = TRAIN != 0 ? p_read_i : p_v_i && p_res_i;
  assign res_raddr_o = p_res_addr_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) read_q <= 1'b0;
    else read_q <= res_ren_o;
  end
  always_ff @(posedge clk_i) begin
    if (read_q) word_q <= res_rdata_i;
  end

  logic [V*32-1:0] res_y, sum_a, sum_b;
  assign sum_a   = add_v_i ? add_a_i : (TRAIN != 0 && set_i) ? {V{32'h8000_0000}} : word_q;
  assign sum_b   = add_v_i ? add_b_i : val_i;
  assign add_y_o = res_y;
  // The valid bits below say the same.
  // verilator lint_off UNUSED
  logic            res_v;
  // verilator lint_on UNUSED
  mr_vfadd #(.LANES(V)) u_res (
    .clk_i, .rst_ni, .valid_i(add_v_i || (d_v_i && d_res_i)), .a_i(sum_a), .b_i(sum_b),
    .valid_o(res_v), .y_o(res_y), .ovf_o
  );

  // {token, track, last, first}, at K_DST + 1 in the low bits; the address as long as it is needed.
  localparam int Q_W = TW + 3;
  logic [Q_W*(K_TOP-K_DST)-1:0]  rq_q;
  logic [RESW*(K_RES-K_DST)-1:0] ra_addr_q;
  always_ff @(posedge clk_i) begin
    rq_q      <= {rq_q[Q_W*(K_TOP-K_DST-1)-1:0], d_tok_i, d_track_i, d_last_i, d_first_i};
    ra_addr_q <= {ra_addr_q[RESW*(K_RES-K_DST-1)-1:0], d_res_addr_i};
  end
  logic          rs_track, top_last, max_first;
  logic [TW-1:0] rd_tok, ex_tok, top_tok;
  assign rs_track  = rq_q[Q_W*(K_RES-K_DST-1)+2];
  assign rd_tok    = rq_q[Q_W*(K_RES-K_DST)+3+:TW];
  assign max_first = rq_q[Q_W*(K_MAX-K_DST-1)];
  assign ex_tok    = rq_q[Q_W*(K_MAX-K_DST-1)+3+:TW];
  assign top_last  = rq_q[Q_W*(K_TOP-K_DST-1)+1];
  assign top_tok   = rq_q[Q_W*(K_TOP-K_DST-1)+3+:TW];
  // The valid bits need the reset that the rest does not.
  logic [K_TOP:K_DST+1] rv_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rv_q <= '0;
    else rv_q <= {rv_q[K_TOP-1:K_DST+1], d_v_i && d_res_i};
  end
  assign res_we_o    = rv_q[K_RES];
  assign res_waddr_o = ra_addr_q[RESW*(K_RES-K_DST-1)+:RESW];
  assign res_wdata_o = res_y;
  assign fin_o     = rv_q[K_TOP] && top_last;

  // Row exponents: read at K_RES + 1, largest exponent of the word at K_MAX, written at K_TOP. The
  // last two words' results are not yet in what was read.
  logic [7:0]    ex_max, ex_old, ex_prior, ex_new_q, ex_new2_q;
  logic          ex_v, ex_v2_q;
  logic [TW-1:0] ex_tok2_q;
  mr_expmax #(.LANES(V)) u_expmax (
    .clk_i, .rst_ni, .valid_i(rv_q[K_RES] && rs_track), .data_i(res_y), .valid_o(ex_v),
    .max_o(ex_max)
  );
  logic ex_w_q;  // ex_new_q is being written
  always_comb begin
    if (max_first) ex_prior = 8'd0;
    else if (ex_w_q && (top_tok == ex_tok)) ex_prior = ex_new_q;
    else if (ex_v2_q && (ex_tok2_q == ex_tok)) ex_prior = ex_new2_q;
    else ex_prior = ex_old;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ex_w_q  <= 1'b0;
      ex_v2_q <= 1'b0;
    end else begin
      ex_w_q  <= ex_v;
      ex_v2_q <= ex_w_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (ex_v) ex_new_q <= (ex_max > ex_prior) ? ex_max : ex_prior;
    if (ex_w_q) begin
      ex_new2_q <= ex_new_q;
      ex_tok2_q <= top_tok;
    end
  end

  logic          rexp_we;
  logic [TW-1:0] rexp_waddr;
  logic [7:0]    rexp_wdata;
  assign rexp_we    = ex_w_q || rexp_we_i;
  assign rexp_waddr = ex_w_q ? top_tok : rexp_waddr_i;
  assign rexp_wdata = ex_w_q ? ex_new_q : rexp_wdata_i;
  mr_ram_1r1w #(.W(8), .DEPTH(T)) u_rexp_own (
    .clk_i, .wen_i(rexp_we), .waddr_i(rexp_waddr), .wdata_i(rexp_wdata),
    .ren_i(rv_q[K_RES+1]), .raddr_i(rd_tok), .rdata_o(ex_old)
  );
  mr_ram_1r1w #(.W(8), .DEPTH(T)) u_rexp_ln (
    .clk_i, .wen_i(rexp_we), .waddr_i(rexp_waddr), .wdata_i(rexp_wdata),
    .ren_i(rexp_ren_i), .raddr_i(rexp_raddr_i), .rdata_o(rexp_rdata_o)
  );

  `MR_ASSERT(adder, !add_v_i || !d_v_i || !d_res_i)
  `MR_ASSERT(exponent, !ex_w_q || !rexp_we_i)

endmodule
