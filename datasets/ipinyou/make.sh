#!/bin/bash
# make.sh - data/ipinyou of what make-ipinyou-data leaves in its folder all: its training days, of which the last tenth
# validates, and its test days.
. "$(dirname "$0")/../kit"
takes 2 "train.log.txt test.log.txt" "$@"
makes data/ipinyou train.tsv valid.tsv test.tsv
awk -v to="$making/" -v rows="$(wc -l <"$1")" '
    NR == 1 { print >(to "train.tsv"); print >(to "valid.tsv"); next }
    { print >(to (NR > rows - int(rows / 10) ? "valid.tsv" : "train.tsv")) }' "$1"
cp "$2" "$making/test.tsv"
made
