// SPDX-License-Identifier: Apache-2.0
// Probabilities times values of one channel: 64 multiply-adds a step into a memory of 64 x 48-bit
// accumulators per word, and the way of the sums to the drain.
//
// acc += ((p * v) << 12) >>> min(38, pm - ev), floor. A word is {row, word of the row's head
// group}.
//
// Parameters
//   V     lanes of the drain (divides 64)
//   AA    address bits of the accumulator memory
//
// There are two forms with the same bits in the same cycles. The portable one shifts each product.
// Where there are DSP48E2 (mr_tech_pkg), with multipliers of 27 bits, the probability is shifted
// left by 0..10 before it is multiplied, once for 32 lanes, and each product right by a multiple of
// 11, which is one LUT a bit instead of three; and mr_dot_add adds the terms up.
//
// Timing: pre_valid_i with st_pm_i and st_vcode_i one cycle before the step they belong to. Other
// st_* in one cycle, a step a cycle; the sum is in the memory 3 cycles later. The same
// word must not come in two consecutive cycles (in between there is always a scale beat), two
// cycles apart is right. Drain: dr_step_i in t (with dr_load_i: a new word at dr_addr_i; without:
// the next V values of the word), dr_o in t+2 has the V accumulators. No steps while draining.
module mr_attn_pv #(
  parameter int V = 4,
  parameter int AA = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            pre_valid_i,  // a step follows
  input  logic            st_valid_i,
  input  logic            st_first_i,  // first position: starts the sum
  input  logic [AA-1:0]   st_addr_i,
  input  logic [511:0]    st_v_i,
  input  logic [15:0]     st_vcode_i,
  input  logic [15:0]     st_pm_i,
  input  logic [15:0]     st_p_i,
  output logic            busy_o,      // steps inside
  input  logic            dr_step_i,
  input  logic            dr_load_i,
  input  logic [AA-1:0]   dr_addr_i,
  output logic [V*48-1:0] dr_o
);
  /*verilator no_inline_module*/

  function automatic logic [5:0] clamp38(input logic [7:0] pm, input logic [7:0] ev);
    logic [7:0] s;
    begin
      s = pm - ev;
      clamp38 = (s > 8'd38) ? 6'd38 : s[5:0];
    end
  endfunction

  logic s3_v_q, s4_v_q, s3_first_q, s4_first_q;
  logic [AA-1:0] s3_addr_q, s4_addr_q;
  // Accumulator of lane k: low half in bits [32k +: 32], high half in [2048 + 16k +: 16]: aligned
  // slices are what the simulator is fast at; hardware does not mind.
  logic [3071:0] mem [0:(1<<AA)-1];
  logic [3071:0] rd_q;
  logic dr_step_q, dr_load_q;

  assign busy_o = st_valid_i || s3_v_q || s4_v_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s3_v_q    <= 1'b0;
      s4_v_q    <= 1'b0;
      dr_step_q <= 1'b0;
    end else begin
      s3_v_q    <= st_valid_i;
      s4_v_q    <= s3_v_q;
      dr_step_q <= dr_step_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (st_valid_i) begin
      s3_first_q <= st_first_i;
      s3_addr_q  <= st_addr_i;
    end
    if (s3_v_q) begin
      s4_first_q <= s3_first_q;
      s4_addr_q  <= s3_addr_q;
    end
  end

  if (mr_tech_pkg::Have != 0) begin : gen_wide
    // floor(p * v * 2^12 / 2^s) = floor((p * 2^f) * v * 2^2 / 2^(11 c)), f = 10 - s + 11 c. {c, f}:
    function automatic logic [5:0] split(input logic [5:0] s);
      // Modulo 16, which is enough for f.
      if (s > 6'd32) split = {2'd3, 4'd11 - s[3:0]};
      else if (s > 6'd21) split = {2'd2, 4'd0 - s[3:0]};
      else if (s > 6'd10) split = {2'd1, 4'd5 - s[3:0]};
      else split = {2'd0, 4'd10 - s[3:0]};
    endfunction
    function automatic logic signed [26:0] left(input logic [15:0] p, input logic [3:0] f);
      left = $signed({11'd0, p} << f);
    endfunction
    function automatic logic signed [47:0] right(input logic signed [34:0] prod,
                                                 input logic [1:0] c);
      if (c[1]) right = c[0] ? 48'($signed(prod[34:31])) : 48'($signed(prod[34:20]));
      else right = c[0] ? 48'($signed(prod[34:9])) : 48'($signed({prod, 2'd0}));
    endfunction

    logic [5:0] cf0_q, cf1_q;
    logic [1:0] c0_q, c1_q;
    logic signed [26:0] p0, p1;
    logic signed [34:0] prod_q [0:63];
    assign p0 = left(st_p_i, cf0_q[3:0]);
    assign p1 = left(st_p_i, cf1_q[3:0]);
    always_ff @(posedge clk_i) begin
      if (pre_valid_i) begin
        cf0_q <= split(clamp38(st_pm_i[7:0], st_vcode_i[7:0]));
        cf1_q <= split(clamp38(st_pm_i[15:8], st_vcode_i[15:8]));
      end
      if (st_valid_i) begin
        for (int k = 0; k < 32; k++) begin
          prod_q[k]    <= p0 * $signed(st_v_i[8*k+:8]);
          prod_q[32+k] <= p1 * $signed(st_v_i[256+8*k+:8]);
        end
        c0_q <= cf0_q[5:4];
        c1_q <= cf1_q[5:4];
      end
    end

    logic [3071:0] word;
    for (genvar k = 0; k < 64; k++) begin : gen_add
      mr_dot_add u_add (
        .clk_i,
        .v_i    (s3_v_q),
        .first_i(s4_first_q),
        .sum_i  ({rd_q[2048+16*k+:16], rd_q[32*k+:32]}),
        .term_i (right(prod_q[k], (k < 32) ? c0_q : c1_q)),
        .sum_o  ({word[2048+16*k+:16], word[32*k+:32]})
      );
    end
    always_ff @(posedge clk_i) begin
      if (s4_v_q) mem[s4_addr_q] <= word;
    end
  end else begin : gen_portable
    function automatic logic signed [63:0] align(input logic signed [31:0] prod,
                                                 input logic [5:0] sh);
      logic signed [63:0] x;
      begin
        x = {{20{prod[31]}}, prod, 12'd0};
        align = x >>> sh;
      end
    endfunction

    logic [5:0] pre0_q, pre1_q, sh0_q, sh1_q;
    logic signed [31:0] prod_q [0:63];
    logic signed [63:0] term_q [0:63];  // 64 bits: no masks in the simulator, trimmed by synthesis
    always_ff @(posedge clk_i) begin
      if (pre_valid_i) begin
        pre0_q <= clamp38(st_pm_i[7:0], st_vcode_i[7:0]);
        pre1_q <= clamp38(st_pm_i[15:8], st_vcode_i[15:8]);
      end
      if (st_valid_i) begin
        for (int k = 0; k < 64; k++)
          prod_q[k] <= $signed({1'b0, st_p_i}) * $signed(st_v_i[8*k+:8]);
        sh0_q <= pre0_q;
        sh1_q <= pre1_q;
      end
      if (s3_v_q) begin
        for (int k = 0; k < 32; k++) begin
          term_q[k]    <= align(prod_q[k], sh0_q);
          term_q[32+k] <= align(prod_q[32+k], sh1_q);
        end
      end
    end

    // The addition, with blocking assignments to `word` alone (one wide write).
    logic [3071:0] word;
    logic [47:0] acc;
    always_ff @(posedge clk_i) begin
      if (s4_v_q) begin
        /* verilator lint_off BLKSEQ */  // temporaries of this block
        for (int k = 0; k < 64; k++) begin
          acc = {rd_q[2048+16*k+:16], rd_q[32*k+:32]};
          // The carry chain takes the term as it is; clearing the sum is a LUT a bit of its own.
          acc = term_q[k][47:0] + (s4_first_q ? 48'd0 : acc);
          word[32*k+:32] = acc[31:0];
          word[2048+16*k+:16] = acc[47:32];
        end
        /* verilator lint_on BLKSEQ */
        mem[s4_addr_q] <= word;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (s3_v_q || (dr_step_i && dr_load_i)) rd_q <= mem[s3_v_q ? s3_addr_q : dr_addr_i];
  end

  // ---- drain: V values at a time of the word that was read ----
  localparam int Groups = 64 / V;
  localparam int GW = (Groups > 1) ? $clog2(Groups) : 1;
  logic [GW-1:0] group_q, group;
  logic [32*V-1:0] out_lo_q;
  logic [16*V-1:0] out_hi_q;
  assign group = dr_load_q ? '0 : group_q;
  always_ff @(posedge clk_i) begin
    if (dr_step_i) dr_load_q <= dr_load_i;
    if (dr_step_q) begin
      group_q  <= group + 1'b1;
      out_lo_q <= rd_q[32*V*32'(group)+:32*V];
      out_hi_q <= rd_q[2048+16*V*32'(group)+:16*V];
    end
  end

  for (genvar i = 0; i < V; i++) begin : gen_out
    assign dr_o[48*i+:48] = {out_hi_q[16*i+:16], out_lo_q[32*i+:32]};
  end

endmodule
