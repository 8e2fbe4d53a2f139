// SPDX-License-Identifier: Apache-2.0
// Where a column group lies in a matrix of tiles (docs/inside/commands.md, "Weight stream"): beats
// from the matrix' beginning in its channel to the group's header and to the group.
//
// group_i is the group's number in its channel, beats_i the beats of a group, as
// mr_stash_pkg::group_beats gives them. Both stand from cycle t on, head_o and group_o from t+2 on.
// The beats of a matrix of G groups a channel are end_o for G.
module mr_tiles_at (
  input  logic        clk_i,
  input  logic [19:0] group_i,
  input  logic [17:0] beats_i,
  output logic [37:0] head_o,
  output logic [37:0] group_o,
  output logic [37:0] end_o
);

  logic [33:0] headers_q;  // of the groups under the headers before
  logic [21:0] rest_q;
  logic [15:0] n_q;        // headers before
  logic        whole_q;
  logic [37:0] head;
  assign head = {headers_q, 4'd0} + {22'd0, n_q};
  always_ff @(posedge clk_i) begin
    headers_q <= 34'(group_i[19:4]) * 34'(beats_i);
    rest_q    <= 22'(group_i[3:0]) * 22'(beats_i);
    n_q       <= group_i[19:4];
    whole_q   <= group_i[3:0] == '0;
    head_o    <= head;
    group_o   <= head + {16'd0, rest_q} + 38'd1;
    end_o     <= whole_q ? head : head + {16'd0, rest_q} + 38'd1;
  end

endmodule
