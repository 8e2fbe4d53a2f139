# SPDX-License-Identifier: Apache-2.0
# What make test calls a script: tests/e2e/train/config.sh is e2e-train-config, tests/e2e/train/train.sh e2e-train.
s|^tests/e2e/||
s|\.sh$||
s|^\([^/]*\)/\1$|\1|
s|/|-|
s|^|e2e-|
