#!/bin/bash
# make.sh - data/avazu of Kaggle's train.gz: rows drawn for train, valid and test in 8:1:1.
. "$(dirname "$0")/../kit"
takes 1 "train.gz of the competition" "$@"
makes data/avazu train.csv valid.csv test.csv
gzip -dc "$1" | awk -v to="$making/" "$draw"'
    NR == 1 { print >(to "train.csv"); print >(to "valid.csv"); print >(to "test.csv"); next }
    { print >(to part() ".csv") }'
made
