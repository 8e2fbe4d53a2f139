// SPDX-License-Identifier: Apache-2.0
// What a module promises and relies on, as assertions at each rising edge of clk_i outside reset
// (rst_ni), from the first reset on. Simulators have them with the macro MILLRACE_ASSERT, proofs
// (FORMAL) as properties; elsewhere they are nothing. NAME says which one failed.
//
//   MR_ASSERT(NAME, CONDITION)
//   MR_ASSERT_STABLE(NAME, VALID, READY, PAYLOAD)   VALID without READY stays, with its PAYLOAD
//   MR_ASSERT_ONEHOT0(NAME, BITS)                   one bit is set at most
//   MR_ASSERT_COUNT(NAME, COUNT, MORE, LESS, MOST)  COUNT + MORE - LESS is in 0..MOST
`ifndef MR_ASSERT_SVH
`define MR_ASSERT_SVH

`ifdef MILLRACE_ASSERT
  `define MR_ASSERT(NAME, CONDITION) \
    logic NAME``_live_q = 1'b0; \
    always @(posedge clk_i) begin \
      if (!rst_ni) NAME``_live_q <= 1'b1; \
      if (rst_ni && NAME``_live_q) assert (CONDITION) else $error(`"NAME`"); \
    end
`elsif FORMAL
  `define MR_ASSERT(NAME, CONDITION) \
    always @* if (rst_ni) assert (CONDITION);
`endif

`ifdef MR_ASSERT
  `define MR_ASSERT_STABLE(NAME, VALID, READY, PAYLOAD) \
    logic NAME``_wait_q; \
    logic [$bits(PAYLOAD)-1:0] NAME``_was_q; \
    always_ff @(posedge clk_i) begin \
      NAME``_wait_q <= rst_ni && (VALID) && !(READY); \
      if ((VALID) && !(READY)) NAME``_was_q <= PAYLOAD; \
    end \
    `MR_ASSERT(NAME, !NAME``_wait_q || ((VALID) && NAME``_was_q == (PAYLOAD)))
  `define MR_ASSERT_ONEHOT0(NAME, BITS) \
    `MR_ASSERT(NAME, ((BITS) & ((BITS) - 1'b1)) == '0)
  `define MR_ASSERT_COUNT(NAME, COUNT, MORE, LESS, MOST) \
    `MR_ASSERT(NAME, 32'({COUNT}) + 32'({MORE}) >= 32'({LESS}) && \
                     32'({COUNT}) + 32'({MORE}) - 32'({LESS}) <= 32'(MOST))
`else
  `define MR_ASSERT(NAME, CONDITION)
  `define MR_ASSERT_STABLE(NAME, VALID, READY, PAYLOAD)
  `define MR_ASSERT_ONEHOT0(NAME, BITS)
  `define MR_ASSERT_COUNT(NAME, COUNT, MORE, LESS, MOST)
`endif

`endif
