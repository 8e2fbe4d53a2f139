# SPDX-License-Identifier: Apache-2.0
"""A report of nextpnr-ecp5 (JSON) -> a row of the table. usage: report.py REPORT.json MODULE CONFIGURATION PARAMETERS"""
import json
import re
import sys

report = json.load(open(sys.argv[1]))
name, config, parameters = sys.argv[2:5]
mhz = next(iter(report["fmax"].values()))["achieved"]
used = {k: v["used"] for k, v in report["utilization"].items()}
# The path that sets the frequency: within the clock, not to or from a pin.
paths = [p for p in report["critical_paths"] if "async" not in p["from"] + p["to"]]
path = max(paths, key=lambda p: sum(s["delay"] for s in p["path"]))["path"]
routing = sum(s["delay"] for s in path if s["type"] == "routing")
total = sum(s["delay"] for s in path)


def register(cell):
    return re.sub(r"(_TRELLIS|_CCU2C|_MULT|_LUT|_PFUMX|_L6MUX).*", "", re.sub(r"^u_dut\.", "", cell))


def end(step, which):
    return register(step[which]["cell"])


print(
    f"| `{name}` | `{config}` | {parameters.replace(',', ', ')} | {mhz:.0f} | {used.get('TRELLIS_COMB', 0)} | {used.get('TRELLIS_FF', 0)} "
    f"| {used.get('MULT18X18D', 0)} | {used.get('DP16KD', 0)} | {100 * routing / total:.0f} % "
    f"| `{end(path[0], 'from')}` to `{end(path[-1], 'to')}` |"
)
