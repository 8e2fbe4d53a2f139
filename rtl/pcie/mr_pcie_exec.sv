// SPDX-License-Identifier: Apache-2.0
// Executor of millrace_pcie: takes ring entries one at a time, moves their data, runs the engine
// and writes completions (docs/board/pcie-function.md).
//
// Parameters: N channels; QUEUES rings; MEM_LOG2 bytes a channel, log2.
//
// q_: executor port of mr_pcie_queues. x_: engine registers through mr_pcie_bar. cp_: the copier,
// one pair of segments at a time (cp_valid_o/cp_ready_i); cp_src_o and cp_dst_o say between which
// ports it moves (0 host, 1 card, 2 local) and change only while it is idle. l_: the local memory
// of 64 beats, where entries and segment lists are put and completions are taken from.
//
// An entry with LINK and the entries behind it up to one without are a chain: after an error in it
// the rest of the chain completes as cancelled. When the host disables the ring, what has not begun
// is cancelled, and a run is ended by the engine's soft reset. While the engine runs (busy_i, its
// STATUS.busy) this block waits without a change of its state: idle_o is high then, and without an
// entry, until something has to be done. With scrub_en_i, the run at
// scrub_addr_i comes before an entry's run where q_owner_i is low; q_own_o (pulse): it ended well.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_pcie_exec #(
  parameter int N = 1,
  parameter int QUEUES = 16,
  parameter int MEM_LOG2 = 30
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      busy_i,
  output logic                      idle_o,

  `MR_PCI_JOB_S(q_, $clog2(QUEUES)),
  input  logic                      scrub_en_i,
  input  logic [57:0]               scrub_addr_i,

  `MR_PCI_X_M(x_),

  output logic [1:0]                cp_src_o,
  output logic [1:0]                cp_dst_o,
  output logic                      cp_zero_o,
  output logic                      cp_valid_o,
  input  logic                      cp_ready_i,
  output logic [63:0]               cp_src_addr_o,
  output logic [63:0]               cp_dst_addr_o,
  output logic [31:0]               cp_bytes_o,
  input  logic                      cp_idle_i,
  input  logic                      cp_rerr_i,
  input  logic                      cp_werr_i,
  input  logic [63:0]               cp_rerr_addr_i,
  input  logic [63:0]               cp_werr_addr_i,

  // verilator lint_off UNUSED
  `MR_RAM_R_M(l_, 6, 512),  // entries and segments have words for later
  // verilator lint_on UNUSED
  output logic                      l_wen_o,
  output logic [5:0]                l_waddr_o,
  output logic [511:0]              l_wdata_o
);

  localparam logic [1:0] HOST = 2'd0, CARD = 2'd1, LOCAL = 2'd2;
  localparam logic [5:0] LIST_BEAT = 6'd1, CPL_BEAT = 6'd60;
  localparam logic [7:0] BATCH = 8'd128;  // segments fetched at once
  localparam logic [6:0] COUNTER_WORDS = 7'(2 * mr_pkg::COUNTERS);
  localparam logic [7:0] OK = mr_pkg::PCIE_OK[7:0];

  localparam logic [4:0] S_IDLE = 5'd0, S_FETCH = 5'd1, S_ENTRY = 5'd2, S_PARSE = 5'd3,
                         S_CHECK = 5'd4, S_LIST = 5'd5, S_SEG = 5'd6, S_SEG2 = 5'd7, S_FEED = 5'd8,
                         S_PUSH = 5'd9, S_COPY = 5'd10, S_WAIT = 5'd11, S_START = 5'd12,
                         S_REG = 5'd13, S_PAUSE = 5'd14, S_COUNT = 5'd15, S_LINE = 5'd16,
                         S_CPL = 5'd17, S_CPL2 = 5'd18, S_DONE = 5'd19;
  logic [4:0] state_q, after_q;  // after_q: state behind S_WAIT

  // Accesses to the engine around a run.
  localparam logic [3:0] X_FREE = 4'd0, X_LO = 4'd1, X_HI = 4'd2, X_START = 4'd3, X_POLL = 4'd4,
                         X_STOP = 4'd5, X_ERROR = 4'd6, X_ELO = 4'd7, X_EHI = 4'd8, X_STICKY = 4'd9,
                         X_COUNT = 4'd10;
  logic [3:0] x_q;

  // ---- the entry --------------------------------------------------------------------------------
  logic [7:0]        op_q, status_q, cerr_q;  // cerr_q: what the copier reported for this entry
  logic              irq_q, link_q, counted_q, stopped_q;
  logic              scrub_q;  // SCRUB's run, not the entry's
  logic [31:0]       tag_q, left_q, segs_q, skip_q, error_q, sticky_q;
  logic [63:0]       host_q, card_q, eaddr_q;
  logic [QUEUES-1:0] cancel_q;  // rings in a chain that had an error
  logic [511:0]      line_q;    // counters on their way to the local memory
  logic [6:0]        word_q;

  // Within the card: channel << 36 | offset, channel below N, offset below 2^MEM_LOG2.
  logic [31:0] behind;
  logic [36:0] reach;
  logic        in_card;
  assign behind  = left_q - 32'd1;
  assign reach   = {1'b0, card_q[35:0]} + {5'd0, behind};
  assign in_card = left_q != '0 && !left_q[31] && card_q[63:36] < 28'(N) &&
                  (reach >> MEM_LOG2) == '0;

  // A run's descriptor: whole beats, at one.
  logic run_ok;
  assign run_ok = left_q[5:0] == '0 && left_q <= mr_pkg::PCIE_RUN_BYTES && card_q[5:0] == '0;

  // ---- segments ---------------------------------------------------------------------------------
  logic [7:0]  seg_q, batch_q;
  logic [63:0] sa_q;
  logic [31:0] sl_q, rest, take;
  assign rest = sl_q - skip_q;
  assign take = rest < left_q ? rest : left_q;
  logic [7:0]  batch;
  assign batch = segs_q < 32'(BATCH) ? segs_q[7:0] : BATCH;

  logic [63:0] run_addr;
  assign run_addr   = scrub_q ? {scrub_addr_i, 6'd0} : card_q;
  assign q_own_o    = state_q == S_REG && x_done_i && x_q == X_POLL && scrub_q && !stopped_q &&
                      x_rdata_i[2:0] == 3'b010;
  // The engine has ended, or the ring was disabled and the engine has not been told yet.
  logic wake;
  assign wake       = !busy_i || (!q_enabled_i && !stopped_q);
  assign idle_o     = state_q == S_IDLE ? !q_any_i : state_q == S_PAUSE && !wake;
  assign q_take_o   = state_q == S_IDLE && q_any_i;
  assign q_done_o   = state_q == S_DONE;
  assign q_irq_o    = irq_q || status_q != OK;
  assign q_fault_o  = cerr_q;
  assign cp_valid_o = state_q == S_COPY || state_q == S_PUSH;
  assign x_valid_o  = state_q == S_REG;
  assign l_ren_o    = state_q == S_ENTRY || state_q == S_SEG;
  assign l_raddr_o  = state_q == S_ENTRY ? 6'd0 : LIST_BEAT + {1'b0, seg_q[6:2]};
  assign l_wen_o    = state_q == S_CPL || state_q == S_LINE;
  logic [2:0] line;
  assign line       = word_q[6:4] - 3'd1;
  assign l_waddr_o  = CPL_BEAT + (state_q == S_CPL ? 6'd3 : {3'd0, line});
  assign l_wdata_o  = state_q == S_CPL ? {q_seq_i, 288'd0, eaddr_q, sticky_q, error_q, tag_q,
                                          24'd0, status_q != OK ? status_q : cerr_q} : line_q;

  always_comb begin
    x_write_o = 1'b0;
    x_wdata_o = 32'd0;
    unique case (x_q)
      X_LO:     begin
        x_write_o = 1'b1;
        x_addr_o  = mr_pkg::REG_RUN_LO[11:0];
        x_wdata_o = run_addr[31:0];
      end
      X_HI:     begin
        x_write_o = 1'b1;
        x_addr_o  = mr_pkg::REG_RUN_HI[11:0];
        x_wdata_o = run_addr[63:32];
      end
      X_START:  begin
        x_write_o = 1'b1;
        x_addr_o  = mr_pkg::REG_CTRL[11:0];
        x_wdata_o = 32'd1;
      end
      X_STOP:   begin
        x_write_o = 1'b1;
        x_addr_o  = mr_pkg::REG_CTRL[11:0];
        x_wdata_o = 32'd2;
      end
      X_ERROR:  x_addr_o = mr_pkg::REG_ERROR[11:0];
      X_ELO:    x_addr_o = mr_pkg::REG_ERROR_LO[11:0];
      X_EHI:    x_addr_o = mr_pkg::REG_ERROR_HI[11:0];
      X_STICKY: x_addr_o = mr_pkg::REG_STICKY[11:0];
      X_COUNT:  x_addr_o = mr_pkg::REG_COUNTERS[11:0] + 12'({word_q, 2'd0});
      default:  x_addr_o = mr_pkg::REG_STATUS[11:0];
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= S_IDLE;
      cancel_q <= '0;
    end else begin
      unique case (state_q)
        S_IDLE: if (q_any_i) state_q <= S_FETCH;

        S_FETCH: begin
          state_q <= S_COPY;
          after_q <= S_ENTRY;
        end
        S_ENTRY: state_q <= cerr_q != OK ? S_DONE : S_PARSE;
        S_PARSE: state_q <= S_CHECK;
        S_CHECK: begin
          state_q <= S_CPL;
          after_q <= S_CPL;
          if (q_enabled_i && !(cancel_q[q_queue_i] && q_seq_i != 32'd1)) begin
            unique case (op_q)
              mr_pkg::PCIE_OP_COPY_IN[7:0], mr_pkg::PCIE_OP_COPY_OUT[7:0]: begin
                if (in_card) state_q <= S_LIST;
              end
              mr_pkg::PCIE_OP_CLEAR[7:0]: if (in_card) state_q <= S_COPY;
              mr_pkg::PCIE_OP_RUN[7:0]: begin
                if (in_card && run_ok) begin
                  state_q <= scrub_en_i && !q_owner_i ? S_REG : S_COPY;
                  after_q <= S_START;
                end
              end
              default: ;
            endcase
          end
        end

        // A batch of the segment list; then each of its segments, with as much of the card.
        S_LIST: begin
          state_q <= segs_q == '0 ? S_CPL : S_COPY;
          after_q <= S_SEG;
        end
        S_SEG: begin
          state_q <= cerr_q != OK ? S_WAIT : S_SEG2;
          after_q <= S_CPL;
        end
        S_SEG2: state_q <= S_FEED;
        S_FEED: state_q <= sl_q > skip_q ? S_PUSH : S_WAIT;
        S_PUSH: begin
          if (cp_ready_i) begin
            if (left_q == cp_bytes_o) state_q <= S_WAIT;
            else if (seg_q + 8'd1 == batch_q) begin
              state_q <= S_WAIT;
              after_q <= S_LIST;
            end else state_q <= S_SEG;
          end
        end

        S_COPY: if (cp_ready_i) state_q <= S_WAIT;
        S_WAIT: if (cp_idle_i) state_q <= after_q;

        // A run.
        S_START: state_q <= cerr_q != OK ? S_CPL : S_REG;
        S_REG: begin
          if (x_done_i) begin
            if (x_q == X_FREE && x_rdata_i[0]) state_q <= q_enabled_i ? S_PAUSE : S_CPL;
            if (x_q == X_POLL && x_rdata_i[0]) state_q <= S_PAUSE;
            if (x_q == X_COUNT) state_q <= S_COUNT;
            if (q_own_o) state_q <= S_COPY;
          end
        end
        S_PAUSE: if (wake) state_q <= S_REG;
        S_COUNT: state_q <= word_q[3:0] == '0 ? S_LINE : word_q < COUNTER_WORDS ? S_REG : S_COUNT;
        S_LINE:  state_q <= word_q < COUNTER_WORDS ? S_REG : S_CPL;

        S_CPL:  state_q <= S_CPL2;
        S_CPL2: begin
          state_q <= S_COPY;
          after_q <= S_DONE;
        end
        S_DONE: begin
          state_q             <= S_IDLE;
          cancel_q[q_queue_i] <= link_q && status_q != OK;
        end
        default: state_q <= S_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == S_FETCH || state_q == S_CPL2) cerr_q <= OK;
    else if (cerr_q == OK && cp_rerr_i) cerr_q <= mr_pkg::PCIE_E_READ[7:0];
    else if (cerr_q == OK && cp_werr_i) cerr_q <= mr_pkg::PCIE_E_WRITE[7:0];
    if (cerr_q == OK && (cp_rerr_i || cp_werr_i)) begin
      eaddr_q <= cp_rerr_i ? cp_rerr_addr_i : cp_werr_addr_i;
    end

    unique case (state_q)
      S_FETCH: begin
        cp_src_o      <= HOST;
        cp_dst_o      <= LOCAL;
        cp_zero_o     <= 1'b0;
        cp_src_addr_o <= q_entry_i;
        cp_dst_addr_o <= '0;
        cp_bytes_o    <= mr_pkg::PCIE_ENTRY_BYTES;
        status_q      <= OK;
        irq_q         <= 1'b0;
        link_q        <= 1'b0;
        counted_q     <= 1'b0;
        stopped_q     <= 1'b0;
        error_q       <= '0;
        sticky_q      <= '0;
        eaddr_q       <= '0;
        word_q        <= '0;
        x_q           <= X_FREE;
        scrub_q       <= 1'b0;
      end
      S_PARSE: begin
        op_q   <= l_rdata_i[7:0];
        irq_q  <= l_rdata_i[8];
        link_q <= l_rdata_i[9];
        tag_q  <= l_rdata_i[63:32];
        host_q <= l_rdata_i[127:64];
        card_q <= l_rdata_i[191:128];
        left_q <= l_rdata_i[223:192];
        segs_q <= l_rdata_i[255:224];
        skip_q <= l_rdata_i[287:256];
      end
      S_CHECK: begin
        cp_dst_o      <= CARD;
        cp_zero_o     <= op_q == mr_pkg::PCIE_OP_CLEAR[7:0];
        cp_src_addr_o <= host_q;
        cp_dst_addr_o <= card_q;
        cp_bytes_o    <= left_q;
        scrub_q       <= op_q == mr_pkg::PCIE_OP_RUN[7:0] && scrub_en_i && !q_owner_i;
        if (!q_enabled_i || (cancel_q[q_queue_i] && q_seq_i != 32'd1)) begin
          status_q <= mr_pkg::PCIE_E_CANCELLED[7:0];
        end else if (op_q > mr_pkg::PCIE_OP_RUN[7:0]) begin
          status_q <= mr_pkg::PCIE_E_ENTRY[7:0];
        end else if (op_q != mr_pkg::PCIE_OP_NOP[7:0] && !in_card) begin
          status_q <= mr_pkg::PCIE_E_WINDOW[7:0];
          eaddr_q  <= card_q;
        end else if (op_q == mr_pkg::PCIE_OP_RUN[7:0] && !run_ok) begin
          status_q <= mr_pkg::PCIE_E_ENTRY[7:0];
        end
      end
      S_LIST: begin
        cp_src_o      <= HOST;
        cp_dst_o      <= LOCAL;
        cp_src_addr_o <= host_q;
        cp_dst_addr_o <= 64'(LIST_BEAT) << 6;
        cp_bytes_o    <= {20'd0, batch, 4'd0};
        host_q        <= host_q + {52'd0, batch, 4'd0};
        segs_q        <= segs_q - 32'(batch);
        batch_q       <= batch;
        seg_q         <= '0;
        if (segs_q == '0) status_q <= mr_pkg::PCIE_E_SEGMENTS[7:0];
      end
      S_SEG2: begin
        {sl_q, sa_q} <= seg_q[1] ? (seg_q[0] ? l_rdata_i[479:384] : l_rdata_i[351:256]) :
                                   (seg_q[0] ? l_rdata_i[223:128] : l_rdata_i[95:0]);
      end
      S_FEED: begin
        if (sl_q <= skip_q) status_q <= mr_pkg::PCIE_E_SEGMENTS[7:0];
        cp_src_o      <= op_q == mr_pkg::PCIE_OP_COPY_IN[7:0] ? HOST : CARD;
        cp_dst_o      <= op_q == mr_pkg::PCIE_OP_COPY_IN[7:0] ? CARD : HOST;
        cp_src_addr_o <= op_q == mr_pkg::PCIE_OP_COPY_IN[7:0] ? sa_q + 64'(skip_q) : card_q;
        cp_dst_addr_o <= op_q == mr_pkg::PCIE_OP_COPY_IN[7:0] ? card_q : sa_q + 64'(skip_q);
        cp_bytes_o    <= take;
      end
      S_PUSH: begin
        if (cp_ready_i) begin
          left_q <= left_q - cp_bytes_o;
          card_q <= card_q + 64'(cp_bytes_o);
          skip_q <= '0;
          seg_q  <= seg_q + 8'd1;
        end
      end
      S_REG: begin
        if (x_done_i) begin
          unique case (x_q)
            X_FREE: begin
              if (!x_rdata_i[0]) x_q <= X_LO;
              else if (!q_enabled_i) status_q <= mr_pkg::PCIE_E_CANCELLED[7:0];
            end
            X_LO:    x_q <= X_HI;
            X_HI:    x_q <= X_START;
            X_START: x_q <= X_POLL;
            X_POLL: begin
              // An ended run says whether it went well; a soft reset leaves neither bit.
              if (!x_rdata_i[0]) begin
                x_q <= X_ERROR;
                if (stopped_q || x_rdata_i[2:1] == '0) status_q <= mr_pkg::PCIE_E_CANCELLED[7:0];
                else if (x_rdata_i[2]) status_q <= mr_pkg::PCIE_E_ENGINE[7:0];
                if (q_own_o) begin
                  x_q     <= X_FREE;
                  scrub_q <= 1'b0;
                end
              end else if (!q_enabled_i && !stopped_q) x_q <= X_STOP;
            end
            X_STOP: begin
              x_q       <= X_POLL;
              stopped_q <= 1'b1;
            end
            X_ERROR: begin
              error_q <= x_rdata_i;
              x_q     <= X_ELO;
            end
            X_ELO: begin
              eaddr_q[31:0] <= x_rdata_i;
              x_q           <= X_EHI;
            end
            X_EHI: begin
              eaddr_q[63:32] <= x_rdata_i;
              x_q            <= X_STICKY;
            end
            X_STICKY: begin
              sticky_q <= x_rdata_i;
              x_q      <= X_COUNT;
            end
            default: begin
              line_q    <= {x_rdata_i, line_q[511:32]};
              word_q    <= word_q + 7'd1;
              counted_q <= 1'b1;
            end
          endcase
        end
      end
      S_COUNT: begin
        // The last line is filled up with zeros.
        if (word_q[3:0] != '0 && word_q >= COUNTER_WORDS) begin
          line_q <= {32'd0, line_q[511:32]};
          word_q <= word_q + 7'd1;
        end
      end
      S_CPL: if (status_q == OK) status_q <= cerr_q;
      S_CPL2: begin
        cp_src_o      <= LOCAL;
        cp_dst_o      <= HOST;
        cp_zero_o     <= 1'b0;
        cp_src_addr_o <= {52'd0, CPL_BEAT, 6'd0} + (counted_q ? 64'd0 : 64'd192);
        cp_dst_addr_o <= q_cpl_i + (counted_q ? 64'd0 : 64'd192);
        cp_bytes_o    <= counted_q ? 32'd256 : 32'd64;
      end
      default: ;
    endcase
  end

  `MR_ASSERT(state, state_q <= S_DONE)
  `MR_ASSERT(registers, state_q != S_REG || x_q <= X_COUNT)
  `MR_ASSERT_STABLE(cp, cp_valid_o, cp_ready_i, {cp_src_addr_o, cp_dst_addr_o, cp_bytes_o})
  `MR_ASSERT_STABLE(ways, 1'b1, cp_idle_i, {cp_src_o, cp_dst_o, cp_zero_o})

endmodule
