# SPDX-License-Identifier: Apache-2.0
# fp32's losses of tests/train/learn.c's lines, as make demo-train shows them.
BEGIN { print "# fp32's losses of make demo-train, by make demo-train-record: loss or held, step, nats" }
$3 == "loss" { printf "loss,%d,%.4f\n", $4, $5; next }
NF == 5 { printf "held,%d,%.4f\n", $3, $4 }
