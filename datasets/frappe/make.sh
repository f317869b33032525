#!/bin/bash
# make.sh - data/frappe of Frappe_x1: its three files, compressed.
. "$(dirname "$0")/../kit"
takes 3 "train.csv valid.csv test.csv" "$@"
is_file "$1" ba7306e6c4fc19dd2cd84f2f0596d158
is_file "$2" 88d51bf2173505436d3a8f78f2a59da8
is_file "$3" 3470f6d32713dc5f7715f198ca7c612a
makes data/frappe train.csv.gz valid.csv.gz test.csv.gz
gzip -nc "$1" >"$making/train.csv.gz"
gzip -nc "$2" >"$making/valid.csv.gz"
gzip -nc "$3" >"$making/test.csv.gz"
made
