// SPDX-License-Identifier: Apache-2.0
// What a unit behind the epilogue has told of the commands that it works for, until these are done.
//
// Ports
//   told_i  pulse in the order of such commands: what the unit does for one is stored, or, with
//           bad_i, cannot be
//   has_i   the oldest command that is not done is such a one; done_i pulse: it is done
//   ok_o    nothing is missing for it: from registers and has_i. bad_o: it cannot be stored
module mr_epi_told (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic told_i,
  input  logic bad_i,
  input  logic has_i,
  input  logic done_i,
  output logic ok_o,
  output logic bad_o
);

  logic [7:0] bad_q;
  logic [2:0] w_q, r_q;
  logic [3:0] count_q;
  logic       pop;
  assign ok_o  = !has_i || count_q != '0;
  assign bad_o = has_i && bad_q[r_q];
  assign pop   = done_i && has_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_q     <= '0;
      r_q     <= '0;
      count_q <= '0;
    end else begin
      w_q     <= w_q + 3'(told_i);
      r_q     <= r_q + 3'(pop);
      count_q <= count_q + 4'(told_i) - 4'(pop);
    end
    if (told_i) bad_q[w_q] <= bad_i;
  end

endmodule
