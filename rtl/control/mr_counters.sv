// SPDX-License-Identifier: Apache-2.0
// Performance counters (docs/inside/commands.md, "Counters"), 48 bits each: they count while run_i
// is high and are cleared by clear_i, so after a run they stand still and are read as one snapshot.
//
// Parameters
//   N      channels
//   TRAIN  1: with those of training
//
// rd_addr_i selects a counter, rd_data_o follows one cycle later.
`include "mr_assert.svh"
`include "mr_bundles.svh"
module mr_counters #(
  parameter int N = 1,
  parameter int TRAIN = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         clear_i,
  input  logic         run_i,
  input  logic [2:0]   commands_i,   // finished in this cycle
  `MR_CNT_S(),
  input  logic [1:0]   vector_i,     // busy, idle
  input  logic [1:0]   writer_i,     // busy, idle
  `MR_TRAIN_CNT_S(train_),
  input  logic [4:0]   rd_addr_i,
  output logic [47:0]  rd_data_o
);

  localparam int COUNTERS = 22, TRAIN_COUNTERS = 8;
  logic [47:0] count_q[COUNTERS];

  function automatic [7:0] ones(input logic [N-1:0] v);
    ones = '0;
    for (int i = 0; i < N; i++) ones = ones + {7'd0, v[i]};
  endfunction

  logic [47:0] train_data;
  always_ff @(posedge clk_i) begin
    rd_data_o <= rd_addr_i < 5'(COUNTERS) ? count_q[rd_addr_i] : train_data;
    if (!rst_ni || clear_i) begin
      for (int i = 0; i < COUNTERS; i++) count_q[i] <= '0;
    end else if (run_i) begin
      count_q[0] <= count_q[0] + 48'd1;
      if (commands_i != '0) count_q[1] <= count_q[1] + 48'(commands_i);
      if (w_beat_i != '0) count_q[2] <= count_q[2] + 48'(ones(w_beat_i));
      if (kv_beat_i != '0) count_q[3] <= count_q[3] + 48'(ones(kv_beat_i));
      if (read_beat_i) count_q[4] <= count_q[4] + 48'd1;
      if (write_beat_i) count_q[5] <= count_q[5] + 48'd1;
      if (blocks_i != '0) count_q[6] <= count_q[6] + 48'(blocks_i);
      for (int i = 0; i < 4; i++) if (array_i[i]) count_q[7+i] <= count_q[7+i] + 48'd1;
      for (int i = 0; i < 2; i++) if (vector_i[i]) count_q[11+i] <= count_q[11+i] + 48'd1;
      for (int i = 0; i < 3; i++) if (attention_i[i]) count_q[13+i] <= count_q[13+i] + 48'd1;
      for (int i = 0; i < 2; i++) if (writer_i[i]) count_q[16+i] <= count_q[16+i] + 48'd1;
      for (int i = 0; i < 4; i++) if (reader_i[i]) count_q[18+i] <= count_q[18+i] + 48'd1;
    end
  end

  if (TRAIN != 0) begin : gen_train
    logic [47:0] train_q[TRAIN_COUNTERS];
    logic [4:0]  at;
    assign at         = rd_addr_i - 5'(COUNTERS);
    assign train_data = at < 5'(TRAIN_COUNTERS) ? train_q[at[2:0]] : '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i) begin
        for (int i = 0; i < TRAIN_COUNTERS; i++) train_q[i] <= '0;
      end else if (run_i) begin
        if (train_stash_beats_i != '0) train_q[0] <= train_q[0] + 48'(train_stash_beats_i);
        if (train_grad_blocks_i != '0) train_q[1] <= train_q[1] + 48'(train_grad_blocks_i);
        for (int i = 0; i < 6; i++) if (train_cycles_i[i]) train_q[2+i] <= train_q[2+i] + 48'd1;
      end
    end
  end else begin : gen_no_train
    assign train_data = '0;
    logic unused;
    assign unused = ^{train_stash_beats_i, train_grad_blocks_i, train_cycles_i};
  end

  // A unit is in one state a cycle: its counters add up to no more than the run's cycles.
  `MR_ASSERT_ONEHOT0(array, array_i)
  `MR_ASSERT_ONEHOT0(reader, reader_i)

endmodule
