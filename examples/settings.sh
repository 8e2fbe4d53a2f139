# SPDX-License-Identifier: Apache-2.0
# Read by the other scripts. From the repository, after 'make all':
#   MODEL=gpt-j-6b.mill DEVICE=xrt: examples/sentiment.sh "What a waste of time."
# The demo model has only ever seen an old book, so its answers are nonsense; any GPT-J checkpoint,
# as a Hugging Face directory or packed ('millrace pack'), gives better ones.
: "${MODEL:=models/demo}"
: "${DEVICE:=model:}"
: "${MILLRACE:=build/millrace}"

# One line of at most $1 tokens behind the prompt $2. More options may follow.
answer() {
    tokens=$1 prompt=$2
    shift 2
    text=$("$MILLRACE" generate -m "$MODEL" -d "$DEVICE" -q --no-echo -n "$tokens" --stop '\n' "$@" -- "$prompt") || exit
    printf '%s\n' "${text# }"
}
