// SPDX-License-Identifier: Apache-2.0
// Technology block: two 32-lane int8 dot products a cycle, of one block of activations with two
// blocks of weights. Two neighbouring columns of the array share it.
//
// Elements are two's complement, lane 0 in the low byte. Weights may be -128, activations lie in
// -127..127 (the quantiser clamps). Both sums then fit 20 bits signed; they are sign-extended.
//
// Forms, with the same bits in the same cycles:
//   portable  (DSP 0)  a product a multiplier
//   DSP48E2   (DSP 1)  two products a multiplier, 32 DSP48E2: the pre-adder packs two weights,
//                        (hi * 2^18 + lo) * a = (hi * a) * 2^18 + lo * a,
//                      and four DSPs in a cascade add their products. Operands, products and
//                      partial sums have their registers inside the DSPs. The portable form is
//                      taken where the build has no MILLRACE_DSP48E2 (mr_tech_pkg).
//
// Parameters
//   DSP   the form
//   PES   2; or 1 (portable): there is no hi, d_hi_o is 0
//
// Timing: v_i holds the enables of four stages, which a step passes in consecutive cycles: 0
// operands (a_i and w_i belong to it), 1 products, 2 sums of four lanes, 3 sums. d_lo_o and d_hi_o
// hold the step's sums from the cycle after its bit 3 until the next step's.
module mr_dot #(
  parameter int DSP = 0,
  parameter int PES = 2
) (
  input  logic               clk_i,
  input  logic        [ 3:0] v_i,
  input  logic       [255:0] a_i,
  input  logic       [511:0] w_i,    // lo in the low half
  output logic signed [31:0] d_lo_o,
  output logic signed [31:0] d_hi_o
);

  if (DSP != 0 && mr_tech_pkg::Have != 0) begin : gen_dsp48e2
    // Half a DSP's range a half of the sum, so that no half is negative: four products lie within
    // 4 * 127 * 128 < 2^16. Each cascade begins with it.
    localparam logic [47:0] Bias = 48'h4_0001_0000;
    logic [8*36-1:0] sums;  // of the eight cascades
    for (genvar g = 0; g < 8; g++) begin : gen_cascade
      logic [47:0] up;
      logic [191:0] unused_p;
      logic unused;
      mr_dot_cascade #(.BIAS(Bias)) u_cascade (
        .clk_i, .v_i(v_i[2:0]), .alone_i(1'b0), .link_i(1'b1), .a_i(a_i[32*g+:32]),
        .lo_i(w_i[32*g+:32]), .hi_i(w_i[256+32*g+:32]), .p_i(27'd0), .up_o(up), .p_o(unused_p)
      );
      assign sums[36*g+:36] = up[35:0];
      assign unused = ^up[47:36];
    end
    logic [19:0] lo, hi, lo_q, hi_q;
    mr_dot_halves u_halves (.sums_i(sums), .lo_o(lo), .hi_o(hi));
    always_ff @(posedge clk_i) begin
      if (v_i[3]) begin
        lo_q <= lo;
        hi_q <= hi;
      end
    end
    assign d_lo_o = 32'($signed(lo_q));
    assign d_hi_o = 32'($signed(hi_q));
  end else begin : gen_portable
    // 32 bits declared: the C++ needs no masks; synthesis trims them to 16, 18 and 20.
    logic [255:0] a_q;
    logic [511:0] w_q;
    logic signed [31:0] p_q[0:63];
    logic signed [31:0] s_q[0:15];
    logic signed [31:0] lo_q, hi_q;

    // Lane order (byte b of word j): eight neighbours are handled alike, which is a vector in C++.
    always_ff @(posedge clk_i) begin
      if (v_i != 4'd0) begin
        if (v_i[0]) begin
          a_q <= a_i;
          w_q <= w_i;
        end
        if (v_i[1]) begin
          for (int b = 0; b < 4; b++) begin
            for (int j = 0; j < 8; j++) begin
              p_q[8*b+j] <= 32'($signed(a_q[32*j+8*b+:8])) * 32'($signed(w_q[32*j+8*b+:8]));
            end
            for (int j = 0; PES > 1 && j < 8; j++) begin
              p_q[32+8*b+j] <=
                  32'($signed(a_q[32*j+8*b+:8])) * 32'($signed(w_q[256+32*j+8*b+:8]));
            end
          end
        end
        if (v_i[2]) begin
          for (int j = 0; j < 8; j++) begin
            s_q[j] <= (p_q[j] + p_q[8+j]) + (p_q[16+j] + p_q[24+j]);
          end
          for (int j = 0; PES > 1 && j < 8; j++) begin
            s_q[8+j] <= (p_q[32+j] + p_q[40+j]) + (p_q[48+j] + p_q[56+j]);
          end
        end
        if (v_i[3]) begin
          lo_q <= ((s_q[0] + s_q[1]) + (s_q[2] + s_q[3])) + ((s_q[4] + s_q[5]) + (s_q[6] + s_q[7]));
          hi_q <= (PES > 1) ? ((s_q[8] + s_q[9]) + (s_q[10] + s_q[11])) +
                                  ((s_q[12] + s_q[13]) + (s_q[14] + s_q[15])) : 32'd0;
        end
      end
    end
    assign d_lo_o = 32'($signed(lo_q[19:0]));
    assign d_hi_o = 32'($signed(hi_q[19:0]));
    logic unused;
    assign unused = ^{lo_q[31:20], hi_q[31:20]};
  end

endmodule
