#!/bin/bash
# make.sh - data/movielens of ml-1m: tabs for '::', rows shuffled once, so that every part has all users.
. "$(dirname "$0")/../kit"
takes 1 "ratings.dat of ml-1m.zip" "$@"
is_file "$1" a89aa3591bc97d6d4e0c89459ff39362
makes data/movielens train.tsv valid.tsv test.tsv
sed 's/::/\t/g' "$1" | shuf --random-source="$1" | awk -v to="$making/" -v rows="$(wc -l <"$1")" '
    { print >(to (NR <= rows * .8 ? "train" : NR <= rows * .9 ? "valid" : "test") ".tsv") }'
made
