// SPDX-License-Identifier: Apache-2.0
// MX element decoding: OCP MXFP4 (E2M1) to int8. Values are doubled, so that all of them are
// integers: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives. MXINT8 elements need no decoding.
package mr_mx_pkg;

  // One element.
  function automatic [7:0] fp4_int8(input [3:0] x);
    logic [3:0] v;
    begin
      v[0] = !x[2] && x[0];
      v[1] = x[2] ? !x[1] && x[0] : x[1];
      v[2] = x[2] && (!x[1] || x[0]);
      v[3] = x[2] && x[1];
      fp4_int8 = x[3] ? -{4'b0, v} : {4'b0, v};
    end
  endfunction

  // A beat of 128 elements: nibble i becomes byte i.
  function automatic [1023:0] fp4_beat(input [511:0] d);
    begin
      for (int i = 0; i < 128; i++) fp4_beat[8*i+:8] = fp4_int8(d[4*i+:4]);
    end
  endfunction

endpackage
