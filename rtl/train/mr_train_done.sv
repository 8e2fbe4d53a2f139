// SPDX-License-Identifier: Apache-2.0
// Whether what MATMULs give to mr_turned, mr_tiles and mr_slopes is stored: the epilogue asks
// before it says that one is done. Up to eight are inside.
//
// Ports
//   push_i  a MATMUL is issued; has_i: it has TURNED, TILES, KEEP_SLOPE, from bit 0
//   next_i  the oldest one is done
//   told_i  pulse of a unit, in the order of its commands: what it does for one is stored, or, with
//           bad_i and where in bad_addr_i, cannot be
//   ok_o    nothing of the oldest one is missing: from registers. bad_o: of that it cannot be
//           stored; bad_addr_o in the cycle after next_i: where, of tiles first
`include "mr_assert.svh"
module mr_train_done (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         push_i,
  input  logic [2:0]   has_i,
  input  logic         next_i,
  input  logic [2:0]   told_i,
  input  logic [1:0]   bad_i,
  input  logic [127:0] bad_addr_i,
  output logic         ok_o,
  output logic [1:0]   bad_o,
  output logic [63:0]  bad_addr_o
);

  logic [2:0] push_q, oldest_q, ok;
  logic       next_q;  // the oldest one is another in the next cycle: next_i comes late
  assign ok_o = &ok && !next_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      push_q   <= '0;
      oldest_q <= '0;
      next_q   <= 1'b0;
    end else begin
      push_q   <= push_q + 3'(push_i);
      oldest_q <= oldest_q + 3'(next_q);
      next_q   <= next_i;
    end
  end

  for (genvar k = 0; k < 3; k++) begin : gen_unit
    logic [7:0] has_q;    // of each command
    logic [3:0] count_q;  // told, and not yet done
    logic       has, pop;
    assign has   = has_q[oldest_q];
    assign pop   = next_q && has;
    assign ok[k] = !has || count_q != '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        count_q <= '0;
        has_q   <= '0;  // a run without training has none
      end else begin
        count_q <= count_q + 4'(told_i[k]) - 4'(pop);
        if (push_i) has_q[push_q] <= has_i[k];
      end
    end
    `MR_ASSERT_COUNT(told, count_q, told_i[k], pop, 8)
    if (k < 2) begin : gen_bad
      logic [7:0] bad_q;  // of each that was told
      logic [2:0] w_q, r_q;
      assign bad_o[k] = has && bad_q[r_q];
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          w_q <= '0;
          r_q <= '0;
        end else begin
          w_q <= w_q + 3'(told_i[k]);
          r_q <= r_q + 3'(pop);
        end
        if (told_i[k]) bad_q[w_q] <= bad_i[k];
      end
    end
  end

  // The address of the first one until it is reported.
  logic [1:0]   first_q;
  logic [127:0] addr_q;
  logic         tiles_q, report;
  assign report = next_q && bad_o != '0;  // the oldest one is still what was done
  always_ff @(posedge clk_i) begin
    tiles_q <= bad_o[1];
    first_q <= !rst_ni || report ? '0 : first_q | bad_i;
    for (int k = 0; k < 2; k++) begin
      if (bad_i[k] && !first_q[k]) addr_q[64*k+:64] <= bad_addr_i[64*k+:64];
    end
  end
  assign bad_addr_o = tiles_q ? addr_q[127:64] : addr_q[63:0];

endmodule
