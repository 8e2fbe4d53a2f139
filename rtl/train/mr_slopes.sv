// SPDX-License-Identifier: Apache-2.0
// Functions' slopes between MATMUL's epilogue and the rows window: KEEP_SLOPE writes them, SLOPE
// reads them. In the order of the array's drain they are one run of words of V x 16 bits, so each
// way is a buffer of beats and a width converter.
//
// Commands are worked on one after the other: what one writes is there before the next one reads.
//
// Parameters: N as everywhere.
//
// Ports
//   cmd_     a MATMUL with KEEP_SLOPE or SLOPE, and its rows; at most eight are not done
//   take_i   a beat of KEEP_SLOPE is taken from the array, if room_o; x_valid_i later, in the same
//            order: what enters the function x_fn_i
//   use_i    a beat of SLOPE is taken from the array, if has_o; pop_i later, in the same order: f_o
//            has its slopes two cycles after it
//   done_o   pulse: all of a KEEP_SLOPE is written. busy_o: a command is inside
//   base_i   the rows window; what is read and written lies in it (mr_legal)
//   rd_      a client of mr_host_port; job_, data_   a client of its writer
// Timing: a beat a cycle both ways, as long as the host's port keeps up, 16 beats at a time.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_slopes #(
  parameter int N = 1,
  localparam int V = 4 * N
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            cmd_valid_i,
  // Bits of a command that have no meaning here.
  // verilator lint_off UNUSED
  input  logic [511:0]    cmd_i,
  // verilator lint_on UNUSED
  input  logic [15:0]     cmd_rows_i,

  input  logic            take_i,
  output logic            room_o,
  input  logic            x_valid_i,
  input  logic [V*32-1:0] x_i,
  input  logic [1:0]      x_fn_i,
  input  logic            use_i,
  output logic            has_o,
  input  logic            pop_i,
  output logic [V*32-1:0] f_o,
  output logic            done_o,
  output logic            busy_o,

  input  logic [63:0]     base_i,
  `MR_RD_M(rd_, 1),
  `MR_WR_M(, 1)
);

  localparam int PARTS = 32 / V;  // words of a beat
  localparam int DEPTH = 64;      // beats of the buffer
  localparam int CHUNK = 16;      // of a job and of a request
  localparam int WW = $clog2(DEPTH * PARTS + 1);

  // ---- commands ---------------------------------------------------------------------------------
  localparam int CMD_W = 1 + 32 + 16 + 16;
  logic        c_valid, c_keep, start;
  logic [31:0] c_off;
  logic [15:0] c_blocks, c_rows;
  logic [3:0]  c_count;
  // verilator lint_off UNUSED
  logic        unused_ready;  // there is room
  // verilator lint_on UNUSED
  mr_fifo #(.W(CMD_W), .DEPTH(8)) u_cmds (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(cmd_valid_i), .in_ready_o(unused_ready),
    .in_data_i({cmd_i[mr_pkg::MATMUL_KEEP_SLOPE_LSB], cmd_i[mr_pkg::MATMUL_SLOPE_OFF_LSB+:32],
                cmd_i[mr_pkg::MATMUL_COLS_LSB+5+:16], cmd_rows_i}),
    .out_valid_o(c_valid), .out_ready_i(start), .out_data_o({c_keep, c_off, c_blocks, c_rows}),
    .count_o(c_count)
  );

  localparam logic [2:0] S_IDLE = 3'd0, S_SIZE = 3'd1, S_NEXT = 3'd2, S_ASK = 3'd3, S_MOVE = 3'd4,
                         S_ACK = 3'd5;
  logic [2:0]  state_q;
  logic        keep_q, gone, moved, moved_all, last, fits;
  logic        give_q;           // S_MOVE of KEEP_SLOPE: before its job is taken no beat goes
  logic [63:0] addr_q;
  logic [31:0] left_q;
  logic [15:0] rows_q, blocks_q;
  logic [4:0]  n_q, n, to_move_q;
  logic [6:0]  count;
  assign start  = state_q == S_IDLE && c_valid;
  assign n      = (left_q[31:4] != '0) ? 5'(CHUNK) : {1'b0, left_q[3:0]};
  assign last   = left_q == '0;
  assign fits   = keep_q ? count >= 7'(n) : count <= 7'(DEPTH - CHUNK);
  assign gone      = data_valid_o && data_ready_i;
  assign moved     = keep_q ? gone : rd_data_valid_i;
  assign moved_all = state_q == S_MOVE && moved && to_move_q == 5'd1;
  assign busy_o = cmd_valid_i || c_count != '0 || state_q != S_IDLE || done_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= S_IDLE;
      done_o      <= 1'b0;
      rd_valid_o  <= 1'b0;
      job_valid_o <= 1'b0;
      give_q      <= 1'b0;
    end else begin
      done_o <= 1'b0;
      if (rd_ready_i) rd_valid_o <= 1'b0;
      if (job_ready_i) job_valid_o <= 1'b0;
      case (state_q)
        S_IDLE: if (c_valid) state_q <= S_SIZE;
        S_SIZE: state_q <= S_NEXT;
        S_NEXT: begin
          if (!last) begin
            if (fits) begin
              state_q     <= S_ASK;
              rd_valid_o  <= !keep_q;
              job_valid_o <= keep_q;
            end
          end else if (keep_q || count == '0) begin
            state_q <= S_IDLE;
            done_o  <= keep_q;
          end
        end
        S_ASK: begin
          state_q <= S_MOVE;
          give_q  <= keep_q;
        end
        S_MOVE: if (moved_all) begin
          state_q <= keep_q ? S_ACK : S_NEXT;
          give_q  <= 1'b0;
        end
        default: if (job_done_i) state_q <= S_NEXT;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) begin
      keep_q   <= c_keep;
      addr_q   <= base_i + {26'd0, c_off, 6'd0};
      rows_q   <= c_rows;
      blocks_q <= c_blocks;
    end
    if (state_q == S_SIZE) left_q <= {16'd0, rows_q} * {16'd0, blocks_q};
    if (state_q == S_NEXT) n_q <= n;
    if (state_q == S_ASK) begin
      to_move_q <= n_q;
      left_q    <= left_q - 32'(n_q);
    end
    if (moved_all) addr_q <= addr_q + {53'd0, n_q, 6'd0};
    if (state_q == S_MOVE && moved) to_move_q <= to_move_q - 5'd1;
  end
  assign rd_addr_o   = addr_q;
  assign rd_beats_o  = 16'(n_q);
  assign job_addr_o  = addr_q;
  assign job_beats_o = 16'(n_q);
  assign job_strb_o  = '1;

  // ---- slopes of what enters a function, to beats ---------------------------------------------
  logic            e_valid, k_valid;
  logic [V*16-1:0] e;
  logic [511:0]    k_data;
  // verilator lint_off UNUSED
  logic            unused_k_ready, unused_b_ready;  // room_o and fits see to it
  // verilator lint_on UNUSED
  mr_vslope #(.LANES(V)) u_slope (
    .clk_i, .rst_ni, .valid_i(x_valid_i), .fn_i(x_fn_i), .x_i, .valid_o(e_valid), .e_o(e)
  );
  mr_width #(.IN(V * 16), .OUT(512)) u_join (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(e_valid), .in_ready_o(unused_k_ready), .in_data_i(e),
    .out_valid_o(k_valid), .out_ready_i(1'b1), .out_data_o(k_data)
  );

  // ---- the buffer, of either way ----------------------------------------------------------------
  logic          b_valid, b_ready, s_ready;
  logic [511:0]  b_data;
  logic [WW-1:0] room_q, has_q;  // words; room_o, has_o: whether there are any
  assign b_ready      = keep_q ? give_q && data_ready_i : s_ready;
  assign data_valid_o = give_q && b_valid;
  assign data_o       = b_data;
  mr_fifo #(.W(512), .DEPTH(DEPTH)) u_beats (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(k_valid || rd_data_valid_i), .in_ready_o(unused_b_ready),
    .in_data_i(k_valid ? k_data : rd_data_i),
    .out_valid_o(b_valid), .out_ready_i(b_ready), .out_data_o(b_data), .count_o(count)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      room_q <= WW'(DEPTH * PARTS);
      has_q  <= '0;
      room_o <= 1'b1;
      has_o  <= 1'b0;
    end else begin
      room_q <= room_q - WW'(take_i) + (gone ? WW'(PARTS) : '0);
      has_q  <= has_q - WW'(use_i) + (rd_data_valid_i ? WW'(PARTS) : '0);
      // take_i and use_i come late, and ask for these.
      room_o <= gone || room_q > WW'(1) || (room_q[0] && !take_i);
      has_o  <= rd_data_valid_i || has_q > WW'(1) || (has_q[0] && !use_i);
    end
  end

  // ---- beats to floats --------------------------------------------------------------------------
  logic            unused_s_valid, pop_q;
  logic [V*16-1:0] s;
  mr_width #(.IN(512), .OUT(V * 16)) u_split (
    .clk_i, .rst_ni, .clear_i(1'b0),
    .in_valid_i(b_valid && !keep_q), .in_ready_o(s_ready), .in_data_i(b_data),
    .out_valid_o(unused_s_valid), .out_ready_i(pop_i), .out_data_o(s)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) pop_q <= 1'b0;
    else pop_q <= pop_i;
  end

  // {sign, 127 - places, fraction} of a size of 15 bits, 14 of them fraction.
  function automatic [31:0] float_of(input logic sign, input logic [14:0] size);
    logic [4:0]  places;
    logic [23:0] y;
    begin
      {places, y} = mr_fp_pkg::norm25({size, 10'd0}, mr_fp_pkg::zeros24({size, 9'd0}));
      float_of = y[23] ? {sign, 8'd127 - 8'(places), y[22:0]} : 32'd0;
    end
  endfunction
  for (genvar l = 0; l < V; l++) begin : gen_lane
    logic        nan_q, sign_q;
    logic [14:0] size_q;
    always_ff @(posedge clk_i) begin
      if (pop_i) begin
        nan_q  <= s[16*l+:16] == 16'h8000;
        sign_q <= s[16*l+15];
        size_q <= s[16*l+15] ? 15'd0 - s[16*l+:15] : s[16*l+:15];
      end
      if (pop_q) f_o[32*l+:32] <= nan_q ? mr_fp_pkg::QNAN : float_of(sign_q, size_q);
    end
  end

  `MR_ASSERT(state, state_q <= S_ACK)
  `MR_ASSERT_COUNT(room, room_q, gone ? PARTS : 0, take_i, DEPTH * PARTS)
  `MR_ASSERT_COUNT(has, has_q, rd_data_valid_i ? PARTS : 0, use_i, (DEPTH + 1) * PARTS)
  `MR_ASSERT(way, !k_valid || !rd_data_valid_i)

endmodule
