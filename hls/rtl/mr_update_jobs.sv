// SPDX-License-Identifier: Apache-2.0
// The list of jobs: fetches them (struct mr_update_job of hls/millrace_update.h, two beats each),
// looks whether they make sense, and hands each to the loader of tiles and to the writer of
// streams, in order.
//
// start_i   pulse, while idle_o: takes base_i (in beats) and count_i
// req_, data_  a client of mr_hostrd: as many jobs under way as there is room for
// load_, put_  valid/ready, layouts of mr_update_pkg; both get every job
// bad_o     pulse, with bad_at_o: a job that makes no sense; it and what follows go nowhere, until
//           reset
// idle_o    every job has been taken by both
// All outputs come from registers, but for data in FIFOs' memories.
module mr_update_jobs #(
  parameter int DEPTH = 8
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             start_i,
  input  logic [57:0]                      base_i,
  input  logic [31:0]                      count_i,

  output logic                             req_valid_o,
  input  logic                             req_ready_i,
  output logic [63:0]                      req_addr_o,
  output logic [15:0]                      req_beats_o,
  input  logic                             data_valid_i,
  input  logic                             data_last_i,
  input  logic [511:0]                     data_i,

  output logic                             load_valid_o,
  input  logic                             load_ready_i,
  output logic [mr_update_pkg::LOAD_W-1:0] load_o,
  output logic                             put_valid_o,
  input  logic                             put_ready_i,
  output logic [mr_update_pkg::PUT_W-1:0]  put_o,

  output logic                             bad_o,
  output logic [57:0]                      bad_at_o,
  output logic                             idle_o
);

  localparam int CW = $clog2(DEPTH + 1);

  // ---- requests ---------------------------------------------------------------------------------
  logic [57:0]   next_q;
  logic [31:0]   left_q;
  logic          more_q;  // left_q is not zero
  logic          request;
  logic [CW-1:0] load_room_q, put_room_q;
  assign req_valid_o = more_q && load_room_q != '0 && put_room_q != '0;
  assign req_addr_o  = {next_q, 6'd0};
  assign req_beats_o = 16'd2;
  assign request     = req_valid_o && req_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      more_q      <= 1'b0;
      load_room_q <= CW'(DEPTH);
      put_room_q  <= CW'(DEPTH);
    end else begin
      if (start_i) more_q <= count_i != '0;
      else if (request) more_q <= left_q != 32'd1;
      if (request != (load_valid_o && load_ready_i)) begin
        load_room_q <= request ? load_room_q - CW'(1) : load_room_q + CW'(1);
      end
      if (request != (put_valid_o && put_ready_i)) begin
        put_room_q <= request ? put_room_q - CW'(1) : put_room_q + CW'(1);
      end
    end
    if (start_i) begin
      next_q <= base_i;
      left_q <= count_i;
    end else if (request) begin
      next_q <= next_q + 58'd2;
      left_q <= left_q - 32'd1;
    end
  end
  assign idle_o = !more_q && load_room_q == CW'(DEPTH) && put_room_q == CW'(DEPTH);

  // ---- a job, when its second beat is there -----------------------------------------------------
  logic [511:0]  first_q;
  // Fields have bits to spare, which the check below looks at or which mean nothing.
  // verilator lint_off UNUSEDSIGNAL
  logic [1023:0] job_q;
  // verilator lint_on UNUSEDSIGNAL
  logic          come_q, judged_q;
  logic [57:0]   at_q;  // the job that comes next
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      come_q   <= 1'b0;
      judged_q <= 1'b0;
    end else begin
      come_q   <= data_valid_i && data_last_i;
      judged_q <= come_q;
    end
    if (data_valid_i && !data_last_i) first_q <= data_i;
    if (data_valid_i && data_last_i) job_q <= {data_i, first_q};
    if (start_i) at_q <= base_i;
    else if (judged_q) at_q <= at_q + 58'd2;
  end

  logic [31:0] kind, unit, rows, cols;
  assign kind = job_q[31:0];
  assign unit = job_q[95:64];
  assign rows = job_q[127:96];
  assign cols = job_q[159:128];

  // Above what mr_update_put takes; what it gets. Each looks at its bits alone.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic too_large(input logic [319:0] s);
    too_large = (|s[95:88]) || (|s[127:120]) || (|s[159:152]) || (|s[191:184]) ||
                (|s[223:202]) || (|s[255:240]) || s[224] || s[225] || (|s[287:257]);
  endfunction
  function automatic logic [mr_update_pkg::SIDE_W-1:0] side(input logic [319:0] s);
    side = {s[256], s[239:226], s[201:192], s[183:160], s[151:128], s[119:96], s[87:64], s[57:0]};
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Sizes of each kind, then which one it is.
  logic       sides_q, large_q, empty_q, tiles_q, beats_q, one_q, patch_q, bad, is_bad_q;
  logic [2:0] kind_q;
  always_ff @(posedge clk_i) begin
    sides_q <= too_large(job_q[703:384]) || too_large(job_q[1023:704]);
    large_q <= rows[31:10] != '0 || cols[31:20] != '0;
    empty_q <= cols == '0;
    one_q   <= rows[9:0] == 10'd1;
    tiles_q <= rows[4:0] == '0 && cols[5:0] == '0;
    beats_q <= cols[3:0] == '0 && rows != '0;
    patch_q <= (rows[9:0] <= 10'd512) && (cols[19:0] <= 20'd512);
    kind_q  <= {kind[31:2] != '0, kind[1:0]};
  end
  always_comb begin
    bad = sides_q || large_q || empty_q || kind_q[2];
    unique case (kind_q[1:0])
      mr_update_pkg::TABLE:  bad = bad || !beats_q;
      mr_update_pkg::PATCH:  bad = bad || !beats_q || !tiles_q || !patch_q;
      mr_update_pkg::VECTOR: bad = bad || !beats_q || !one_q;
      default:               bad = bad || !tiles_q;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) is_bad_q <= 1'b0;
    else if (judged_q && bad) is_bad_q <= 1'b1;
    bad_o <= rst_ni && judged_q && bad && !is_bad_q;
    if (judged_q && !is_bad_q) bad_at_o <= at_q;
  end

  // Beyond 400 either way a number is zero or infinite, as at 400.
  logic signed [31:0] exact;
  logic [15:0]        unit_q;
  logic               decays_q;
  assign exact = $signed(unit);
  always_ff @(posedge clk_i) begin
    unit_q   <= exact > 400 ? 16'd400 : exact < -400 ? -16'd400 : unit[15:0];
    decays_q <= job_q[63:32] != '0;
  end

  // ---- FIFOs: room for every job that was asked for ---------------------------------------------
  logic push, unused_load_ready, unused_put_ready;
  logic [CW-1:0] unused_load, unused_put;
  logic [mr_update_pkg::LOAD_W-1:0] load;
  logic [mr_update_pkg::PUT_W-1:0]  put;
  assign push = judged_q && !bad && !is_bad_q;
  assign load = {kind_q[1:0], decays_q, unit_q, job_q[105:96], job_q[147:128], job_q[249:192],
                 job_q[313:256], job_q[377:320]};
  assign put  = {kind_q[1:0], job_q[105:96], job_q[147:128], side(job_q[1023:704]),
                 side(job_q[703:384])};
  mr_fifo #(
    .W    (mr_update_pkg::LOAD_W),
    .DEPTH(DEPTH)
  ) u_load (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (push),
    .in_ready_o (unused_load_ready),
    .in_data_i  (load),
    .out_valid_o(load_valid_o),
    .out_ready_i(load_ready_i),
    .out_data_o (load_o),
    .count_o    (unused_load)
  );
  mr_fifo #(
    .W    (mr_update_pkg::PUT_W),
    .DEPTH(DEPTH)
  ) u_put (
    .clk_i,
    .rst_ni,
    .clear_i    (1'b0),
    .in_valid_i (push),
    .in_ready_o (unused_put_ready),
    .in_data_i  (put),
    .out_valid_o(put_valid_o),
    .out_ready_i(put_ready_i),
    .out_data_o (put_o),
    .count_o    (unused_put)
  );
endmodule
