#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# XLS IR to a pipeline in SystemVerilog. usage: schedule.py in.ir NAME STAGES out.sv
import sys

import xls.c_api as xls

source, name, stages, out = sys.argv[1:5]
package = xls.Package.parse_ir(xls.optimize_ir(open(source).read(), name))
result = package.schedule_and_codegen(
    with_delay_model=True, delay_model='unit', generator='pipeline', pipeline_stages=int(stages),
    module_name=name, input_valid_signal='in_valid', output_valid_signal='out_valid', reset='rst',
    use_system_verilog=True, flop_inputs=True, flop_outputs=True)
text = result.get_verilog_text() if hasattr(result, 'get_verilog_text') else str(result)
open(out, 'w').write(text)
