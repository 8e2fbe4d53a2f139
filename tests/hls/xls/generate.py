#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The functions of cores.cpp as pipelines in SystemVerilog: clang makes LLVM IR of them,
translate.py XLS IR of that, and XLS puts registers between its operations.

usage, from the repository's root: tests/hls/xls/generate.py OUT_DIR [CORE..]

XLS knows no FPGA. Its model of a 130 nm process tells it how long operations take beside each
other, and each core has a period of its own in that model, by which its stages keep 300 MHz in
`make test-hls`. The same versions of clang and of requirements.txt give the same bytes.
"""
import os
import re
import subprocess
import sys

import translate
import xls.c_api as xls

CLANG = 'clang++-19'
FLAGS = ['-S', '-emit-llvm', '-O2', '-fno-vectorize', '-fno-slp-vectorize', '-Wall', '-Werror',
         '-Wno-unknown-pragmas', '-DMILLRACE_HAS_PRODUCT', '-I.', '-mllvm', '-unroll-threshold=100000', '-mllvm',
         '-inline-threshold=1000000']
# Core, names of its arguments, ps of the model between two registers.
CORES = [
    ('add', ['a_i', 'b_i'], 1350),
    ('multiply', ['a_i', 'b_i'], 1900),
    ('divide', ['a_i', 'b_i'], 1500),
    ('root', ['a_i'], 1500),
    ('widen', ['gradient_i', 'unit_i'], 1350),
    ('quantise', ['a_i', 'code_i'], 1350),
]
HEADER = '''// SPDX-License-Identifier: Apache-2.0
// Made by tests/hls/xls/generate.py from core_{name}() of tests/hls/xls/cores.cpp; change it there.
//
// Timing: operands in any cycle; y_o mr_hls_pkg::{upper}_LAT cycles later, {stages}. No stall, no
// reset.
//
// XLS slices what it needs from values of whole functions, so parts of them are unused.
// verilator lint_off UNUSEDSIGNAL
'''
PACKAGE = '''// SPDX-License-Identifier: Apache-2.0
// Made by tests/hls/xls/generate.py: cycles from the operands of a core to its result.
package mr_hls_pkg;
{lines}
endpackage
'''


def llvm_ir():
    return subprocess.run([CLANG, *FLAGS, '-o', '-', 'tests/hls/xls/cores.cpp'], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def pipeline(module, name, arguments, period):
    """The core's Verilog, and how many cycles it takes."""
    function = translate.Function(module.get_function('core_' + name), name, arguments)
    optimised = xls.optimize_ir(f'package {name}\n\n{translate.PRODUCT_IR}\n{function.text}', name)
    made = xls.Package.parse_ir(optimised).schedule_and_codegen(
        with_delay_model=True, delay_model='sky130', clock_period_ps=period,
        ffi_fallback_delay_ps=period, generator='pipeline',
        module_name='mr_hls_' + name, output_port_name='y_o', flop_inputs=False,
        flop_outputs=True, use_system_verilog=True, separate_lines=False)
    text = re.sub(r'\bclk\b', 'clk_i', made.get_verilog_text())
    stages = len(re.findall(r'// Registers for pipe stage', text))
    return HEADER.format(name=name, upper=name.upper(), stages=stages) + text, stages


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split('\n\n')[1])
    out, wanted = sys.argv[1], sys.argv[2:]
    os.makedirs(out, exist_ok=True)
    module = translate.load(llvm_ir())
    latencies = []
    for name, arguments, period in CORES:
        if wanted and name not in wanted:
            continue
        text, stages = pipeline(module, name, arguments, period)
        latencies.append(f'  localparam int {name.upper()}_LAT = {stages};')
        with open(f'{out}/mr_hls_{name}.sv', 'w', encoding='ascii') as file:
            file.write(text)
        print(f'{name}: {stages} stages, {text.count(chr(10))} lines', flush=True)
    with open(f'{out}/mr_hls_pkg.sv', 'w', encoding='ascii') as file:
        file.write(PACKAGE.format(lines='\n'.join(latencies)))


if __name__ == '__main__':
    try:
        main()
    except translate.Untranslatable as error:
        sys.exit(f'generate.py: {error}')
