// SPDX-License-Identifier: Apache-2.0
// Beats of a column group of a matrix of tiles (docs/inside/commands.md, "Weight stream"): sections
// of 16 blocks each, a beat of codes and two of elements for each block. The last section may be
// short.
package mr_stash_pkg;

  // Of n whole sections.
  function automatic [17:0] sections(input [11:0] n);
    sections = {1'b0, n, 5'd0} + {6'd0, n};
  endfunction

  // Of a group of n blocks.
  function automatic [17:0] group_beats(input [15:0] n);
    group_beats = {2'd0, 16'((17'(n) + 17'd15) >> 4)} + {1'b0, n, 1'b0};
  endfunction

  // From the group's first beat to the last one of block k.
  function automatic [17:0] to_block(input [15:0] k);
    to_block = sections(k[15:4]) + {13'd0, k[3:0], 1'b0} + 18'd3;
  endfunction

endpackage
