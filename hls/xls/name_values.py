#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Names the values and blocks of LLVM IR that clang left without, so that ll2xls.py can tell them apart.
# usage: name_values.py <in.ll >out.ll
import re
import sys

text = re.sub(r'%(\d+)\b', r'%v\1', sys.stdin.read())
text = re.sub(r'^(\d+):', r'v\1:', text, flags=re.M)
for line in text.splitlines():
    print(line)
    head = re.match(r'define .*@\w+\((.*)\) .*\{', line)
    if head:  # the first block has the number behind the arguments'
        print('v%d:' % len(head.group(1).split(',')))
