// SPDX-License-Identifier: Apache-2.0
// Writes the streams: sections as they become complete, those along the rows first, as they hold up
// the lanes sooner; a matrix' headers when all its sections have been read; vectors.
//
// job_      valid/ready, layout of mr_update_pkg (P_)
// w_i .. channels_log2_i  bases and lengths of channels in beats; stand during a run
// clear_i   pulse before the first job: no column has a largest code
// vec_      valid/ready: the beats of a vector's floats
// dn_full_i, dn_free_o, al_full_i, al_free_o  buffers of mr_update_sections (mr_update_side)
// sec_      a section to read (mr_update_sections); sec_data_ its beats, codes_ its scale codes
// wr_job_, wr_data_  a client of mr_writer
// idle_o    no job, and nothing to write
module mr_update_put (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  input  logic                            job_valid_i,
  output logic                            job_ready_o,
  input  logic [mr_update_pkg::PUT_W-1:0] job_i,
  input  logic [57:0]                     w_i,
  input  logic [57:0]                     w_vectors_i,
  input  logic [57:0]                     wt_i,
  input  logic [57:0]                     w_channel_i,
  input  logic [57:0]                     wt_channel_i,
  input  logic [2:0]                      channels_log2_i,
  input  logic                            clear_i,

  input  logic                            vec_valid_i,
  output logic                            vec_ready_o,
  input  logic [511:0]                    vec_data_i,

  input  logic                            dn_full_i,
  output logic                            dn_free_o,
  input  logic                            al_full_i,
  output logic                            al_free_o,
  output logic                            sec_start_o,
  input  logic                            sec_ready_i,
  input  logic                            sec_idle_i,
  output logic                            sec_down_o,
  output logic                            sec_buf_o,
  output logic [6:0]                      sec_group_o,
  output logic [4:0]                      sec_blocks_o,
  input  logic                            codes_valid_i,
  input  logic [511:0]                    codes_i,
  input  logic                            sec_valid_i,
  output logic                            sec_data_ready_o,
  input  logic [511:0]                    sec_data_i,

  output logic                            wr_job_valid_o,
  input  logic                            wr_job_ready_i,
  output logic [63:0]                     wr_job_addr_o,
  output logic [15:0]                     wr_job_beats_o,
  output logic [63:0]                     wr_job_strb_o,
  output logic                            wr_data_valid_o,
  input  logic                            wr_data_ready_i,
  output logic [511:0]                    wr_data_o,
  output logic                            idle_o
);

  localparam int SIDE_W = mr_update_pkg::SIDE_W;

  // ---- the job ----------------------------------------------------------------------------------
  logic [1:0]        kind;
  logic [SIDE_W-1:0] down, along, alone;
  // Both are multiples of four.
  // verilator lint_off UNUSEDSIGNAL
  logic [9:0]        rows;
  logic [19:0]       cols;
  // verilator lint_on UNUSEDSIGNAL
  assign kind  = job_i[mr_update_pkg::P_KIND+:2];
  assign rows  = job_i[mr_update_pkg::P_ROWS+:10];
  assign cols  = job_i[mr_update_pkg::P_COLS+:20];
  assign down  = job_i[mr_update_pkg::P_DOWN+:SIDE_W];
  assign along = job_i[mr_update_pkg::P_ALONG+:SIDE_W];
  // Of headers and vectors: where they begin, and a piece.
  assign alone = SIDE_W'(down[mr_update_pkg::PIECE+23:0]);

  // ---- sections ---------------------------------------------------------------------------------
  logic [1:0]   start_q, idle, ask, done, turned, buffer, full, free;
  logic [115:0] addr;
  logic [27:0]  word;
  logic [13:0]  group;
  logic [9:0]   blocks;
  assign full      = {al_full_i, dn_full_i};
  assign dn_free_o = free[0];
  assign al_free_o = free[1];
  for (genvar k = 0; k < 2; k++) begin : gen_side
    localparam logic DOWN = k == 0;
    logic [SIDE_W-1:0] side;
    assign side = DOWN ? down : along;
    mr_update_side #(
      .GROUPS(DOWN ? 1 : 8)
    ) u_side (
      .clk_i,
      .rst_ni,
      .start_i  (start_q[k]),
      .side_i   (side),
      .base_i   (side[mr_update_pkg::TURNED] ? wt_i : w_i),
      .channel_i(side[mr_update_pkg::TURNED] ? wt_channel_i : w_channel_i),
      .channels_log2_i,
      .groups_i (DOWN ? {2'd0, cols[9:2]} : {2'd0, rows[9:2]}),
      .blocks_i (DOWN ? rows[9:5] : cols[9:5]),
      .idle_o   (idle[k]),
      .full_i   (full[k]),
      .free_o   (free[k]),
      .ask_o    (ask[k]),
      .done_i   (done[k]),
      .buf_o    (buffer[k]),
      .group_o  (group[7*k+:7]),
      .blocks_o (blocks[5*k+:5]),
      .addr_o   (addr[58*k+:58]),
      .word_o   (word[14*k+:14]),
      .turned_o (turned[k])
    );
  end

  // One section at a time: chosen, its write job, its beats.
  localparam logic [1:0] S_CHOOSE = 2'd0, S_JOB = 2'd1, S_READ = 2'd2, S_LAST = 2'd3;
  logic [1:0] section_q;
  logic       which_q, clearing;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      section_q   <= S_CHOOSE;
      sec_start_o <= 1'b0;
    end else begin
      sec_start_o <= section_q == S_JOB && wr_job_ready_i;
      unique case (section_q)
        S_CHOOSE: if (ask != '0 && !clearing) section_q <= S_JOB;
        S_JOB:    if (wr_job_ready_i) section_q <= S_READ;
        S_READ:   section_q <= S_LAST;
        default:  if (sec_ready_i) section_q <= S_CHOOSE;
      endcase
    end
    if (section_q == S_CHOOSE) which_q <= ask[1];
  end
  logic section_end;
  assign section_end  = section_q == S_LAST && sec_ready_i;
  assign done         = {section_end && which_q, section_end && !which_q};
  assign sec_down_o   = !which_q;
  assign sec_buf_o    = buffer[which_q];
  assign sec_group_o  = which_q ? group[13:7] : group[6:0];
  assign sec_blocks_o = which_q ? blocks[9:5] : blocks[4:0];

  // ---- jobs, in order ---------------------------------------------------------------------------
  // A patch is given to both sides, to each as soon as it is idle. Headers and vectors wait until
  // both are and the last section has left; they go piece by piece, or four floats at a time.
  localparam logic [2:0] J_TAKE = 3'd0, J_GIVE = 3'd1, J_PLACE = 3'd2, J_FETCH = 3'd3,
                         J_WRITE = 3'd4, J_DATA = 3'd5, J_NEXT = 3'd6;
  logic [2:0]   job_q;
  logic [1:0]   given_q;
  logic         vector_q, place_start_q, place_ready, place_next, quiet, last_q;
  logic [57:0]  place_addr;
  logic [3:0]   place_nth;
  logic [511:0] gather_q;
  // Headers: 16 groups of a channel, then those of the next one. Vectors: quads of a beat.
  logic [4:0]   asked_q;    // words of a header that were asked for
  logic [1:0]   come_q;     // answers that are on their way, zeros behind the last group too
  logic [1:0]   real_q;
  logic [17:0]  group_q;    // of its channel: the first of this header
  logic [17:0]  groups_q;   // of a channel; of a vector its quads
  logic [13:0]  first_q, word_q;
  logic [3:0]   channel_q;
  logic [4:0]   n;
  logic [31:0]  top;
  logic         ask_word, there;
  assign n           = 5'd1 << channels_log2_i;
  assign quiet       = idle == '1 && section_q == S_CHOOSE && sec_idle_i;
  assign there       = 19'(group_q) + 19'(asked_q) < 19'(groups_q);
  assign ask_word    = job_q == J_FETCH && !vector_q && !asked_q[4];
  assign job_ready_o = (job_q == J_TAKE && kind == mr_update_pkg::TABLE) ||
                       (job_q == J_GIVE && given_q == '1) || (job_q == J_NEXT && last_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      job_q         <= J_TAKE;
      given_q       <= '0;
      start_q       <= '0;
      place_start_q <= 1'b0;
      come_q        <= '0;
    end else begin
      place_start_q <= 1'b0;
      come_q        <= {come_q[0], ask_word};
      start_q       <= '0;
      unique case (job_q)
        J_TAKE:
          if (job_valid_i && kind == mr_update_pkg::PATCH) job_q <= J_GIVE;
          else if (job_valid_i && kind != mr_update_pkg::TABLE && quiet) begin
            job_q         <= J_PLACE;
            place_start_q <= 1'b1;
          end
        J_GIVE: begin
          start_q <= idle & ~given_q;
          given_q <= given_q == '1 ? '0 : given_q | idle;
          if (given_q == '1) job_q <= J_TAKE;
        end
        J_PLACE: job_q <= J_FETCH;
        J_FETCH: if (vector_q ? vec_valid_i : asked_q[4] && come_q == '0) job_q <= J_WRITE;
        J_WRITE: if (place_ready && wr_job_valid_o && wr_job_ready_i) job_q <= J_DATA;
        J_DATA:  if (wr_data_ready_i) job_q <= J_NEXT;
        default: job_q <= last_q ? J_TAKE : !vector_q || asked_q[1:0] == '1 ? J_FETCH : J_WRITE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    real_q <= {real_q[0], there};
    unique case (job_q)
      J_PLACE: begin
        vector_q  <= kind == mr_update_pkg::VECTOR;
        groups_q  <= kind == mr_update_pkg::VECTOR ? cols[19:2] : cols[19:2] >> channels_log2_i;
        group_q   <= '0;
        channel_q <= '0;
        first_q   <= down[mr_update_pkg::TOP+:14];
        word_q    <= down[mr_update_pkg::TOP+:14];
        asked_q   <= '0;
      end
      J_FETCH: begin
        if (vector_q) gather_q <= vec_data_i;
        else if (come_q[1]) gather_q <= {real_q[1] ? top : '0, gather_q[511:32]};
        if (ask_word) begin
          asked_q <= asked_q + 5'd1;
          word_q  <= word_q + 14'(n);
        end
      end
      J_DATA: begin
        last_q <= vector_q ? group_q == groups_q - 18'd1 :
                  channel_q == 4'(n - 5'd1) && {1'b0, group_q} + 19'd16 >= {1'b0, groups_q};
      end
      J_NEXT: begin
        if (vector_q) begin
          group_q  <= group_q + 18'd1;
          asked_q  <= {3'd0, asked_q[1:0] + 2'd1};
          gather_q <= {128'd0, gather_q[511:128]};
        end else begin
          asked_q   <= '0;
          channel_q <= channel_q == 4'(n - 5'd1) ? '0 : channel_q + 4'd1;
          if (channel_q == 4'(n - 5'd1)) begin
            group_q <= group_q + 18'd16;
            first_q <= first_q + {5'd0, n, 4'd0};
            word_q  <= first_q + {5'd0, n, 4'd0};
          end else begin
            word_q <= first_q + 14'(channel_q) + 14'd1;
          end
        end
      end
      default: ;
    endcase
  end
  assign vec_ready_o = job_q == J_FETCH && vector_q;
  assign place_next  = job_q == J_NEXT;
  mr_update_place u_place (
    .clk_i,
    .rst_ni,
    .start_i  (place_start_q),
    .base_i   (kind == mr_update_pkg::VECTOR ? w_vectors_i :
               down[mr_update_pkg::TURNED] ? wt_i : w_i),
    .channel_i(down[mr_update_pkg::TURNED] ? wt_channel_i : w_channel_i),
    .channels_log2_i,
    .side_i   (alone),
    .pieces_i (kind != mr_update_pkg::VECTOR),
    .ready_o  (place_ready),
    .next_i   (place_next),
    .addr_o   (place_addr),
    .nth_o    (place_nth)
  );

  mr_update_tops u_tops (
    .clk_i,
    .rst_ni,
    .clear_i,
    .busy_o (clearing),
    .codes_valid_i,
    .codes_i,
    .read_i  (ask_word && there),
    .turned_i(job_q == J_FETCH ? down[mr_update_pkg::TURNED] : turned[which_q]),
    .word_i  (job_q == J_FETCH ? word_q : which_q ? word[27:14] : word[13:0]),
    .word_o  (top)
  );

  // ---- the writer's client: sections, or what waits for them ------------------------------------
  logic own;  // headers and vectors
  assign own              = job_q == J_WRITE || job_q == J_DATA;
  assign wr_job_valid_o   = own ? job_q == J_WRITE && place_ready : section_q == S_JOB;
  assign wr_job_addr_o    = {own ? place_addr + (vector_q ? 58'(place_nth[3:2]) : '0) :
                             which_q ? addr[115:58] : addr[57:0], 6'd0};
  assign wr_job_beats_o   = own ? 16'd1 : {10'd0, sec_blocks_o, 1'b1};
  assign wr_job_strb_o    = own && vector_q ? 64'hFFFF << {place_nth[1:0], 4'd0} : '1;
  assign wr_data_valid_o  = own ? job_q == J_DATA : sec_valid_i;
  assign wr_data_o        = !own ? sec_data_i : vector_q ? {4{gather_q[127:0]}} : gather_q;
  assign sec_data_ready_o = !own && wr_data_ready_i;
  assign idle_o           = job_q == J_TAKE && quiet && !job_valid_i;
endmodule
