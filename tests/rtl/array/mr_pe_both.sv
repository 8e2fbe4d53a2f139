// SPDX-License-Identifier: Apache-2.0
// Both forms of mr_pe on the same inputs. acc_o is the portable form's; differ_o: the DSP48E2 form
// has another sum, dot product or aligned term.
module mr_pe_both (
  input  logic         clk_i,
  input  logic [  5:0] v_i,
  input  logic         first_i,
  input  logic [255:0] a_i,
  input  logic [511:0] w_i,
  input  logic         grad_i,
  input  logic [ 10:0] dr_i,
  input  logic [ 21:0] dc_i,
  output logic [ 95:0] acc_o,
  output logic [  1:0] below_o,
  output logic         differ_o
);
  logic [95:0] acc;
  logic signed [31:0] d[0:3];
  logic [1:0] below;
  mr_pe #(.GRAD(1)) u_portable (
    .clk_i, .v_i, .first_i, .grad_i, .a_i, .w_i, .dr_i, .dc_i, .acc_o, .below_o
  );
  mr_pe #(.DSP(1), .GRAD(1)) u_dsp (
    .clk_i, .v_i, .first_i, .grad_i, .a_i, .w_i, .dr_i, .dc_i, .acc_o(acc), .below_o(below)
  );
  // Dot products before alignment takes bits away.
  mr_dot u_dot (.clk_i, .v_i(v_i[3:0]), .a_i, .w_i, .d_lo_o(d[0]), .d_hi_o(d[1]));
  mr_dot #(.DSP(1)) u_dot_dsp (.clk_i, .v_i(v_i[3:0]), .a_i, .w_i, .d_lo_o(d[2]), .d_hi_o(d[3]));
  assign differ_o = acc != acc_o || below != below_o || d[0] != d[2] || d[1] != d[3];
endmodule
