// SPDX-License-Identifier: Apache-2.0
// The delays of the timing estimate, all of them, in nanoseconds: a model of an UltraScale+ of
// speed grade -2 with an average net. It is no data sheet and no measurement; it is there to
// compare paths and to keep them from growing.
#ifndef MR_STA_DELAYS_H
#define MR_STA_DELAYS_H

#define STA_NET        0.30  // a net between two slices, whatever its fan-out and its length
#define STA_LUT        0.10  // LUT, and the read address of distributed RAM and of shift registers
#define STA_MUXF       0.06  // MUXF7..9: inside the slice of the LUTs that feed it
#define STA_CARRY_IN   0.12  // S or DI into a carry chain; from a LUT there is no net before it
#define STA_CARRY_STEP 0.015 // a carry cell of four bits along the chain
#define STA_CARRY_OUT  0.10  // from the chain to a sum output
#define STA_DSP        1.90  // DSP48E2 without registers: 27 x 18 multiplier and adder
// One with registers for operands and product (mr_dot): product register to the cascade; adder,
// from the cascade, a control input or C to the next DSP or the register P; register P to output.
// An operand without a register passes pre-adder and multiplier before the product's register.
#define STA_DSP_OPERAND 1.80
#define STA_DSP_PRODUCT 0.95
#define STA_DSP_ADD     0.60
#define STA_DSP_CQ      0.30
#define STA_FF_CQ                                                                                  \
    0.08 // clock to output: flip-flop; also a port, which stands for a flip-flop behind it
#define STA_BRAM_CQ     0.95 // block RAM, UltraRAM (without their output registers)
#define STA_LUTRAM_CQ   0.45 // distributed RAM
#define STA_SRL_CQ      0.35 // shift register
#define STA_SETUP       0.05 // every register and memory
#define STA_UNCERTAINTY 0.10

// What a path may take at f MHz.
#define STA_LIMIT(mhz) (1000.0 / (mhz) - STA_UNCERTAINTY)

#endif
