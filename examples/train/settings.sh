# SPDX-License-Identifier: Apache-2.0
# Read by the other scripts of this directory. From the repository, after 'make all':
#   MODEL=gpt-j-6b STEPS=500 STATE=my-state examples/train/instructions.sh my-pairs.jsonl
# MODEL is a Hugging Face directory of a GPT-J or GPT-2. STATE is kept, and the same command goes on
# with it; without STATE everything is in a directory that is removed at the end. SEQUENCE is the
# tokens of a window, BATCH its windows a step, RATE the learning rate.
: "${MODEL:=models/demo}"
: "${DEVICE:=model:sim}"
: "${MILLRACE:=build/millrace}"
: "${SEQUENCE:=96}"
: "${BATCH:=8}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What the model says behind the prompt $2, in one line. $1 is its directory.
says() {
    text=$("$MILLRACE" generate -m "$1" -d model: -q --no-echo -n 40 --stop '\n' -- "$2") || exit
    printf '%s\n' "${text# }"
}

# Windows of documents: $1 is their file, more options of 'millrace data' may follow. Sets $data.
windows() {
    data=$work/windows.h5
    line=$("$MILLRACE" data "$MODEL" "$@" -o "$data" --sequence "$SEQUENCE") || exit
    printf '%s\n' "${line#"$work"/}"
}

# Learns $data, which is a text or what windows() made of documents, in $1 steps if STEPS does not
# say another number. The weights go to $tuned.
learn() {
    steps=${STEPS:-$1}
    shift
    tuned=$work/tuned
    "$MILLRACE" train "$MODEL" --data "$data" -d "$DEVICE" -o "${STATE:-$work/state}" \
        --steps "$steps" --batch "$BATCH" --lr "${RATE:-5e-4}" --schedule cosine --min-lr 0.1 \
        --warmup $(((steps + 9) / 10)) --log-every $(((steps + 4) / 5)) --export "$tuned" "$@" || exit
}

# Asks $1, learns in $2 steps, and asks again.
before_and_after() {
    before=$(says "$MODEL" "$1") || exit
    learn "$2" --heldout 0
    after=$(says "$tuned" "$1") || exit
    printf '%s\nbefore: %s\nafter:  %s\n' "$1" "$before" "$after"
}
