// SPDX-License-Identifier: Apache-2.0
// The second step of mr_legal: from what the first one has in registers the verdict on a command,
// and the verdicts on those that wait for the dispatcher. It is a module of its own for its timing:
// what compares a product is late, and synthesis puts it last only where nothing deeper stands
// beside it.
// valid_i: a command's checks, windows and products are there; all of it is judged in this cycle.
// take_i, bad_o, code_o, HELD, TRAIN: as in mr_legal.
`include "mr_assert.svh"
module mr_legal_verdict #(
  parameter int HELD = 32,
  parameter int TRAIN = 0,
  localparam int CHECKS_W = TRAIN != 0 ? mr_pkg::TRAINING_CHECKS_W : mr_pkg::CHECKS_W,
  localparam int WINDOWS_W = TRAIN != 0 ? mr_pkg::TRAINING_WINDOWS_W : mr_pkg::WINDOWS_W,
  localparam int PRODUCTS_W = TRAIN != 0 ? mr_pkg::TRAINING_PRODUCTS_W : mr_pkg::PRODUCTS_W
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic                          valid_i,
  input  logic [CHECKS_W-1:0]           checks_i,
  input  logic                          sem_bad_i,
  input  logic                          missing_i,
  input  logic [WINDOWS_W-1:0]          windows_i,
  input  logic [7:0]                    op_i,
  input  logic [PRODUCTS_W-1:0]         products_i,

  input  logic                          take_i,
  output logic                          bad_o,
  output logic [7:0]                    code_o
);

  localparam int HW = $clog2(HELD);

  logic [2:0]    verdict_mem [0:HELD-1];  // bad, for a field or product, for a window
  logic [HW-1:0] put_q, get_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      put_q <= '0;
      get_q <= '0;
    end else begin
      if (valid_i) put_q <= put_q + 1'b1;
      if (take_i) get_q <= get_q + 1'b1;
    end
    if (valid_i) begin : conclude
      logic command, window;
      logic products_fit;
      products_fit = TRAIN != 0 ?
          mr_pkg::training_legal_products(op_i, mr_pkg::TRAINING_PRODUCTS_W'(products_i)) :
          mr_pkg::legal_products(op_i, mr_pkg::PRODUCTS_W'(products_i));
      command = !(&checks_i) || sem_bad_i || !products_fit;
      window  = TRAIN != 0 ?
          !mr_pkg::training_windows_legal(mr_pkg::TRAINING_WINDOWS_W'(windows_i)) :
          !mr_pkg::windows_legal(mr_pkg::WINDOWS_W'(windows_i));
      verdict_mem[put_q] <= {command || window || missing_i, command, window};
    end
  end
  logic command_bad, window_bad;
  assign {bad_o, command_bad, window_bad} = verdict_mem[get_q];
  assign code_o = command_bad ? mr_pkg::DEVERR_COMMAND[7:0] :
                  window_bad ? mr_pkg::DEVERR_WINDOW[7:0] : mr_pkg::DEVERR_WATCHDOG[7:0];

  // A command that is dealt out has its verdict, a good one. There is room for those that wait.
  `MR_ASSERT(there, !take_i || put_q != get_q)
  `MR_ASSERT(good, !take_i || !bad_o)
  `MR_ASSERT(room, !valid_i || take_i || HW'(put_q - get_q) != '1)

endmodule
