#!/bin/bash
# make.sh - data/kdd12 of KDD Cup 2012, track 2: a row for the impressions with a click of each line and one for those
# without, weighted by their number; gender and age of the user behind it; lines drawn for train, valid and test in 8:1:1.
. "$(dirname "$0")/../kit"
takes 2 "training.txt userid_profile.txt" "$@"
makes data/kdd12 train.tsv valid.tsv test.tsv
awk -F '\t' -v OFS='\t' -v to="$making/" "$draw"'
    NR == FNR { user[$1] = $2 "\t" $3; next }
    {
        file = to part() ".tsv"; clicks = $1; rest = $2 - $1; $1 = $2 = ""
        line = substr($0, 3) "\t" ($12 in user ? user[$12] : "\t")
        if (clicks > 0) print 1, clicks, line >file
        if (rest > 0) print 0, rest, line >file
    }' "$2" "$1"
made
