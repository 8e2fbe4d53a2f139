// SPDX-License-Identifier: Apache-2.0
// What happens to the array's results: accumulator to fp32, bias, rotary, GELU, then one of four
// destinations. One drain beat (a token's next C columns) a cycle, without a stall inside.
//
// Parameters
//   N        channels; V = C = 4N lanes, a divisor or a multiple of 32
//   T        tokens
//   D_MAX    floats a token in the residual memory, a multiple of V
//   ROT_MAX  floats a token in the rotary memory, a multiple of V
//
// Configuration (cfg_, valid/ready): the MATMUL command's fields in command order and cfg_rows_i,
// the tokens that the array drains for it (0 allowed: done at once, no beats). Eight commands from
// cfg to done. cfg_cols_i is a multiple of 64, cfg_head_lanes_i of V. cfg_two_pass_i is the run's
// flag. done_o: pulse per command, in command order, when all of it is stored: ACT, QKV: three
// cycles and more after the last q_ack_i; RES: residual and exponent written; RESULT: acknowledged
// by mr_writer.
//
// Drain (dr_): valid/ready, as mr_array. dr_ready_o depends on registers only. A beat is taken when
// a configuration is there and its place in the staging memory is free; what is taken never stalls.
// Latency from the handshake: 26 cycles to the staging memory, 29 to the residual write.
// A residual command's first beat waits until the RES command before it is written.
//
// Memories (RAM ports, data one cycle after ren): rot_raddr_o = token * (ROT_MAX/V) + word of the
// head, res_raddr_o, res_waddr_o = token * (D_MAX/V) + group. The row exponents are inside:
// rexp_we_i for mr_rows, rexp_ren_i for mr_layernorm; neither may overlap a RES command with
// track_exp (the commands' semaphores see to that).
//
// ACT, QKV: q_ (valid/ready) to mr_vec_out, 32/V beats a block (V = 64: a beat is two blocks), tag
// as in mr_vec_pkg; q_ack_i pulse per block written, both passes counted.
// RESULT: per token up to 256 columns (256 if rows <= T/4, 128 if rows <= T/2, else 64) are
// gathered into one job of mr_writer (job_, data_, job_done_i), columns >= cfg_out_cols_i are left
// out. Window out_base_i (64-byte aligned), out_limit_i (beats): a job outside gives err_valid_o,
// WINDOW, and is not written.
// sticky_ovf_o, sticky_nan_o: pulses, a finite operation overflowed, a result is NaN.
module mr_epilogue #(
  parameter int N = 1,
  parameter int T = 8,
  parameter int D_MAX = 64,
  parameter int ROT_MAX = 64,
  localparam int V = 4 * N,
  localparam int TW = $clog2(T),
  localparam int RESW = $clog2(T * (D_MAX / V)),
  localparam int ROTW = $clog2(T * (ROT_MAX / V))
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         cfg_valid_i,
  output logic                         cfg_ready_o,
  input  logic [31:0]                  cfg_cols_i,
  input  logic [15:0]                  cfg_rows_i,
  input  logic [1:0]                   cfg_dst_i,
  input  logic [15:0]                  cfg_dst_base_i,
  input  logic [1:0]                   cfg_dst_slot_i,
  input  logic                         cfg_bias_i,
  input  logic                         cfg_rotary_i,
  input  logic                         cfg_gelu_i,
  input  logic                         cfg_prefix_max_i,
  input  logic                         cfg_track_exp_i,
  input  logic [15:0]                  cfg_rotary_dim_i,
  input  logic [15:0]                  cfg_head_lanes_i,
  input  logic [31:0]                  cfg_out_cols_i,
  input  logic [31:0]                  cfg_out_off_i,
  input  logic [31:0]                  cfg_out_stride_i,
  input  logic                         cfg_two_pass_i,
  output logic                         done_o,

  input  logic                         dr_valid_i,
  output logic                         dr_ready_o,
  input  logic [V*48-1:0]              dr_acc_i,
  input  logic [V*9-1:0]               dr_base_i,
  input  logic [V-1:0]                 dr_nan_i,
  input  logic [V*32-1:0]              dr_bias_i,
  input  logic [15:0]                  dr_token_i,
  input  logic [15:0]                  dr_group_i,
  input  logic                         dr_fp4_i,
  input  logic                         dr_last_i,

  output logic                         rot_ren_o,
  output logic [ROTW-1:0]              rot_raddr_o,
  input  logic [V*32-1:0]              rot_rdata_i,
  output logic                         res_ren_o,
  output logic [RESW-1:0]              res_raddr_o,
  input  logic [V*32-1:0]              res_rdata_i,
  output logic                         res_we_o,
  output logic [RESW-1:0]              res_waddr_o,
  output logic [V*32-1:0]              res_wdata_o,
  input  logic                         rexp_we_i,
  input  logic [TW-1:0]                rexp_waddr_i,
  input  logic [7:0]                   rexp_wdata_i,
  input  logic                         rexp_ren_i,
  input  logic [TW-1:0]                rexp_raddr_i,
  output logic [7:0]                   rexp_rdata_o,

  output logic                         q_valid_o,
  input  logic                         q_ready_i,
  output logic [V*32-1:0]              q_data_o,
  output logic [mr_vec_pkg::TAG_W-1:0] q_tag_o,
  input  logic                         q_ack_i,

  // The low bits are zero.
  // verilator lint_off UNUSED
  input  logic [63:0]                  out_base_i,
  // verilator lint_on UNUSED
  input  logic [31:0]                  out_limit_i,
  output logic                         job_valid_o,
  input  logic                         job_ready_i,
  output logic [63:0]                  job_addr_o,
  output logic [15:0]                  job_beats_o,
  output logic [63:0]                  job_strb_o,
  output logic                         data_valid_o,
  input  logic                         data_ready_i,
  output logic [511:0]                 data_o,
  input  logic                         job_done_i,

  output logic                         err_valid_o,
  output logic [7:0]                   err_code_o,
  output logic [63:0]                  err_addr_o,
  output logic                         sticky_ovf_o,
  output logic                         sticky_nan_o
);

  localparam int JOBS = 64;                      // units complete but not yet read
  localparam int W64 = 64 / V;                   // words of 64 columns
  localparam int LW = $clog2(W64);
  localparam int WPU = (V < 32) ? 32 / V : 1;    // words of a block
  localparam int BPU = (V > 32) ? V / 32 : 1;    // blocks of a word
  localparam int UNITS = (V > 32) ? 1 : 2;       // blocks (or pairs) a token in the staging memory
  localparam int DEPTH = T * W64;
  localparam int SAW = $clog2(DEPTH);
  localparam int RES_TOK = D_MAX / V;
  localparam int ROT_TOK = ROT_MAX / V;

  // Destinations; 0 is activation memory.
  localparam logic [1:0] D_QKV = mr_pkg::DST_QKV[1:0], D_RES = mr_pkg::DST_RES[1:0],
                         D_OUT = mr_pkg::DST_RESULT[1:0];

  // Pipeline: v_q[k] is high k cycles after a beat was taken.
  localparam int K_BIAS = 1 + mr_fp_pkg::ACC2F_LAT;       // bias adder's operands
  localparam int K_PREP = K_BIAS + mr_fp_pkg::FADD_LAT;   // biased
  localparam int K_MUL = K_PREP + 1;
  localparam int K_PROD = K_MUL + mr_fp_pkg::FMUL_LAT;
  localparam int K_ROT = K_PROD + 1;
  localparam int K_GELU = K_ROT + mr_fp_pkg::FADD_LAT;
  localparam int K_PICK = K_GELU + mr_fp_pkg::GELU_LAT;
  localparam int K_DST = K_PICK + 1;                      // final value in val_q
  localparam int K_RES = K_DST + mr_fp_pkg::FADD_LAT;
  localparam int K_MAX = K_RES + 2;
  localparam int K_TOP = K_MAX + 1;

  // ---- commands ---------------------------------------------------------------------------------
  // A command's entry lives from cfg to done: wr_q, cur_q (being drained), fr_q (oldest not done).
  // Memories for the drain side and for the staging side, bits for the end.
  localparam int CD_W = 2 + 1 + 2 + 2 + 16 * 6;
  localparam int CU_W = 2 + 2 + 2 + 2 + 16 + 32 * 3;
  logic [CD_W-1:0] cfg_d_mem [0:7];
  logic [CU_W-1:0] cfg_u_mem [0:7];
  logic [7:0]      cfg_res_q, cfg_out_q, cfg_empty_q;
  logic [3:0]      wr_q, cur_q, fr_q;
  logic            push;
  assign cfg_ready_o = (wr_q - fr_q) != 4'd8;
  assign push        = cfg_valid_i && cfg_ready_o;

  // RESULT: columns of a span, log2 less 6.
  function automatic [1:0] span_of(input logic [15:0] rows);
    if (32'(rows) * 4 <= T) span_of = 2'd2;
    else if (32'(rows) * 2 <= T) span_of = 2'd1;
    else span_of = 2'd0;
  endfunction
  function automatic [31:0] min32(input logic [31:0] a, input logic [31:0] b);
    min32 = (a < b) ? a : b;
  endfunction

  always_ff @(posedge clk_i) begin
    if (push) begin
      cfg_d_mem[wr_q[2:0]] <= {
        cfg_dst_i, cfg_track_exp_i && (cfg_dst_i == D_RES),
        (cfg_dst_i == D_OUT) ? span_of(cfg_rows_i) : 2'd0, cfg_bias_i, cfg_gelu_i,
        cfg_rotary_i ? cfg_rotary_dim_i : 16'd0, (cfg_head_lanes_i / 16'(V)) - 16'd1,
        cfg_rows_i, cfg_rows_i - 16'd1, 16'(cfg_cols_i / V) - 16'd1,
        (cfg_dst_i == D_OUT || UNITS == 1) ? cfg_rows_i : {cfg_rows_i[14:0], 1'b0}};
      cfg_u_mem[wr_q[2:0]] <= {
        cfg_dst_i, cfg_dst_slot_i, (cfg_dst_i == D_OUT) ? span_of(cfg_rows_i) : 2'd0,
        cfg_prefix_max_i && (cfg_dst_i == D_QKV), cfg_two_pass_i, cfg_dst_base_i,
        min32(cfg_out_cols_i, cfg_cols_i), cfg_out_off_i, cfg_out_stride_i};
      cfg_res_q[wr_q[2:0]]   <= (cfg_dst_i == D_RES);
      cfg_out_q[wr_q[2:0]]   <= (cfg_dst_i == D_OUT);
      cfg_empty_q[wr_q[2:0]] <= (cfg_rows_i == '0);
    end
  end

  // The command that is being drained, loaded when the one before has given its last beat.
  logic [1:0]  c_dst, c_span;
  logic        c_track, c_bias, c_gelu;
  logic [15:0] c_rot_dim, c_head_m1, c_rows, c_rows_m1, c_groups_m1, c_room;
  logic        c_valid_q, c_end, c_load;
  logic [3:0]  c_next;
  assign c_next = c_valid_q ? cur_q + 4'd1 : cur_q;
  assign c_load = (!c_valid_q || c_end) && (c_next != wr_q);
  always_ff @(posedge clk_i) begin
    if (c_load) begin
      {c_dst, c_track, c_span, c_bias, c_gelu, c_rot_dim, c_head_m1, c_rows, c_rows_m1, c_groups_m1,
       c_room} <= cfg_d_mem[c_next[2:0]];
    end
  end

  // ---- taking a beat ----------------------------------------------------------------------------
  // Staged commands produce units (a block, or a RESULT span, of one token). Units are counted
  // modulo 2^16: a beat belongs to unit u_q, acc_q units are complete, rd_q have been read. A
  // unit's place was last used c_room units before.
  logic [15:0] u_q, ubase_q, acc_q, rd_q;
  logic        start_q;         // no beat of this command yet
  logic [3:0]  res_cmds_q;      // RES commands drained and not written
  logic [18:0] layout_q;        // of the last staged command: {RESULT, span, rows}
  logic [18:0] c_layout;
  logic        c_staged, place_ok, jobs_ok, layout_ok, res_ok, take, final_w, tok_last;
  logic        res_fin;
  logic [15:0] w_mask, w_unit;  // word of the unit and its last value
  logic [15:0] hw_q;            // word inside the head
  assign c_staged  = (c_dst != D_RES);
  assign c_layout  = {c_dst == D_OUT, c_span, c_rows};
  assign place_ok  = (16'(u_q - rd_q) < c_room);
  assign jobs_ok   = (16'(acc_q - rd_q) < 16'(JOBS));
  assign layout_ok = !start_q || (c_layout == layout_q) || (acc_q == rd_q);
  assign res_ok    = !start_q || (res_cmds_q == '0);
  assign dr_ready_o = c_valid_q && (c_rows != '0) &&
                      (c_staged ? (place_ok && jobs_ok && layout_ok) : res_ok);
  assign take     = dr_valid_i && dr_ready_o;
  assign c_end    = c_valid_q && ((c_rows == '0) || (take && dr_last_i));
  assign tok_last = (dr_token_i == c_rows_m1);
  assign w_mask   = (c_dst == D_OUT) ? ((16'(W64) << c_span) - 16'd1) : 16'(WPU - 1);
  assign w_unit   = dr_group_i & w_mask;
  assign final_w  = (w_unit == w_mask) || (dr_group_i == c_groups_m1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q       <= '0;
      cur_q      <= '0;
      c_valid_q  <= 1'b0;
      start_q    <= 1'b1;
      u_q        <= '0;
      ubase_q    <= '0;
      acc_q      <= '0;
      hw_q       <= '0;
      res_cmds_q <= '0;
      layout_q   <= '0;
    end else begin
      if (push) wr_q <= wr_q + 4'd1;
      if (c_end) cur_q <= cur_q + 4'd1;
      if (c_load) c_valid_q <= 1'b1;
      else if (c_end) c_valid_q <= 1'b0;
      res_cmds_q <= res_cmds_q + 4'(take && dr_last_i && !c_staged) - 4'(res_fin);
      if (take) begin
        start_q <= dr_last_i;
        if (dr_last_i) hw_q <= '0;
        else if (tok_last) hw_q <= (hw_q == c_head_m1) ? '0 : hw_q + 16'd1;
        if (c_staged) begin
          layout_q <= c_layout;
          if (final_w) acc_q <= acc_q + 16'd1;
          if (tok_last && final_w) ubase_q <= u_q + 16'd1;
          u_q <= (tok_last && !final_w) ? ubase_q : u_q + 16'd1;
        end
      end
    end
  end

  // Lanes of word hw of a head that rotate.
  function automatic [6:0] rot_lanes(input logic [15:0] dim, input logic [15:0] hw);
    logic [16:0] left;
    begin
      left = {1'b0, dim} - 17'(hw * 16'(V));
      if (left[16]) rot_lanes = 7'd0;
      else if (left >= 17'(V)) rot_lanes = 7'(V);
      else rot_lanes = left[6:0];
    end
  endfunction

  // ---- what goes beside the data: rings written here, read by the stage that needs it -----------
  localparam int R_W = 16 + 16 + 7;
  localparam int E_W = 2 + 1 + 2 + 1 + 1 + 3 + 16 + 16;
  logic [R_W-1:0] ring_r [0:31];
  logic [E_W-1:0] ring_e [0:31];
  logic [4:0]     ring_w_q, ring_rr_q, ring_er_q;
  logic [K_TOP:1] v_q;
  logic [K_PICK:1] g_q;  // GELU

  always_ff @(posedge clk_i) begin
    if (take) begin
      ring_r[ring_w_q] <= {dr_token_i, hw_q, rot_lanes(c_rot_dim, hw_q)};
      ring_e[ring_w_q] <= {c_dst, c_track, c_span, dr_last_i, final_w, cur_q[2:0], dr_token_i,
                           dr_group_i};
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      v_q       <= '0;
      ring_w_q  <= '0;
      ring_rr_q <= '0;
      ring_er_q <= '0;
    end else begin
      v_q <= {v_q[K_TOP-1:1], take};
      if (take) ring_w_q <= ring_w_q + 5'd1;
      if (v_q[K_PREP-3]) ring_rr_q <= ring_rr_q + 5'd1;
      if (v_q[K_PICK-2]) ring_er_q <= ring_er_q + 5'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    g_q <= {g_q[K_PICK-1:1], c_gelu};
  end

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
        dr_nan_i[l] ? mr_fp_pkg::QNAN : c_bias ? dr_bias_i[32*l+:32] : 32'h8000_0000;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bias_w_q <= '0;
      bias_r_q <= '0;
    end else begin
      if (take) bias_w_q <= bias_w_q + 2'd1;
      if (v_q[K_BIAS-1]) bias_r_q <= bias_r_q + 2'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
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
  logic            cvt_v, bias_v, mulc_v, muls_v, rot_v, gelu_v, res_v;
  // verilator lint_on UNUSED
  mr_vacc2f #(
    .LANES(V)
  ) u_cvt (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[1]),
    .acc_i  (acc1_q),
    .exp_i  (exp1_q),
    .valid_o(cvt_v),
    .y_o    (cvt_y),
    .ovf_o  (cvt_ovf)
  );
  mr_vfadd #(
    .LANES(V)
  ) u_bias (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[K_BIAS]),
    .a_i    (cvt_y),
    .b_i    (bias_q),
    .valid_o(bias_v),
    .y_o    (bias_y),
    .ovf_o  (bias_ovf)
  );

  // ---- rotary -----------------------------------------------------------------------------------
  // Lanes that do not rotate: x * 1 + (-0).
  logic [15:0]     r_tok_q, r_hw_q;
  logic [6:0]      r_n_q;
  logic [7*(K_PROD-K_PREP+2)-1:0] rotn_q;  // delayed, at K_PREP - 1 in the low bits
  logic [ROTW-1:0] rot_addr_q;
  always_ff @(posedge clk_i) begin
    if (v_q[K_PREP-3]) {r_tok_q, r_hw_q, r_n_q} <= ring_r[ring_rr_q];
    if (v_q[K_PREP-2]) rot_addr_q <= ROTW'(32'(r_tok_q) * ROT_TOK + 32'(r_hw_q));
    rotn_q <= {rotn_q[7*(K_PROD-K_PREP+1)-1:0], r_n_q};
  end
  logic [6:0] prep_n, prod_n;
  assign prep_n = rotn_q[13:7];
  assign prod_n = rotn_q[7*(K_PROD-K_PREP+1)+:7];
  assign rot_ren_o   = v_q[K_PREP-1] && (rotn_q[6:0] != '0);
  assign rot_raddr_o = rot_addr_q;

  logic [V*32-1:0] mx_q, mp_q, mc_q, ms_q;  // own and partner's value, cosine, sine
  always_ff @(posedge clk_i) begin
    if (v_q[K_PREP]) begin
      mx_q <= bias_y;
      for (int l = 0; l < V; l++) begin
        mp_q[32*l+:32] <= bias_y[32*(l^1)+:32];
        mc_q[32*l+:32] <= (7'(l) < prep_n) ? rot_rdata_i[32*(l&~1)+:32] : 32'h3F80_0000;
        ms_q[32*l+:32] <= (7'(l) < prep_n) ? rot_rdata_i[32*(l|1)+:32] : 32'd0;
      end
    end
  end

  logic [V*32-1:0] mulc_y, muls_y, rot_y;
  logic            mulc_ovf, muls_ovf, rot_ovf;
  mr_vfmul #(
    .LANES(V)
  ) u_mulc (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[K_MUL]),
    .a_i    (mx_q),
    .b_i    (mc_q),
    .valid_o(mulc_v),
    .y_o    (mulc_y),
    .ovf_o  (mulc_ovf)
  );
  mr_vfmul #(
    .LANES(V)
  ) u_muls (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[K_MUL]),
    .a_i    (mp_q),
    .b_i    (ms_q),
    .valid_o(muls_v),
    .y_o    (muls_y),
    .ovf_o  (muls_ovf)
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
  mr_vfadd #(
    .LANES(V)
  ) u_rot (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[K_ROT]),
    .a_i    (ra_q),
    .b_i    (rb_q),
    .valid_o(rot_v),
    .y_o    (rot_y),
    .ovf_o  (rot_ovf)
  );

  // ---- GELU, or as long a delay -----------------------------------------------------------------
  logic [V*32-1:0] gelu_y, val_q;
  logic [V*32-1:0] dly_mem [0:15];
  logic [3:0]      dly_w_q, dly_r_q;
  mr_vgelu #(
    .LANES(V)
  ) u_gelu (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[K_GELU] && g_q[K_GELU]),
    .x_i    (rot_y),
    .valid_o(gelu_v),
    .y_o    (gelu_y)
  );
  always_ff @(posedge clk_i) begin
    if (v_q[K_GELU] && !g_q[K_GELU]) dly_mem[dly_w_q] <= rot_y;
    if (v_q[K_PICK]) val_q <= g_q[K_PICK] ? gelu_y : dly_mem[dly_r_q];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dly_w_q <= '0;
      dly_r_q <= '0;
    end else begin
      if (v_q[K_GELU] && !g_q[K_GELU]) dly_w_q <= dly_w_q + 4'd1;
      if (v_q[K_PICK] && !g_q[K_PICK]) dly_r_q <= dly_r_q + 4'd1;
    end
  end

  // ---- destination ------------------------------------------------------------------------------
  // p_: at K_PICK - 1 (residual read) and K_PICK; d_: at K_DST.
  logic            p_track_q, p_last_q, p_final_q;
  logic [1:0]      p_dst_q, p_span_q;
  logic [2:0]      p_idx_q;
  logic [15:0]     p_tok_q, p_grp_q;
  logic            p2_res_q, p2_stg_q, p2_track_q, p2_last_q, p2_final_q, p2_first_q;
  logic [2:0]      p2_idx_q;
  logic [15:0]     p2_tok_q, p2_grp_q;
  logic [RESW-1:0] p2_res_addr_q;
  logic [SAW-1:0]  p2_stg_addr_q;
  logic            d_res_q, d_stg_q, d_track_q, d_last_q, d_final_q, d_first_q;
  logic [2:0]      d_idx_q;
  logic [15:0]     d_tok_q, d_grp_q;
  logic [RESW-1:0] d_res_addr_q;
  logic [SAW-1:0]  d_stg_addr_q;

  // A token's word of the staging memory.
  function automatic [SAW-1:0] stage_addr(input logic [15:0] tok, input logic [1:0] span,
                                          input logic [15:0] grp);
    stage_addr = SAW'(32'(tok) << (3'(LW) + 3'(span))) +
                 SAW'(grp & ((16'(W64) << span) - 16'd1));
  endfunction

  always_ff @(posedge clk_i) begin
    if (v_q[K_PICK-2]) begin
      {p_dst_q, p_track_q, p_span_q, p_last_q, p_final_q, p_idx_q, p_tok_q, p_grp_q} <=
          ring_e[ring_er_q];
    end
    if (v_q[K_PICK-1]) begin
      p2_res_q      <= (p_dst_q == D_RES);
      p2_stg_q      <= (p_dst_q != D_RES);
      p2_track_q    <= p_track_q;
      p2_last_q     <= p_last_q;
      p2_final_q    <= p_final_q;
      p2_first_q    <= (p_grp_q == '0);
      p2_idx_q      <= p_idx_q;
      p2_tok_q      <= p_tok_q;
      p2_grp_q      <= p_grp_q;
      p2_res_addr_q <= RESW'(32'(p_tok_q) * RES_TOK + 32'(p_grp_q));
      p2_stg_addr_q <= stage_addr(p_tok_q, p_span_q, p_grp_q);
    end
    if (v_q[K_PICK]) begin
      d_res_q      <= p2_res_q;
      d_stg_q      <= p2_stg_q;
      d_track_q    <= p2_track_q;
      d_last_q     <= p2_last_q;
      d_final_q    <= p2_final_q;
      d_first_q    <= p2_first_q;
      d_idx_q      <= p2_idx_q;
      d_tok_q      <= p2_tok_q;
      d_grp_q      <= p2_grp_q;
      d_res_addr_q <= p2_res_addr_q;
      d_stg_addr_q <= p2_stg_addr_q;
    end
  end

  // ---- residual ---------------------------------------------------------------------------------
  // The word arrives with val_q.
  assign res_ren_o   = v_q[K_PICK] && p2_res_q;
  assign res_raddr_o = p2_res_addr_q;

  logic            res_ovf;
  logic [V*32-1:0] res_y;
  mr_vfadd #(
    .LANES(V)
  ) u_res (
    .clk_i,
    .rst_ni,
    .valid_i(v_q[K_DST] && d_res_q),
    .a_i    (res_rdata_i),
    .b_i    (val_q),
    .valid_o(res_v),
    .y_o    (res_y),
    .ovf_o  (res_ovf)
  );

  // {token, track, last, first}, at K_DST + 1 in the low bits; the address as long as it is needed.
  localparam int Q_W = TW + 3;
  logic [Q_W*(K_TOP-K_DST)-1:0]  rq_q;
  logic [RESW*(K_RES-K_DST)-1:0] ra_addr_q;
  always_ff @(posedge clk_i) begin
    rq_q      <= {rq_q[Q_W*(K_TOP-K_DST-1)-1:0], TW'(d_tok_q), d_track_q, d_last_q, d_first_q};
    ra_addr_q <= {ra_addr_q[RESW*(K_RES-K_DST-1)-1:0], d_res_addr_q};
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
    else rv_q <= {rv_q[K_TOP-1:K_DST+1], v_q[K_DST] && d_res_q};
  end
  assign res_we_o    = rv_q[K_RES];
  assign res_waddr_o = ra_addr_q[RESW*(K_RES-K_DST-1)+:RESW];
  assign res_wdata_o = res_y;
  assign res_fin     = rv_q[K_TOP] && top_last;

  // Row exponents: read at K_RES + 1, largest exponent of the word at K_MAX, written at K_TOP. The
  // last two words' results are not yet in what was read.
  logic [7:0]    ex_max, ex_old, ex_prior, ex_new_q, ex_new2_q;
  logic          ex_v, ex_v2_q;
  logic [TW-1:0] ex_tok2_q;
  mr_expmax #(
    .LANES(V)
  ) u_expmax (
    .clk_i,
    .rst_ni,
    .valid_i(rv_q[K_RES] && rs_track),
    .data_i (res_y),
    .valid_o(ex_v),
    .max_o  (ex_max)
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
  mr_ram_1r1w #(
    .W    (8),
    .DEPTH(T)
  ) u_rexp_own (
    .clk_i,
    .wen_i  (rexp_we),
    .waddr_i(rexp_waddr),
    .wdata_i(rexp_wdata),
    .ren_i  (rv_q[K_RES+1]),
    .raddr_i(rd_tok),
    .rdata_o(ex_old)
  );
  mr_ram_1r1w #(
    .W    (8),
    .DEPTH(T)
  ) u_rexp_ln (
    .clk_i,
    .wen_i  (rexp_we),
    .waddr_i(rexp_waddr),
    .wdata_i(rexp_wdata),
    .ren_i  (rexp_ren_i),
    .raddr_i(rexp_raddr_i),
    .rdata_o(rexp_rdata_o)
  );

  // ---- staging memory ---------------------------------------------------------------------------
  logic            stg_ren;
  logic [SAW-1:0]  stg_raddr;
  logic [V*32-1:0] stg_rdata;
  mr_ram_1r1w #(
    .W    (V * 32),
    .DEPTH(DEPTH)
  ) u_staging (
    .clk_i,
    .wen_i  (v_q[K_DST] && d_stg_q),
    .waddr_i(d_stg_addr_q),
    .wdata_i(val_q),
    .ren_i  (stg_ren),
    .raddr_i(stg_raddr),
    .rdata_o(stg_rdata)
  );

  logic        f_valid, f_take, f_last;
  logic [2:0]  f_idx;
  logic [15:0] f_tok, f_grp;
  // No more than JOBS units are inside.
  // verilator lint_off PINCONNECTEMPTY
  mr_fifo #(
    .W    (36),
    .DEPTH(JOBS)
  ) u_units (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (v_q[K_DST] && d_stg_q && d_final_q),
    .in_ready_o (),
    .in_data_i  ({d_last_q, d_idx_q, d_tok_q, d_grp_q}),
    .out_valid_o(f_valid),
    .out_ready_i(f_take),
    .out_data_o ({f_last, f_idx, f_tok, f_grp}),
    .count_o    ()
  );
  // verilator lint_on PINCONNECTEMPTY

  // ---- units: read and sent on ------------------------------------------------------------------
  // Its command, read one cycle after the queue has it.
  logic        n_valid_q, n_load, n_last_q;
  logic [1:0]  u_dst, u_slot, u_span;
  logic        u_pmax, u_two;
  logic [15:0] u_dbase, n_tok_q, n_grp_q;
  logic [31:0] u_ocols, u_ooff, u_ostride;
  logic        j_take;
  assign n_load = f_valid && (!n_valid_q || j_take);
  assign f_take = n_load;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) n_valid_q <= 1'b0;
    else if (n_load) n_valid_q <= 1'b1;
    else if (j_take) n_valid_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (n_load) begin
      {u_dst, u_slot, u_span, u_pmax, u_two, u_dbase, u_ocols, u_ooff, u_ostride} <=
          cfg_u_mem[f_idx];
      n_last_q <= f_last;
      n_tok_q  <= f_tok;
      n_grp_q  <= f_grp;
    end
  end

  // The unit at work.
  logic                         j_valid_q, j_out_q, j_last_q, j_two_q;
  logic [SAW-1:0]               j_addr_q;   // next word
  logic [3:0]                   j_left_q;   // words of a block still to read
  logic [mr_vec_pkg::TAG_W-1:0] j_tag_q;
  logic                         ov_q;       // the memory's output register holds a beat for q_
  logic                         q_ren, q_end, o_ren, o_end;
  logic [mr_vec_pkg::TAG_W-1:0] tag_q;
  logic                         unit_end;

  function automatic [mr_vec_pkg::TAG_W-1:0] tag_of(
      input logic qkv, input logic pmax, input logic two, input logic [1:0] region,
      input logic [15:0] base, input logic [15:0] tok, input logic [15:0] grp);
    logic [15:0] blk;
    begin
      blk = (V < 32) ? grp / 16'(WPU) : grp * 16'(BPU);
      tag_of = {1'b1, blk[11:0], pmax, qkv, blk[0], two ? {tok[14:0], 1'b0} : tok,
                qkv ? base + {1'b0, blk[15:1]} : base + blk, region, blk == '0};
    end
  endfunction

  assign unit_end = q_end || o_end;
  assign j_take   = n_valid_q && (!j_valid_q || unit_end);
  assign q_ren    = j_valid_q && !j_out_q && (!ov_q || q_ready_i);
  assign q_end    = q_ren && (j_left_q == 4'd1);
  assign stg_ren   = q_ren || o_ren;
  assign stg_raddr = j_addr_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      j_valid_q <= 1'b0;
      ov_q      <= 1'b0;
      rd_q      <= '0;
    end else begin
      if (j_take) j_valid_q <= 1'b1;
      else if (unit_end) j_valid_q <= 1'b0;
      if (q_ren) ov_q <= 1'b1;
      else if (q_ready_i) ov_q <= 1'b0;
      if (unit_end) rd_q <= rd_q + 16'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (j_take) begin
      j_out_q  <= (u_dst == D_OUT);
      j_last_q <= n_last_q;
      j_two_q  <= u_two;
      j_tag_q  <= tag_of(u_dst == D_QKV, u_pmax, u_two, u_slot, u_dbase, n_tok_q, n_grp_q);
      j_left_q <= 4'(WPU);
      // A block's words end with the one that completed it; a span starts at its first.
      j_addr_q <= stage_addr(n_tok_q, u_span, (u_dst == D_OUT) ? 16'd0 : n_grp_q & 16'(W64 - WPU));
    end else if (stg_ren) begin
      j_left_q <= j_left_q - 4'd1;
      j_addr_q <= j_addr_q + SAW'(1);
    end
    if (q_ren) tag_q <= j_tag_q;
  end
  assign q_valid_o = ov_q;
  assign q_data_o  = stg_rdata;
  assign q_tag_o   = tag_q;

  // ---- RESULT: one write job a span -------------------------------------------------------------
  localparam logic [2:0] O_IDLE = 3'd0, O_SIZE = 3'd1, O_CHECK = 3'd2, O_JOB = 3'd3, O_DATA = 3'd4,
                         O_END = 3'd5;
  localparam int PARTS = (V < 16) ? 16 / V : 1;
  localparam int GATHER = (V > 16) ? V / 16 : 1;
  logic [2:0]  o_state_q;
  logic [15:0] o_grp_q, o_tok_q;
  logic [1:0]  o_span_q;
  logic [31:0] o_ocols_q, o_ooff_q, o_stride_q;
  logic [27:0] o_start_q;   // first column of the span, in beats
  logic [47:0] o_off_q;     // beats from the window's start
  logic [32:0] o_left_q;    // columns that remain, signed
  logic [8:0]  o_cols_q;    // columns of this job
  logic        o_skip_q, o_bad_q;
  logic [4:0]  o_beats, o_sent_q;
  logic [6:0]  o_words_q;   // words still to read
  logic        orv_q;       // the memory's output register holds a word of the job
  logic        o_grab, o_load, o_sub_last, wd_valid_q, wd_free;
  logic [1:0]  o_sub_q;
  logic [511:0] wd_q;

  assign o_beats    = 5'((o_cols_q + 9'd15) >> 4);
  assign wd_free    = !wd_valid_q || data_ready_i;
  assign o_sub_last = (V < 16) ? (o_sub_q == 2'(PARTS - 1)) : (o_sub_q == 2'(GATHER - 1));
  assign o_ren      = (o_state_q == O_DATA) && (o_words_q != '0) && (!orv_q || o_grab);
  assign o_end      = (o_state_q == O_END);
  always_comb begin
    o_grab = 1'b0;
    o_load = 1'b0;
    if (o_state_q == O_DATA) begin
      if (V < 16) begin
        o_grab = orv_q && (!o_sub_last || wd_free);
        o_load = o_grab && o_sub_last;
      end else begin
        o_load = wd_free && (orv_q || (o_sub_q != '0));
        o_grab = o_load && (o_sub_q == '0);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      o_state_q  <= O_IDLE;
      orv_q      <= 1'b0;
      wd_valid_q <= 1'b0;
    end else begin
      if (o_ren) orv_q <= 1'b1;
      else if (o_grab) orv_q <= 1'b0;
      if (o_load) wd_valid_q <= 1'b1;
      else if (data_ready_i) wd_valid_q <= 1'b0;
      unique case (o_state_q)
        // The memory's output register must be free of q_ beats.
        O_IDLE: if (j_valid_q && j_out_q && !ov_q) o_state_q <= O_SIZE;
        O_SIZE: o_state_q <= O_CHECK;
        O_CHECK: o_state_q <= O_JOB;
        O_JOB: begin
          if (o_skip_q || o_bad_q) o_state_q <= O_END;
          else if (job_ready_i) o_state_q <= O_DATA;
        end
        O_DATA: if (o_load && (o_sent_q + 5'd1 == o_beats)) o_state_q <= O_END;
        O_END: o_state_q <= O_IDLE;
        default: o_state_q <= O_IDLE;
      endcase
    end
  end

  logic [31:0] o_start;
  logic [9:0]  o_full;  // columns of a whole span
  logic [6:0]  o_words_up;
  assign o_words_up = (7'(o_beats) + 7'(GATHER - 1)) >> $clog2(GATHER);
  assign o_start = {16'b0, o_grp_q >> (3'(LW) + 3'(o_span_q))} << (4'd6 + 4'(o_span_q));
  assign o_full  = 10'd64 << o_span_q;

  always_ff @(posedge clk_i) begin
    if (j_take) begin
      o_grp_q    <= n_grp_q;
      o_tok_q    <= n_tok_q;
      o_span_q   <= u_span;
      o_ocols_q  <= u_ocols;
      o_ooff_q   <= u_ooff;
      o_stride_q <= u_ostride;
    end
    unique case (o_state_q)
      O_IDLE: begin
        o_start_q <= o_start[31:4];
        o_left_q  <= {1'b0, o_ocols_q} - {1'b0, o_start};
      end
      O_SIZE: begin
        // Rows come in order: the next one lies a stride behind.
        if (o_tok_q == '0) o_off_q <= 48'(o_ooff_q) + 48'(o_start_q);
        else o_off_q <= o_off_q + 48'(o_stride_q);
        o_skip_q <= o_left_q[32] || (o_left_q == '0);
        o_cols_q <= (o_left_q[31:0] >= 32'(o_full)) ? o_full[8:0] : o_left_q[8:0];
      end
      O_CHECK: begin
        o_bad_q   <= !o_skip_q && (o_off_q + 48'(o_beats) > 48'(out_limit_i));
        o_words_q <= (V <= 16) ? 7'(o_beats) * 7'(PARTS) : o_words_up;
        o_sent_q  <= '0;
        o_sub_q   <= '0;
      end
      O_DATA: begin
        if (o_ren) o_words_q <= o_words_q - 7'd1;
        if ((V < 16) ? o_grab : o_load) o_sub_q <= o_sub_last ? '0 : o_sub_q + 2'd1;
        if (o_load) o_sent_q <= o_sent_q + 5'd1;
      end
      default: ;
    endcase
  end

  // Four byte enables for each column of the last beat.
  function automatic [63:0] strobes(input logic [3:0] cols);
    for (int i = 0; i < 16; i++) strobes[4*i+:4] = {4{(cols == '0) || (4'(i) < cols)}};
  endfunction
  logic [57:0] o_addr_q;
  logic [63:0] o_strb_q;
  always_ff @(posedge clk_i) begin
    if (o_state_q == O_CHECK) begin
      o_addr_q <= out_base_i[63:6] + 58'(o_off_q);
      o_strb_q <= strobes(o_cols_q[3:0]);
    end
  end
  assign job_valid_o = (o_state_q == O_JOB) && !o_skip_q && !o_bad_q;
  assign job_addr_o  = {o_addr_q, 6'b0};
  assign job_beats_o = 16'(o_beats);
  assign job_strb_o  = o_strb_q;

  if (V < 16) begin : gen_join
    logic [511:V*32] asm_q;  // the beat's words so far
    always_ff @(posedge clk_i) begin
      if (o_grab && !o_load) asm_q <= (512 - V * 32)'({stg_rdata, asm_q} >> (V * 32));
      if (o_load) wd_q <= {stg_rdata, asm_q};
    end
  end else if (V == 16) begin : gen_whole
    always_ff @(posedge clk_i) begin
      if (o_load) wd_q <= stg_rdata;
    end
  end else begin : gen_split
    // rest_q holds the word's beats behind the first.
    logic [V*32-513:0] rest_q;
    always_ff @(posedge clk_i) begin
      if (o_load) rest_q <= (o_sub_q == '0) ? stg_rdata[V*32-1:512] : rest_q >> 512;
      if (o_load) wd_q <= (o_sub_q == '0) ? stg_rdata[511:0] : rest_q[511:0];
    end
  end
  assign data_valid_o = wd_valid_q;
  assign data_o       = wd_q;

  // ---- done -------------------------------------------------------------------------------------
  // Blocks and jobs are counted modulo 2^24 when they go out and when they are acknowledged; a
  // command is stored when the acknowledgements reach the count at its last unit.
  logic [23:0] blk_out_q, blk_ack_q, job_out_q, job_ack_q, blk_next;
  logic [23:0] mark_mem [0:7];
  logic [2:0]  mark_w_q, mark_r_q;
  logic [3:0]  mark_n_q, res_fin_q;
  logic        fr_res, fr_out, fr_empty, fr_none, reached, fr_done, mark_push;
  logic [23:0] fr_mark;
  // Only the sign counts.
  // verilator lint_off UNUSED
  logic [23:0] fr_ahead;
  // verilator lint_on UNUSED
  logic        job_fire;
  assign fr_res    = cfg_res_q[fr_q[2:0]];
  assign fr_out    = cfg_out_q[fr_q[2:0]];
  assign fr_empty  = cfg_empty_q[fr_q[2:0]];
  assign fr_none   = (fr_q == cur_q);
  assign job_fire  = job_valid_o && job_ready_i;
  assign blk_next  = blk_out_q + (j_two_q ? 24'(2 * BPU) : 24'(BPU));
  assign mark_push = unit_end && j_last_q;
  assign fr_mark   = mark_mem[mark_r_q];
  // Ahead of the mark, or at it, modulo 2^24.
  assign fr_ahead  = (fr_out ? job_ack_q : blk_ack_q) - fr_mark;
  assign reached   = (mark_n_q != '0) && !fr_ahead[23];
  assign fr_done   = !fr_none && (fr_empty || (fr_res ? (res_fin_q != '0) : reached));

  always_ff @(posedge clk_i) begin
    if (mark_push) mark_mem[mark_w_q] <= j_out_q ? job_out_q : blk_next;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fr_q      <= '0;
      done_o    <= 1'b0;
      blk_out_q <= '0;
      blk_ack_q <= '0;
      job_out_q <= '0;
      job_ack_q <= '0;
      mark_w_q  <= '0;
      mark_r_q  <= '0;
      mark_n_q  <= '0;
      res_fin_q <= '0;
    end else begin
      done_o <= fr_done;
      if (fr_done) fr_q <= fr_q + 4'd1;
      if (q_end) blk_out_q <= blk_next;
      blk_ack_q <= blk_ack_q + 24'(q_ack_i);
      job_out_q <= job_out_q + 24'(job_fire);
      job_ack_q <= job_ack_q + 24'(job_done_i);
      if (mark_push) mark_w_q <= mark_w_q + 3'd1;
      if (fr_done && !fr_empty && !fr_res) mark_r_q <= mark_r_q + 3'd1;
      mark_n_q  <= mark_n_q + 4'(mark_push) - 4'(fr_done && !fr_empty && !fr_res);
      res_fin_q <= res_fin_q + 4'(res_fin) - 4'(fr_done && !fr_empty && fr_res);
    end
  end

  // ---- errors and sticky flags ------------------------------------------------------------------
  logic        err_q, ovf_q, nan_q;
  logic [63:0] err_addr_q;
  function automatic is_nan(input logic [30:0] x);
    is_nan = (x[30:23] == 8'd255) && (x[22:0] != '0);
  endfunction
  logic [V-1:0] nan_lane_q;
  logic         nan_v_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      err_q   <= 1'b0;
      ovf_q   <= 1'b0;
      nan_q   <= 1'b0;
      nan_v_q <= 1'b0;
    end else begin
      err_q   <= (o_state_q == O_JOB) && o_bad_q;
      ovf_q   <= cvt_ovf || bias_ovf || mulc_ovf || muls_ovf || rot_ovf || res_ovf;
      nan_v_q <= v_q[K_DST];
      nan_q   <= nan_v_q && (nan_lane_q != '0);
    end
  end
  always_ff @(posedge clk_i) begin
    if (o_state_q == O_JOB) err_addr_q <= job_addr_o;
    if (v_q[K_DST]) begin
      for (int l = 0; l < V; l++) nan_lane_q[l] <= is_nan(val_q[32*l+:31]);
    end
  end
  assign err_valid_o  = err_q;
  assign err_code_o   = mr_pkg::DEVERR_WINDOW[7:0];
  assign err_addr_o   = err_addr_q;
  assign sticky_ovf_o = ovf_q;
  assign sticky_nan_o = nan_q;

endmodule
