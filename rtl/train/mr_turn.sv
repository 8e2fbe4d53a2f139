// SPDX-License-Identifier: Apache-2.0
// Quantises along the rows: each of V lanes is a column, and 32 rows of it are a block. What comes
// row by row leaves as V blocks of columns at once, bit for bit as mr_mxint8_quantise of
// host/cmodel/num.c.
//
// Parameters
//   V    lanes, at least 2
//   TAG  width of the tag
//
// in: valid/ready, a row's floats of V columns; in_last_i ends a set before its 32nd row, and the
// rows that are missing are zeros. in_tag_i is that of the set's last row. in_ready_o depends on
// registers alone.
// out: valid/ready, registered: the set's V blocks, lane c at c: out_data_o 32 elements of 8 bits,
// out_code_o their codes; out_tag_o.
//
// Timing: a row a cycle as long as sets are taken when they come; a set takes 32 cycles, however
// many rows it has, while the rows of the next one are taken. It is there 36 cycles after its last
// row was taken, if nothing was before it.
`include "mr_assert.svh"
module mr_turn #(
  parameter int V = 4,
  parameter int TAG = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [V*32-1:0]  in_data_i,
  input  logic             in_last_i,
  input  logic [TAG-1:0]   in_tag_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [V*256-1:0] out_data_o,
  output logic [V*8-1:0]   out_code_o,
  output logic [TAG-1:0]   out_tag_o
);

  localparam int ROWS = 32;
  localparam int C1 = mr_fp_pkg::QUANT_W;

  // ---- rows of two sets: t in a register, t+1 into the memory and into the codes ----------------
  logic [1:0]      sets_q;   // whose last row was taken, and that are not read to the end
  logic [1:0]      there_q;  // those that are in the memory with their codes, and are not begun
  logic            half_q;   // the set that rows go to
  logic [4:0]      row_q;
  logic            take, last;
  logic            w_q, w_first_q, w_last_q, w_half_q;
  logic [4:0]      w_row_q;
  logic [V*32-1:0] w_data_q;
  logic [TAG-1:0]  w_tag_q;
  // The place of a set that is read becomes free row by row.
  assign in_ready_o = !sets_q[1] || (!sets_q[0] && run_q && row_q < at_q);
  assign take       = in_valid_i && in_ready_o;
  assign last       = in_last_i || row_q == 5'(ROWS - 1);

  logic            start, done;  // a set is begun, its last row is read
  logic            read_q;       // the set that is read, or would be next
  logic            run_q;
  logic [4:0]      at_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sets_q  <= '0;
      there_q <= '0;
      half_q  <= 1'b0;
      row_q   <= '0;
      w_q     <= 1'b0;
    end else begin
      w_q <= take;
      if (take) row_q <= last ? '0 : row_q + 5'd1;
      if (take && last) half_q <= !half_q;
      sets_q <= sets_q + 2'(take && last) - 2'(done);
      for (int h = 0; h < 2; h++) begin
        if (w_q && w_last_q && w_half_q == 1'(h)) there_q[h] <= 1'b1;
        else if (start && read_q == 1'(h)) there_q[h] <= 1'b0;
      end
    end
    if (take) begin
      w_first_q <= row_q == '0;
      w_last_q  <= last;
      w_half_q  <= half_q;
      w_row_q   <= row_q;
      w_data_q  <= in_data_i;
      w_tag_q   <= in_tag_i;
    end
  end

  // Of each set the largest exponents, the last row and the tag.
  logic [V*8-1:0] code_q [0:1];
  logic [4:0]     end_q  [0:1];
  logic [TAG-1:0] tag_q  [0:1];
  always_ff @(posedge clk_i) begin
    if (w_q) begin
      for (int l = 0; l < V; l++) begin
        if (w_first_q || w_data_q[32*l+23+:8] > code_q[w_half_q][8*l+:8]) begin
          code_q[w_half_q][8*l+:8] <= w_data_q[32*l+23+:8];
        end
      end
      end_q[w_half_q] <= w_row_q;
      tag_q[w_half_q] <= w_tag_q;
    end
  end

  // ---- reading: a row a cycle, unless the set before is not taken -------------------------------
  logic            go, issue;
  logic [4:0]      last_row_q;
  logic [V*32-1:0] rdata;
  assign go    = !(out_valid_o && !out_ready_i);
  assign start = go && there_q[read_q] && at_q == '0;
  assign issue = go && (start || run_q);
  assign done  = issue && at_q == 5'(ROWS - 1);
  mr_ram_1r1w #(.W(V * 32), .DEPTH(2 * ROWS)) u_rows (
    .clk_i, .wen_i(w_q), .waddr_i({w_half_q, w_row_q}), .wdata_i(w_data_q),
    .ren_i(issue), .raddr_i({read_q, at_q}), .rdata_o(rdata)
  );

  // s0: the row is read; s1: aligned; s2: rounded, and shifted into its block.
  logic             v0_q, v1_q, last0_q, last1_q, zero0_q;
  logic [V*8-1:0]   code0_q, code1_q;
  logic [TAG-1:0]   tag0_q, tag1_q;
  logic [V*C1-1:0]  c1_q;
  logic [V*256-1:0] block_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_q       <= 1'b0;
      at_q        <= '0;
      read_q      <= 1'b0;
      v0_q        <= 1'b0;
      v1_q        <= 1'b0;
      out_valid_o <= 1'b0;
    end else if (go) begin
      if (start) run_q <= 1'b1;
      else if (done) run_q <= 1'b0;
      if (issue) at_q <= at_q + 5'd1;
      if (done) read_q <= !read_q;
      v0_q        <= issue;
      v1_q        <= v0_q;
      out_valid_o <= v1_q && last1_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (issue) begin
      last0_q <= done;
      zero0_q <= !start && at_q > last_row_q;
    end
    if (start) begin
      last_row_q <= end_q[read_q];
      code0_q    <= code_q[read_q];
      tag0_q     <= tag_q[read_q];
    end
    if (go && v0_q) begin
      last1_q <= last0_q;
      code1_q <= code0_q;
      tag1_q  <= tag0_q;
      for (int l = 0; l < V; l++) begin
        c1_q[C1*l+:C1] <= mr_fp_pkg::quant_s1(
            zero0_q ? 32'd0 : rdata[32*l+:32], code0_q[8*l+:8]);
      end
    end
    if (go && v1_q) begin
      for (int l = 0; l < V; l++) begin
        block_q[256*l+:256] <= {mr_fp_pkg::quant_s2(c1_q[C1*l+:C1]), block_q[256*l+8+:248]};
      end
      if (last1_q) begin
        out_code_o <= code1_q;
        out_tag_o  <= tag1_q;
      end
    end
  end
  assign out_data_o = block_q;

`ifndef FORMAL  // no proof relies on it
  `MR_ASSERT_STABLE(in, in_valid_i, in_ready_o, {in_data_i, in_last_i, in_tag_i})
`endif
  `MR_ASSERT_STABLE(out, out_valid_o, out_ready_i, {out_code_o, out_tag_o})
  `MR_ASSERT_COUNT(sets, sets_q, take && last, done, 3)

`ifdef FORMAL
  `include "mr_turn_props.svh"
`endif

endmodule
