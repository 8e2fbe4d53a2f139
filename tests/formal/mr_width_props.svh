// SPDX-License-Identifier: Apache-2.0
// Included by mr_width under FORMAL. With an input that stands until it is taken, and outside
// clear: an offered output stands too, and a tracked part comes out where and when it must.
logic f_init = 1'b1;
always_ff @(posedge clk_i) f_init <= 1'b0;
always @* if (f_init) assume (!rst_ni);

// The same parts go in and come out: UNIT bits each, counted modulo 2^FW. What is between is less
// than a wide word.
localparam int UNIT = (IN < OUT) ? IN : OUT;
localparam int FI = IN / UNIT, FO = OUT / UNIT, FW = CW + 2;
(* anyconst *) logic [FW-1:0] f_which;  // the part that is tracked
(* anyconst *) logic [UNIT-1:0] f_part;
logic [FW-1:0] f_in, f_out, f_inside;
logic f_in_was, f_out_was;
logic [IN-1:0]  f_in_data;
logic [OUT-1:0] f_out_data;
assign f_inside = f_in - f_out;
always_ff @(posedge clk_i) begin
  if (!rst_ni || clear_i) begin
    f_in      <= '0;
    f_out     <= '0;
    f_in_was  <= 1'b0;
    f_out_was <= 1'b0;
  end else begin
    if (in_valid_i && in_ready_o) f_in <= f_in + FW'(FI);
    if (out_valid_o && out_ready_i) f_out <= f_out + FW'(FO);
    f_in_was  <= in_valid_i && !in_ready_o;
    f_out_was <= out_valid_o && !out_ready_i;
  end
  f_in_data  <= in_data_i;
  f_out_data <= out_data_o;
end
always @* begin
  if (!f_init && rst_ni && !clear_i) begin
    if (f_in_was) assume (in_valid_i && in_data_i == f_in_data);
    for (int i = 0; i < FI; i++)
      if (in_valid_i && f_in + FW'(i) == f_which) assume (in_data_i[UNIT*i+:UNIT] == f_part);
    if (f_out_was) assert (out_valid_o && out_data_o == f_out_data);
    for (int i = 0; i < FO; i++)
      if (out_valid_o && f_out + FW'(i) == f_which) assert (out_data_o[UNIT*i+:UNIT] == f_part);
  end
end

// By induction: what is between, and where in the register the tracked part lies.
if (IN < OUT) begin : gen_f_join
  always @* begin
    if (!f_init && rst_ni) begin
      assert (f_inside == FW'(gen_parts.n_q) && gen_parts.n_q <= CW'(FO - 1));
      for (int j = 0; j < FO - 1; j++)
        for (int k = j + 1; k < FO; k++)
          if (gen_parts.n_q == CW'(k) && f_out + FW'(j) == f_which)
            assert (gen_parts.gen_join.parts_q[OUT-(k-j)*IN+:IN] == f_part);
    end
  end
end else begin : gen_f_split
  always @* begin
    if (!f_init && rst_ni) begin
      assert (f_inside == (gen_parts.n_q == '0 ? '0 : FW'(FI) - FW'(gen_parts.n_q)));
      for (int j = 0; j < FI - 1; j++)
        if (gen_parts.n_q != '0 && FW'(j) < f_inside && f_out + FW'(j) == f_which)
          assert (gen_parts.gen_split.rest_q[j*OUT+:OUT] == f_part);
    end
  end
end
