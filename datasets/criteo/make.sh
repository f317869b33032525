#!/bin/bash
# make.sh - data/criteo of the Kaggle set: the first eight tenths in the order of time to train, a tenth each to validate
# and to test.
. "$(dirname "$0")/../kit"
takes 1 "train.txt of dac.tar.gz" "$@"
is_file "$1" 4dcfe6c4b7783585d4ae3c714994f26a
makes data/criteo train.tsv valid.tsv test.tsv
awk -v to="$making/" -v tenth=$((($(wc -l <"$1") + 5) / 10)) -v rows="$(wc -l <"$1")" '
    { print >(to (NR > rows - tenth ? "test" : NR > rows - 2 * tenth ? "valid" : "train") ".tsv") }' "$1"
made
