// SPDX-License-Identifier: Apache-2.0
// The epilogue's arithmetic, V lanes: accumulator to fp32, bias, rotary, a function (mr_vgelu).
//
// A pipeline of fixed length that never stalls. Whatever a command does not want changes nothing
// and takes as long: no bias is -0, a lane that does not rotate is x * 1 + (-0), no function a
// delay. A NaN row or column comes in as a NaN bias.
//
// Parameters: N, T, ROT_MAX, TRAIN as mr_epilogue.
//
// Ports
//   take_i    a beat comes in: dr_ of mr_array, its word in the head, how many of its low lanes
//             rotate, whether it has a bias, and its function (FUNCTION_* of mr_pkg)
//   keep_on_i, slope_on_i   with TRAIN: what enters the function also leaves, x_o and x_fn_o with
//             x_valid_o; the lanes are multiplied by sl_f_i in rotary's place (they do not
//             rotate), which comes two cycles after sl_pop_o
//   rot_      RAM port of the rotary memory, token * (ROT_MAX/V) + word of the head: cosine and
//             sine of a pair of lanes in the pair's places
//   v_o       bit k: the beat that was taken k cycles ago (mr_epi_pkg has the stages)
//   val_o     its result, at K_DST, held to the next one
//   add_      the function's addition, in the adder of mr_epi_res: add_y_i is the sum FADD_LAT
//             cycles later
//   ovf_o     a finite operation overflowed, nan_o (two cycles behind val_o): a result is NaN
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_epi_lanes #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int ROT_MAX = 64,
  parameter int TRAIN = 0,
  localparam int V = 4 * N,
  localparam int ROTW = $clog2(T * (ROT_MAX / V)),
  localparam int K_TOP = mr_epi_pkg::K_TOP
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             take_i,
  input  logic             bias_on_i,
  input  logic [1:0]       fn_i,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic             keep_on_i,
  input  logic             slope_on_i,
  input  logic [V*32-1:0]  sl_f_i,
  // verilator lint_on UNUSED
  output logic             sl_pop_o,
  output logic             x_valid_o,
  output logic [V*32-1:0]  x_o,
  output logic [1:0]       x_fn_o,
  input  logic [15:0]      head_word_i,
  input  logic [6:0]       rotate_i,
  input  logic [V*48-1:0]  dr_acc_i,
  input  logic [V*9-1:0]   dr_base_i,
  input  logic [V-1:0]     dr_nan_i,
  input  logic [V*32-1:0]  dr_bias_i,
  input  logic [15:0]      dr_token_i,
  input  logic             dr_fp4_i,

  `MR_RAM_R_M(rot_, ROTW, V*32),

  output logic [K_TOP:1]   v_o,
  output logic [V*32-1:0]  val_o,
  `MR_EPI_ADD_M(),
  `MR_FLAGS_M()
);

  localparam int ROT_TOK = ROT_MAX / V;
  localparam int K_BIAS = mr_epi_pkg::K_BIAS, K_PREP = mr_epi_pkg::K_PREP,
                 K_MUL = mr_epi_pkg::K_MUL, K_PROD = mr_epi_pkg::K_PROD,
                 K_ROT = mr_epi_pkg::K_ROT, K_GELU = mr_epi_pkg::K_GELU,
                 K_PICK = mr_epi_pkg::K_PICK, K_DST = mr_epi_pkg::K_DST,
                 K_ADD = K_GELU + mr_fp_pkg::GELU_LAT;
  if (K_BIAS != 1 + mr_fp_pkg::ACC2F_LAT || K_PREP != K_BIAS + mr_fp_pkg::FADD_LAT ||
      K_MUL != K_PREP + 1 || K_PROD != K_MUL + mr_fp_pkg::FMUL_LAT || K_ROT != K_PROD + 1 ||
      K_GELU != K_ROT + mr_fp_pkg::FADD_LAT || K_PICK != K_ADD + mr_fp_pkg::FADD_LAT ||
      K_DST != K_PICK + 1 || mr_epi_pkg::K_RES != K_DST + mr_fp_pkg::FADD_LAT) begin : gen_illegal
    mr_epi_pkg_does_not_fit_the_latencies u_illegal ();
  end

  // What rotary needs of a beat waits in a ring until its stage.
  localparam int R_W = 16 + 16 + 7;
  logic [R_W-1:0]  ring [0:31];
  logic [4:0]      wptr_q, rptr_q;
  logic [K_TOP:1]  v_q;
  logic [K_PICK:1] f_q;  // whether there is a function
  logic [2*K_GELU-1:0] fn_q;  // which
  always_ff @(posedge clk_i) begin
    if (take_i) ring[wptr_q] <= {dr_token_i, head_word_i, rotate_i};
    f_q <= {f_q[K_PICK-1:1], fn_i != mr_pkg::FUNCTION_NONE[1:0]};
    fn_q <= {fn_q[2*K_GELU-3:0], fn_i};
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v_q    <= '0;
      wptr_q <= '0;
      rptr_q <= '0;
    end else begin
      v_q <= {v_q[K_TOP-1:1], take_i};
      if (take_i) wptr_q <= wptr_q + 5'd1;
      if (v_q[K_PREP-3]) rptr_q <= rptr_q + 5'd1;
    end
  end
  assign v_o = v_q;

  // ---- accumulator to fp32 and bias -------------------------------------------------------------
  // No bias is -0, which changes nothing; a NaN row or column comes in as a NaN bias.
  logic [V*48-1:0] acc1_q;
  logic [V*11-1:0] exp1_q;
  // Delay lines are rings like those above: nothing moves but what comes and goes.
  logic [V*32-1:0] bias_mem [0:3];
  logic [V*32-1:0] bias_in, bias_q;
  logic [1:0]      bias_w_q, bias_r_q;
  for (genvar l = 0; l < V; l++) begin : gen_bias
    assign bias_in[32*l+:32] =
        dr_nan_i[l] ? mr_fp_pkg::QNAN : bias_on_i ? dr_bias_i[32*l+:32] : 32'h8000_0000;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bias_w_q <= '0;
      bias_r_q <= '0;
    end else begin
      if (take_i) bias_w_q <= bias_w_q + 2'd1;
      if (v_q[K_BIAS-1]) bias_r_q <= bias_r_q + 2'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take_i) begin
      acc1_q <= dr_acc_i;
      for (int l = 0; l < V; l++) begin
        // MR_ACC_EXP_FP4, MR_ACC_EXP_INT8 in host/cmodel/num.h.
        exp1_q[11*l+:11] <= {2'b0, dr_base_i[9*l+:9]} - (dr_fp4_i ? 11'd279 : 11'd284);
      end
      bias_mem[bias_w_q] <= bias_in;
    end
    if (v_q[K_BIAS-1]) bias_q <= bias_mem[bias_r_q];
  end

  logic [V*32-1:0] cvt_y, bias_y;
  logic            cvt_ovf, bias_ovf;
  // The pipeline's own valid bits say the same.
  // verilator lint_off UNUSED
  logic            cvt_v, bias_v, mulc_v, muls_v, rot_v;
  // verilator lint_on UNUSED
  mr_vacc2f #(.LANES(V)) u_cvt (
    .clk_i, .rst_ni, .valid_i(v_q[1]), .acc_i(acc1_q), .exp_i(exp1_q), .valid_o(cvt_v), .y_o(cvt_y),
    .ovf_o(cvt_ovf)
  );
  mr_vfadd #(.LANES(V)) u_bias (
    .clk_i, .rst_ni, .valid_i(v_q[K_BIAS]), .a_i(cvt_y), .b_i(bias_q), .valid_o(bias_v),
    .y_o(bias_y), .ovf_o(bias_ovf)
  );

  // ---- rotary -----------------------------------------------------------------------------------
  // Lanes that do not rotate: x * 1 + (-0).
  logic [15:0]     r_tok_q, r_hw_q;
  logic [6:0]      r_n_q;
  logic [7*(K_PROD-K_PREP+2)-1:0] rotn_q;  // delayed, at K_PREP - 1 in the low bits
  logic [ROTW-1:0] rot_addr_q;
  always_ff @(posedge clk_i) begin
    if (v_q[K_PREP-3]) {r_tok_q, r_hw_q, r_n_q} <= ring[rptr_q];
    if (v_q[K_PREP-2]) rot_addr_q <= ROTW'(32'(r_tok_q) * ROT_TOK + 32'(r_hw_q));
    rotn_q <= {rotn_q[7*(K_PROD-K_PREP+1)-1:0], r_n_q};
  end
  logic [6:0] prep_n, prod_n;
  assign prep_n = rotn_q[13:7];
  assign prod_n = rotn_q[7*(K_PROD-K_PREP+1)+:7];
  assign rot_ren_o   = v_q[K_PREP-1] && (rotn_q[6:0] != '0);
  assign rot_raddr_o = rot_addr_q;

  // What a lane that does not rotate is multiplied by; what enters the function.
  logic [V*32-1:0] factor, rot_y;
  if (TRAIN != 0) begin : gen_slopes
    logic [K_PREP:1] s_q;
    logic [K_GELU:1] k_q;
    always_ff @(posedge clk_i) begin
      s_q <= {s_q[K_PREP-1:1], slope_on_i};
      k_q <= {k_q[K_GELU-1:1], keep_on_i};
    end
    assign sl_pop_o  = v_q[K_PREP-2] && s_q[K_PREP-2];
    assign factor    = s_q[K_PREP] ? sl_f_i : {V{32'h3F80_0000}};
    assign x_valid_o = v_q[K_GELU] && k_q[K_GELU];
    assign x_o       = rot_y;
    assign x_fn_o    = fn_q[2*K_GELU-1-:2];
  end else begin : gen_no_slopes
    assign factor = {V{32'h3F80_0000}};
    assign {sl_pop_o, x_valid_o, x_o, x_fn_o} = '0;
  end

  logic [V*32-1:0] mx_q, mp_q, mc_q, ms_q;  // own and partner's value, cosine, sine
  always_ff @(posedge clk_i) begin
    if (v_q[K_PREP]) begin
      mx_q <= bias_y;
      for (int l = 0; l < V; l++) begin
        mp_q[32*l+:32] <= bias_y[32*(l^1)+:32];
        mc_q[32*l+:32] <= (7'(l) < prep_n) ? rot_rdata_i[32*(l&~1)+:32] : factor[32*l+:32];
        ms_q[32*l+:32] <= (7'(l) < prep_n) ? rot_rdata_i[32*(l|1)+:32] : 32'd0;
      end
    end
  end

  logic [V*32-1:0] mulc_y, muls_y;
  logic            mulc_ovf, muls_ovf, rot_ovf;
  mr_vfmul #(.LANES(V)) u_mulc (
    .clk_i, .rst_ni, .valid_i(v_q[K_MUL]), .a_i(mx_q), .b_i(mc_q), .valid_o(mulc_v), .y_o(mulc_y),
    .ovf_o(mulc_ovf)
  );
  mr_vfmul #(.LANES(V)) u_muls (
    .clk_i, .rst_ni, .valid_i(v_q[K_MUL]), .a_i(mp_q), .b_i(ms_q), .valid_o(muls_v), .y_o(muls_y),
    .ovf_o(muls_ovf)
  );

  logic [V*32-1:0] ra_q, rb_q;
  always_ff @(posedge clk_i) begin
    if (v_q[K_PROD]) begin
      ra_q <= mulc_y;
      for (int l = 0; l < V; l++) begin
        // Even lanes subtract: x0 c - x1 s; odd ones add: x1 c + x0 s.
        if (7'(l) >= prod_n) rb_q[32*l+:32] <= 32'h8000_0000;
        else rb_q[32*l+:32] <= {muls_y[32*l+31] ^ ((l & 1) == 0), muls_y[32*l+:31]};
      end
    end
  end
  mr_vfadd #(.LANES(V)) u_rot (
    .clk_i, .rst_ni, .valid_i(v_q[K_ROT]), .a_i(ra_q), .b_i(rb_q), .valid_o(rot_v), .y_o(rot_y),
    .ovf_o(rot_ovf)
  );

  // ---- the function, or as long a delay ---------------------------------------------------------
  logic [V*32-1:0] dly_mem [0:15];
  logic [3:0]      dly_w_q, dly_r_q;
  mr_vgelu #(.LANES(V)) u_gelu (
    .clk_i, .rst_ni, .valid_i(v_q[K_GELU] && f_q[K_GELU]), .fn_i(fn_q[2*K_GELU-1-:2]), .x_i(rot_y),
    .valid_o(add_v_o), .relu_o(add_a_o), .neg_o(add_b_o)
  );
  always_ff @(posedge clk_i) begin
    if (v_q[K_GELU] && !f_q[K_GELU]) dly_mem[dly_w_q] <= rot_y;
    if (v_q[K_PICK]) val_o <= f_q[K_PICK] ? add_y_i : dly_mem[dly_r_q];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dly_w_q <= '0;
      dly_r_q <= '0;
    end else begin
      if (v_q[K_GELU] && !f_q[K_GELU]) dly_w_q <= dly_w_q + 4'd1;
      if (v_q[K_PICK] && !f_q[K_PICK]) dly_r_q <= dly_r_q + 4'd1;
    end
  end

  // ---- flags ------------------------------------------------------------------------------------
  function automatic is_nan(input logic [30:0] x);
    is_nan = (x[30:23] == 8'd255) && (x[22:0] != '0);
  endfunction
  logic [V-1:0] nan_lane_q;
  logic         nan_v_q, nan_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      nan_q   <= 1'b0;
      nan_v_q <= 1'b0;
    end else begin
      nan_v_q <= v_q[K_DST];
      nan_q   <= nan_v_q && (nan_lane_q != '0);
    end
  end
  always_ff @(posedge clk_i) begin
    if (v_q[K_DST]) begin
      for (int l = 0; l < V; l++) nan_lane_q[l] <= is_nan(val_o[32*l+:31]);
    end
  end
  assign ovf_o = cvt_ovf || bias_ovf || mulc_ovf || muls_ovf || rot_ovf;
  assign nan_o = nan_q;

  // The units' latencies are those that mr_epi_pkg counts with.
  `MR_ASSERT(in_step, {cvt_v, bias_v, mulc_v, muls_v, rot_v} ==
                      {v_q[K_BIAS], v_q[K_PREP], {2{v_q[K_PROD]}}, v_q[K_GELU]})

endmodule
