// SPDX-License-Identifier: Apache-2.0
// May the epilogue take the array's next beat? Keeps what that depends on, and says it early in the
// cycle: behind it lie the array's drain and the command's end.
//
// A staged command (to the quantiser or to the host) produces units: blocks or spans of one token.
// A unit's place in the staging memory was last used c_room_i units before, and no more than JOBS
// units may be complete and not read. A command with another layout than the staged one before it
// waits until all units are read; then all places are free. One to the residual waits until those
// before it are written.
//
// Parameters: T, TRAIN as mr_epilogue.
//
// Ports
//   c_        the command at work: mr_epi_cmds'
//   side_i    with TRAIN: what else takes the beat has room; from registers
//   ready_o   a beat may be taken; from registers
//   take_i    it is; beside it: the group's last token, it completes a unit, it is the command's
//             last beat
//   rd_i      pulse, from a register: in the cycle before a unit has left the staging memory
//   res_i     pulse: a residual command is written
`include "mr_assert.svh"
module mr_epi_place #(
  parameter int T = 8,
  parameter int TRAIN = 0,
  localparam int PW = $clog2(2 * T + 1)
) (
  input  logic          clk_i,
  input  logic          rst_ni,

  input  logic          c_valid_i,
  input  logic          c_empty_i,
  input  logic          c_staged_i,
  input  logic [1:0]    c_fn_i,
  input  logic          c_change_i,
  input  logic [PW-1:0] c_room_i,
  // With TRAIN.
  // verilator lint_off UNUSED
  input  logic          side_i,
  // verilator lint_on UNUSED

  output logic          ready_o,
  input  logic          take_i,
  input  logic          tok_last_i,
  input  logic          final_i,
  input  logic          last_i,
  input  logic          rd_i,
  input  logic          res_i
);

  localparam int AW = $clog2(mr_epi_pkg::JOBS);
  // A residual's beat comes to the adder so many cycles later than a function's, and they share it.
  localparam int APART = mr_epi_pkg::K_DST - mr_epi_pkg::K_PICK + mr_fp_pkg::FADD_LAT;

  // Counts are those of a cycle ago: what rd_i says is still to come.
  logic             start_q;     // no beat of this command yet
  logic [PW-1:0]    free_q;      // places left for the beat's unit and those behind it
  logic [PW-1:0]    base_q;      // the same for the first unit of its group
  logic             full_q;      // free_q is 0
  logic [AW:0]      acc_q;       // units that are complete and not read
  logic [3:0]       res_cmds_q;  // RES commands drained and not written
  logic [APART-1:0] res_q;

  logic change, place_ok, jobs_ok, drained;
  assign change   = start_q && c_change_i;
  assign place_ok = !full_q || rd_i;
  assign jobs_ok  = !acc_q[AW] || (rd_i && !acc_q[0]);  // acc_q - rd_i < JOBS
  assign drained  = acc_q == (AW + 1)'(rd_i);
  assign ready_o  = c_valid_i && (TRAIN == 0 || side_i) && !c_empty_i &&
                    !(c_fn_i != 2'd0 && res_q[APART-1]) &&
                    (c_staged_i ? jobs_ok && (change ? drained : place_ok) :
                     !start_q || (res_cmds_q == '0));

  // A beat that is not the last of its unit returns to the group's first: its units have places.
  logic          unit, back;
  logic [PW-1:0] now, base;  // before this beat, of this command's layout
  assign unit = take_i && c_staged_i;
  assign back = tok_last_i && !final_i;
  assign now  = change ? c_room_i : free_q + PW'(rd_i);
  assign base = change ? c_room_i : base_q + PW'(rd_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      start_q    <= 1'b1;
      free_q     <= '0;
      base_q     <= '0;
      full_q     <= 1'b1;
      acc_q      <= '0;
      res_cmds_q <= '0;
      res_q      <= '0;
    end else begin
      res_q      <= {res_q[APART-2:0], take_i && !c_staged_i};
      res_cmds_q <= res_cmds_q + 4'(take_i && last_i && !c_staged_i) - 4'(res_i);
      acc_q      <= acc_q + (AW + 1)'(unit && final_i) - (AW + 1)'(rd_i);
      if (take_i) start_q <= last_i;
      if (unit) begin
        free_q <= back ? base : now - PW'(1);
        base_q <= tok_last_i && final_i ? now - PW'(1) : base;
        full_q <= !back && now == PW'(1);
      end else begin
        free_q <= free_q + PW'(rd_i);
        base_q <= base_q + PW'(rd_i);
        if (rd_i) full_q <= 1'b0;
      end
    end
  end

  `MR_ASSERT(full, full_q == (free_q == '0))
  `MR_ASSERT_COUNT(units, acc_q, unit && final_i, rd_i, mr_epi_pkg::JOBS)
  `MR_ASSERT_COUNT(residuals, res_cmds_q, take_i && last_i && !c_staged_i, res_i, 15)

endmodule
