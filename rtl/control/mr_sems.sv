// SPDX-License-Identifier: Apache-2.0
// The 16 counting semaphores (4 bits). All adds and takes of a cycle count; clear_i sets all to
// zero.
//
// Parameters
//   QUEUES  command queues, packed in take_i and signal_i (16 bits each)
//
// nonzero_o is registered state: an add in cycle t can be taken from t+1 on. overflow_o is a pulse:
// a count went beyond 15, the program is wrong.
module mr_sems #(
  parameter int QUEUES = 5
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clear_i,
  input  logic [QUEUES*16-1:0] take_i,
  input  logic [QUEUES*16-1:0] signal_i,
  output logic [15:0]          nonzero_o,
  output logic                 overflow_o
);

  logic [4:0] count_q[16];
  logic       active;
  assign active = (take_i != '0) || (signal_i != '0);

  genvar g;
  generate
    for (g = 0; g < 16; g = g + 1) begin : gen_nonzero
      assign nonzero_o[g] = count_q[g] != '0;
    end
  endgenerate

  always_ff @(posedge clk_i) begin
    overflow_o <= 1'b0;
    if (!rst_ni || clear_i) begin
      for (int s = 0; s < 16; s++) count_q[s] <= '0;
    end else if (active) begin
      for (int s = 0; s < 16; s++) begin : sem
        logic [4:0] n;
        n = count_q[s];
        for (int q = 0; q < QUEUES; q++) begin
          if (signal_i[16 * q + s]) n = n + 5'd1;
          if (take_i[16 * q + s]) n = n - 5'd1;
        end
        count_q[s] <= n;
        if (n > 5'd15) overflow_o <= 1'b1;
      end
    end
  end

endmodule
