// SPDX-License-Identifier: Apache-2.0
// Of the errors that come in one cycle, the one whose command comes first in the program: in three
// steps, each of one comparison. First what comes in, by queue; then of two and two; then one.
//
// Parameters: those of mr_seq
//
// Ports
//   run_i     no error comes out while it is low, nor of what came in before
//   hit_i     in this cycle there is an error; the others are looked at in this cycle alone
//   once_i    it ends the run at once, as errors of the memory do
//   index_i   the command that is dealt out; oldest_i: the oldest of each queue, 16 bits each
//   err_      of the units, as mr_seq has them
//   own_      of the sequencer itself; own_desc_i: of the descriptor, which comes before all others
//   valid_o   three cycles behind hit_i, with once_o, the command's index_o, code, unit and address
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_first_error #(
  parameter int N = 1,
  parameter int TRAIN = 0,
  parameter int ERRORS = 8
) (
  input  logic                 clk_i,
  input  logic                 run_i,
  input  logic                 hit_i,
  input  logic                 once_i,
  input  logic [15:0]          index_i,
  input  logic [79:0]          oldest_i,
  `MR_ERR_S(err_, ERRORS),
  input  logic                 own_v_i,
  input  logic                 own_desc_i,
  input  logic [15:0]          own_index_i,
  input  logic [7:0]           own_code_i,
  input  logic [63:0]          own_addr_i,
  output logic                 valid_o,
  output logic                 once_o,
  output logic [15:0]          index_o,
  output logic [7:0]           code_o,
  output logic [7:0]           unit_o,
  output logic [63:0]          addr_o
);

  logic [ERRORS*3-1:0] queues;
  for (genvar c = 0; c < N; c = c + 1) begin : gen_reader
    assign queues[3*c+:3] = mr_pkg::QUEUE_READER[2:0];
  end
  assign queues[3*(N+mr_pkg::UNIT_HOST_READ-1)+:3]  = mr_pkg::QUEUE_VECTOR[2:0];
  assign queues[3*(N+mr_pkg::UNIT_HOST_WRITE-1)+:3] = mr_pkg::QUEUE_WRITER[2:0];
  assign queues[3*(N+mr_pkg::UNIT_LOAD_ROWS-1)+:3]  = mr_pkg::QUEUE_VECTOR[2:0];
  assign queues[3*(N+mr_pkg::UNIT_MATMUL-1)+:3]     = mr_pkg::QUEUE_ARRAY[2:0];
  assign queues[3*(N+mr_pkg::UNIT_STORE-1)+:3]      = mr_pkg::QUEUE_WRITER[2:0];
  assign queues[3*(N+mr_pkg::UNIT_EPILOGUE-1)+:3]   = mr_pkg::QUEUE_ARRAY[2:0];
  assign queues[3*(N+mr_pkg::UNIT_ATTENTION-1)+:3]  = mr_pkg::QUEUE_ATTENTION[2:0];
  if (TRAIN != 0) begin : gen_train_units
    assign queues[3*(N+mr_pkg::UNIT_LOAD_ACT-1)+:3] = mr_pkg::QUEUE_VECTOR[2:0];
  end

  // An error: {1; 0 if of memory or descriptor, which come before all others; index; code; unit;
  // address}.
  localparam int QUEUES = mr_pkg::QUEUES, E_W = 2 + 16 + 8 + 8 + 64;  // the high bit: there is one
  function automatic logic [E_W-1:0] first_of(input logic [E_W-1:0] a, input logic [E_W-1:0] b);
    first_of = a[E_W-1] && (!b[E_W-1] || a[E_W-2-:17] <= b[E_W-2-:17]) ? a : b;
  endfunction
  logic [(QUEUES+1)*E_W-1:0] e1_q;
  logic [3*E_W-1:0]          e2_q;
  // Who is first needs the two high bits no more.
  // verilator lint_off UNUSED
  logic [E_W-1:0]            e3_q;
  // verilator lint_on UNUSED
  logic                      v1_q, v2_q, v3_q, once1_q, once2_q, once3_q;
  always_ff @(posedge clk_i) begin
    if (!run_i) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
      v3_q <= 1'b0;
    end else begin
      v1_q <= hit_i;
      v2_q <= v1_q;
      v3_q <= v2_q;
    end
    if (hit_i) begin : gather
      logic           once, memory;
      logic [15:0]    index;
      logic [E_W-1:0] e;
      once = once_i;
      for (int k = 0; k < QUEUES; k++) begin
        e = '0;
        // Memory fails also where the queue has no command.
        index = oldest_i[16*k+:16] < index_i ? oldest_i[16*k+:16] : index_i;
        for (int i = 0; i < ERRORS; i++) begin
          memory = err_code_i[8*i+:8] == mr_pkg::DEVERR_READ[7:0] ||
                   err_code_i[8*i+:8] == mr_pkg::DEVERR_WRITE[7:0];
          if (err_valid_i[i] && queues[3*i+:3] == 3'(k)) begin
            e = {1'b1, !memory, index, err_code_i[8*i+:8], 8'(i + 1), err_addr_i[64*i+:64]};
            once = once || memory;
          end
        end
        e1_q[E_W*k+:E_W] <= e;
      end
      e1_q[E_W*QUEUES+:E_W] <= {own_v_i, !own_desc_i, own_index_i, own_code_i, 8'd0, own_addr_i};
      once1_q <= once;
    end
    if (v1_q) begin
      for (int k = 0; k < 3; k++) begin
        e2_q[E_W*k+:E_W] <= first_of(e1_q[2*E_W*k+:E_W], e1_q[2*E_W*k+E_W+:E_W]);
      end
      once2_q <= once1_q;
    end
    if (v2_q) begin
      e3_q    <= first_of(first_of(e2_q[0+:E_W], e2_q[E_W+:E_W]), e2_q[2*E_W+:E_W]);
      once3_q <= once2_q;
    end
  end

  assign valid_o = v3_q;
  assign once_o  = once3_q;
  assign {index_o, code_o, unit_o, addr_o} = e3_q[E_W-3:0];

`ifdef MILLRACE_ASSERT
  // None comes in unseen. What comes out is an error; one before all others ends the run.
  logic rst_ni;  // there is no reset here
  assign rst_ni = run_i;
  `MR_ASSERT(hit, hit_i == (own_v_i || err_valid_i != '0))
  `MR_ASSERT(first, !valid_o || e3_q[E_W-1])
  `MR_ASSERT(once, !valid_o || once_o || e3_q[E_W-2])
`endif

endmodule
