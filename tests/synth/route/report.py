# SPDX-License-Identifier: Apache-2.0
"""A report of nextpnr (JSON) -> a row of the table. usage: report.py REPORT.json MODULE CONFIGURATION PARAMETERS COLUMN..

A column is a type of cell, NAME=TYPE, or NAME=TYPE+NUMBER*TYPE../AVAILABLE, which is a share. `--head COLUMN..` prints the
two lines of the table's head instead.
"""
import json
import re
import sys


def column(text):
    """Its name, the cells of which it is the sum with how often each counts, and of how many it is a share."""
    name, _, terms = text.partition("=")
    terms, _, available = (terms or name).partition("/")
    pairs = [t.split("*") if "*" in t else ("1", t) for t in terms.split("+")]
    return name, [(int(n), cell) for n, cell in pairs], int(available or 0)


if sys.argv[1] == "--head":
    names = [column(c)[0] for c in sys.argv[2:]]
    print("| module | of | parameters | MHz |", "".join(f" {n} |" for n in names), " routing's share of the path | path | s | revision |", sep="")
    print("|---|---|---|---:|" + "---:|" * len(names) + "---:|---|---:|---|")
    sys.exit()

report = json.load(open(sys.argv[1]))
module, config, parameters = sys.argv[2:5]
mhz = next(iter(report["fmax"].values()))["achieved"]
used = {k: v["used"] for k, v in report["utilization"].items()}
# The path that sets the frequency: within the clock, not to or from a pin.
paths = [p for p in report["critical_paths"] if "async" not in p["from"] + p["to"]]
path = max(paths, key=lambda p: sum(s["delay"] for s in p["path"]))["path"]
routing = sum(s["delay"] for s in path if s["type"] == "routing")
total = sum(s["delay"] for s in path)


def register(cell):
    return re.sub(r"_(MULT|LUT|DFF|ALU|MUX2|RAM16).*", "", re.sub(r"^u_dut\.", "", cell))


def cells(text):
    _, terms, available = column(text)
    count = sum(n * used.get(cell, 0) for n, cell in terms)
    return f"{100 * count / available:.1f} %" if available else str(count)


print(
    f"| `{module}` | `{config}` | {parameters.replace(',', ', ')} | {mhz:.0f} | "
    + "".join(f"{cells(c)} | " for c in sys.argv[5:])
    + f"{100 * routing / total:.0f} % | `{register(path[0]['from']['cell'])}` to `{register(path[-1]['to']['cell'])}` |"
)
