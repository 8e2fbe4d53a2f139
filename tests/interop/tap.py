# SPDX-License-Identifier: Apache-2.0
"""TAP on standard output, for the tests of this folder."""
number = failed = 0


def ok(holds, name, comment=""):
    global number, failed
    number += 1
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} {number} - {name}{' # ' + comment if comment else ''}", flush=True)


def done():
    """Prints the plan; the exit status."""
    print(f"1..{number}")
    return int(failed > 0 or number == 0)
