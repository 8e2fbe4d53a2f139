// SPDX-License-Identifier: Apache-2.0
// The sections of both streams that are being made, on the chip: two patches down their columns,
// two rows of tiles along their rows. mr_update_blocks writes them, in any order; here they are
// read as memory has them: a beat of scale codes and two beats for each block.
//
// dn_, al_  as mr_update_blocks gives them
// start_i   under ready_o alone: the section of group_i in buffer buf_i, of blocks_i blocks, down
//           or along. ready_o: the one before has been read; idle_o: it has left, too
// codes_valid_o  pulse: codes_o, the section's codes, zeros behind the last block
// data_     valid/ready: 1 + 2 blocks_i beats, from registers
module mr_update_sections #(
  parameter int LANES = 2,
  localparam int BANKS = (LANES > 2) ? LANES / 2 : 1,
  localparam int COLS = (LANES > 1) ? 2 : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    dn_wen_i,
  // With two banks the pair says which.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [12:0]             dn_addr_i,
  input  logic [5:0]              dn_row_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [8*COLS*BANKS-1:0] dn_data_i,
  input  logic                    al_wen_i,
  input  logic [8:0]              al_addr_i,
  input  logic                    al_half_i,
  input  logic [255:0]            al_data_i,
  input  logic                    dn_code_wen_i,
  input  logic [7:0]              dn_code_addr_i,
  input  logic [3:0]              dn_code_block_i,
  input  logic [31:0]             dn_code_i,
  input  logic                    al_code_wen_i,
  input  logic [3:0]              al_code_addr_i,
  input  logic [3:0]              al_code_block_i,
  input  logic [1:0]              al_code_row_i,
  input  logic [7:0]              al_code_i,

  input  logic                    start_i,
  output logic                    ready_o,
  output logic                    idle_o,
  input  logic                    down_i,
  input  logic                    buf_i,
  input  logic [6:0]              group_i,
  input  logic [4:0]              blocks_i,
  output logic                    codes_valid_o,
  output logic [511:0]            codes_o,
  output logic                    data_valid_o,
  input  logic                    data_ready_i,
  output logic [511:0]            data_o
);

  // ---- which beat is read -----------------------------------------------------------------------
  logic       busy_q, down_q, buf_q, codes_q, ren, last;
  logic [6:0] group_q;
  logic [4:0] blocks_q;
  logic [4:0] beat_q;  // of elements
  logic       rd_valid_q, rd_codes_q, rd_down_q, rd_ready;
  logic       rd_pair_q;
  assign last    = !codes_q && beat_q == {blocks_q[3:0] - 4'd1, 1'b1};
  assign ren     = busy_q && (!rd_valid_q || rd_ready);
  assign ready_o = !busy_q;
  assign idle_o  = !busy_q && !rd_valid_q && !data_valid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q        <= 1'b0;
      rd_valid_q    <= 1'b0;
      codes_valid_o <= 1'b0;
    end else begin
      busy_q        <= start_i || (busy_q && !(ren && last));
      rd_valid_q    <= ren || (rd_valid_q && !rd_ready);
      codes_valid_o <= rd_valid_q && rd_ready && rd_codes_q;
    end
    if (start_i) begin
      down_q   <= down_i;
      buf_q    <= buf_i;
      group_q  <= group_i;
      blocks_q <= blocks_i;
      codes_q  <= 1'b1;
      beat_q   <= '0;
    end else if (ren) begin
      codes_q <= 1'b0;
      if (!codes_q) beat_q <= beat_q + 5'd1;
    end
    if (ren) begin
      rd_codes_q <= codes_q;
      rd_down_q  <= down_q;
      rd_pair_q  <= beat_q[0];
    end
  end

  // ---- down: bytes of a column each -------------------------------------------------------------
  logic [511:0]       dn_data, al_data, dn_codes, al_codes;
  logic [512*BANKS-1:0] dn_all;
  for (genvar b = 0; b < BANKS; b++) begin : gen_bank
    logic [63:0]  wen;
    logic [511:0] wdata;
    always_comb begin
      for (int k = 0; k < 32; k++) begin
        wen[k]             = dn_wen_i && dn_row_i[4:0] == 5'(k) && !dn_row_i[5];
        wen[32+k]          = dn_wen_i && dn_row_i[4:0] == 5'(k) && (COLS == 2 || dn_row_i[5]);
        wdata[8*k+:8]      = dn_data_i[8*COLS*b+:8];
        wdata[256+8*k+:8]  = dn_data_i[8*(COLS*b+COLS-1)+:8];
      end
    end
    if (BANKS == 1) begin : gen_all
      mr_ram_1r1w #(
        .W    (512),
        .DEPTH(8192),
        .WE_W (8)
      ) u_ram (
        .clk_i,
        .wen_i  (wen),
        .waddr_i(dn_addr_i),
        .wdata_i(wdata),
        .ren_i  (ren && down_q && !codes_q),
        .raddr_i({buf_q, group_q, beat_q}),
        .rdata_o(dn_all)
      );
    end else begin : gen_pair
      mr_ram_1r1w #(
        .W    (512),
        .DEPTH(4096),
        .WE_W (8)
      ) u_ram (
        .clk_i,
        .wen_i  (wen),
        .waddr_i(dn_addr_i[12:1]),
        .wdata_i(wdata),
        .ren_i  (ren && down_q && !codes_q && beat_q[0] == 1'(b)),
        .raddr_i({buf_q, group_q, beat_q[4:1]}),
        .rdata_o(dn_all[512*b+:512])
      );
    end
  end
  assign dn_data = rd_pair_q ? dn_all[512*BANKS-1-:512] : dn_all[511:0];

  logic [15:0] dn_code_wen;
  logic [63:0] al_code_wen;
  assign dn_code_wen = {15'd0, dn_code_wen_i} << dn_code_block_i;
  assign al_code_wen = {63'd0, al_code_wen_i} << {al_code_block_i, al_code_row_i};
  mr_ram_1r1w #(
    .W    (512),
    .DEPTH(256),
    .WE_W (32)
  ) u_dn_codes (
    .clk_i,
    .wen_i  (dn_code_wen),
    .waddr_i(dn_code_addr_i),
    .wdata_i({16{dn_code_i}}),
    .ren_i  (ren && down_q && codes_q),
    .raddr_i({buf_q, group_q}),
    .rdata_o(dn_codes)
  );

  // ---- along: half a beat at once ---------------------------------------------------------------
  mr_ram_1r1w #(
    .W    (512),
    .DEPTH(512),
    .WE_W (256)
  ) u_along (
    .clk_i,
    .wen_i  ({al_wen_i && al_half_i, al_wen_i && !al_half_i}),
    .waddr_i(al_addr_i),
    .wdata_i({2{al_data_i}}),
    .ren_i  (ren && !down_q && !codes_q),
    .raddr_i({buf_q, group_q[2:0], beat_q}),
    .rdata_o(al_data)
  );
  mr_ram_1r1w #(
    .W    (512),
    .DEPTH(16),
    .WE_W (8)
  ) u_al_codes (
    .clk_i,
    .wen_i  (al_code_wen),
    .waddr_i(al_code_addr_i),
    .wdata_i({64{al_code_i}}),
    .ren_i  (ren && !down_q && codes_q),
    .raddr_i({buf_q, group_q[2:0]}),
    .rdata_o(al_codes)
  );

  // ---- out --------------------------------------------------------------------------------------
  logic [511:0] codes, beat;
  always_comb begin
    for (int k = 0; k < 16; k++) begin
      codes[32*k+:32] = 5'(k) >= blocks_q ? '0 : rd_down_q ? dn_codes[32*k+:32] :
                                                             al_codes[32*k+:32];
    end
  end
  assign beat = rd_codes_q ? codes : rd_down_q ? dn_data : al_data;
  always_ff @(posedge clk_i) begin
    if (rd_valid_q && rd_ready && rd_codes_q) codes_o <= codes;
  end
  mr_update_slice u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (rd_valid_q),
    .in_ready_o (rd_ready),
    .in_data_i  (beat),
    .out_valid_o(data_valid_o),
    .out_ready_i(data_ready_i),
    .out_data_o (data_o)
  );
endmodule
