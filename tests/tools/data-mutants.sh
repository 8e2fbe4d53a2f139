#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice when training data is wrong? Each mutant is host/data with one line changed; a test of the
# unit test data must fail. Prints TAP.
# usage, from the repository's root: tests/tools/data-mutants.sh [BUILD_DIR [WORD]]
set -u
build=${1:-build}/data-mutants
folders=(data)
others=(host/cli/data/train_data.c)
more='-lhdf5_serial -lzstd'
declare -A tests=([test_data]="records_are_read wrong_records_are_refused compressed_text_is_read each_target_is_learnt_once
    files_are_read_back damaged_files_are_refused other_files_are_read_or_refused directories_are_read what_is_no_text_is_named
    rows_that_cannot_be_there_are_refused other_compression_is_named interrupts_are_heard"
    [test_labels]="labels_are_sorted labels_may_be_given texts_are_read_back what_does_not_fit_is_refused other_files_are_read_or_refused")

# "name|file below host/|sed expression|test"
mutants=(
    'windows: what overlaps is learnt again|data/windows.c|s/known > at ? (int)(known - at) : 0/0/|test_data'
    'windows: the overlap is forgotten|data/windows.c|s/at += sequence - overlap/at += sequence/|test_data'
    'windows: prompts are learnt|data/windows.c|s/learnt > from + 1 ? learnt - 1 : from/from/|test_data'
    'windows: windows of a prompt stay|data/windows.c|s/if (at + count <= known)/if (0)/|test_data'
    'csv: a doubled quote ends the field|data/csv.c|s/b == .". \&\& mr_source_peek(c->source) != .".)/b == 34)/|test_data'
    'csv: a line feed in quotes is not counted|data/csv.c|s/    c->next_line += b == .\\n.;/    ;/|test_data'
    'csv: CR LF is one character of a field|data/csv.c|s/if (b == .\\r. \&\& mr_source_peek(c->source) == .\\n.)/if (0)/|test_data'
    'records: the mark of UTF-8 is text|data/records.c|s/s->at += 3/;/|test_data'
    'records: a text goes before a pair|data/records.c|s/pair = !labelled \&\& v->text\[PROMPT\]/pair = !labelled \&\& !v->text[TEXT] \&\& v->text[PROMPT]/|test_data'
    'records: gzip is a text|data/records.c|s/int rc = format == MR_DATA_TEXT/int rc = 1/|test_data'
    'zstd: an end within a frame is an end|data/source.c|s/s->more = left != 0/s->more = false/|test_data'
    'zstd: the second frame is lost|data/source.c|s/s->in_at = in\.pos/s->in_at = left ? in.pos : s->in_count/|test_data'
    'files: the checksum is not compared|data/examples.c|s/f\.hash != XXH3/0 != XXH3/; s/: 0 != XXH3_64bits(file->data + sizeof f, file->size - sizeof f)/: 0/|test_data'
    'files: a damaged name is somebody else|data/examples.c|s/f\.bytes == sizeof f/0/; s/f\.size == file->size))/0))/|test_data'
    'files: Ctrl-C is too late|data/examples_write.c|s/rc == 0 \&\& mr_device_stop/0/|test_data'
    'files: the mask is not looked at|data/examples.c|s/bool there = e->types > 0.*;/bool there = true;/|test_data'
    'files: any mask is one|data/examples.c|s/if (!learnt \&\& mask\[i\] != 0)/if (0)/|test_data'
    'files: ids beyond the vocabulary|data/examples.c|s/row\[i\] >= vocab/0/|test_data'
    'files: always the first file|data/examples.c|s/read_rows(e, x->file, /read_rows(e, 0, /|test_data'
    'labels: numbers are sorted by their bytes|data/labels.c|s/return numbers ? strtol/return 0 ? strtol/|test_labels'
    'labels: names are turned, numbers are not|data/examples_write.c|s/w->labels\[i\] = to\[w->labels\[i\]\]/(void)to/|test_labels'
    'labels: a text may have holes|data/examples.c|s/if (mask\[i\] != 1/if (0/|test_labels'
    'labels: any type of token|data/examples.c|s/types\[i\] < e->types/1/|test_labels'
    'labels: files have other names|data/examples.c|s/if (!same(\&names, \&e->labels))/if (0)/|test_labels'
    'labels: one that is not there is added|data/labels.c|s/    if (l->closed) {/    if (0) {/|test_labels'
    'files: rows end one early|data/examples_write.c|s/row\[length + i\] = there \&\& i >= window->skip/row[length + i] = there \&\& i > window->skip/|test_data'
    'files: the last rows are not written|data/examples_write.c|s/bool ok = write_rows(w) \&\& put/bool ok = put/|test_data'
)

. tests/tools/mutants.sh
