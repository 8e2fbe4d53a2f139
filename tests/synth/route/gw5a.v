// SPDX-License-Identifier: Apache-2.0
// Products (of Yosys' mul2dsp, signed) -> multipliers of GW5A, without their registers.
module \$__MR_MUL27X18 #(parameter A_WIDTH = 27, B_WIDTH = 18, Y_WIDTH = 45, A_SIGNED = 1, B_SIGNED = 1)
    (input [26:0] A, input [17:0] B, output [Y_WIDTH-1:0] Y);
  wire [47:0] dout;
  assign Y = dout;
  MULTALU27X18 #(.C_SEL(1'b0)) _TECHMAP_REPLACE_ (
    .A(A), .B(B), .DOUT(dout), .C(48'b0), .D(26'b0), .SIA(27'b0), .CASI(48'b0), .ACCSEL(1'b0), .PSEL(1'b0), .ASEL(1'b0),
    .PADDSUB(1'b0), .CSEL(1'b0), .CASISEL(1'b0), .ADDSUB(2'b0), .CLK(2'b0), .CE(2'b0), .RESET(2'b0));
endmodule

module \$__MR_MUL12X12 #(parameter A_WIDTH = 12, B_WIDTH = 12, Y_WIDTH = 24, A_SIGNED = 1, B_SIGNED = 1)
    (input [11:0] A, input [11:0] B, output [Y_WIDTH-1:0] Y);
  wire [23:0] dout;
  assign Y = dout;
  MULT12X12 _TECHMAP_REPLACE_ (.A(A), .B(B), .DOUT(dout), .CLK(2'b0), .CE(2'b0), .RESET(2'b0));
endmodule
