#!/bin/sh
# peers_export.sh - a group exports what one process does, byte for byte; and nothing when it cannot.
. "$(dirname "$0")/kit"
export TNET_FAST=5

for i in 0 1 2; do
    clicks "$dir/$i.tsv" 1200 $((i * 1200))
done
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: ["$dir/0.tsv", "$dir/1.tsv", "$dir/2.tsv"], part_bytes: 64kB}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16]}
train: {batch: 60, threads: 1}
export: {dict: [tnd, tsv]}
log: {progress: false}
END
config=$dir/c.yaml

expect 0 tnet-train "$config" --peers 3 run.dir="$dir/run"
expect 0 tnet-export "$config" run.dir="$dir/run" export.to="$dir/by-1"
one=$(cat "$dir/out")
[ -s "$one/dict.tnd" ] || fail "no dictionary in '$one'"
for n in 2 3 4; do
    expect 0 tnet-export "$config" run.dir="$dir/run" export.to="$dir/by-$n" --peers $n
    [ "$(basename "$(cat "$dir/out")")" = "$(basename "$one")" ] || fail "another id: $(cat "$dir/out")"
    diff -r "$dir/by-1" "$dir/by-$n" >&2 || fail "$n peers export other bytes"
done
expect 0 tnet-export "$config" run.dir="$dir/run" export.to="$dir/by-4" --peers 2 --json
grep -q '"existed":true' "$dir/out" || fail "not there already: $(cat "$dir/out")"
echo "$name: 1, 2, 3 and 4 peers export the same"

# What fails is told once, and leaves nothing.
expect 5 tnet-export "$config" run.dir="$dir/none" export.to="$dir/none/x" --peers 2
says "no checkpoint"
: >"$dir/file"
expect 8 tnet-export "$config" run.dir="$dir/run" export.to="$dir/file/x" --peers 3
says "file"
echo "$name: failures"
