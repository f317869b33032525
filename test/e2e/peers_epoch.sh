#!/bin/sh
# peers_epoch.sh - K8: an epoch that 2, 3, 1 and 4 processes go on with, one group behind the other, at
# one staleness and another: every record is counted once, whoever learns it.
. "$(dirname "$0")/kit"

# Test builds divide their timers by this.
export TNET_FAST=5

clicks "$dir/a.tsv" 4500 0
clicks "$dir/b.tsv" 3300 4500
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: [$dir/a.tsv, $dir/b.tsv], shuffle: 50, part_bytes: 20KiB}
embedding: {dim: 2}
model: {type: widedeep, hidden: [4], bias_init: -1}
train: {batch: 32, epochs: 1, threads: 1}
checkpoint: {keep: 9}
export: {dict: [tsv], state: true}
log: {progress: false}
END

# counts RUN: group, key, shows and clicks of every row of the newest checkpoint.
counts() {
    model=$(tnet-export -q "$dir/c.yaml" --checkpoint "$1" --to "$1.export")
    awk -F '\t' '!/^#/ { print $1, $2, $3, $4 }' "$model/dict.tsv" | sort
}

# samples RUN: records that the run has consumed, by its summary.
samples() {
    sed -n 's/.*"samples":"\([0-9]*\)".*/\1/p' "$1/summary.json"
}

expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/whole"
counts "$dir/whole" >"$dir/want"
[ "$(wc -l <"$dir/want")" -gt 100 ] || fail "hardly any rows: $(head "$dir/want")"

steps=0
for turn in 2:0 3:inf 1:0 2:1 3:0 4:inf; do
    peers=${turn%:*}
    steps=$((steps + 6))
    [ "$peers" -ne 4 ] || steps=10000
    expect 0 tnet-train "$dir/c.yaml" --peers "$peers" run.dir="$dir/parts" train.max_steps="$steps" \
        cluster.staleness="${turn#*:}"
    newest=$dir/parts/$(cut -d' ' -f1 "$dir/parts/LATEST")
    [ "$(find "$newest" -name 'dense-*' | wc -l)" -eq "$peers" ] || fail "not by $peers: $(ls "$newest")"
    if [ "$peers" -ne 4 ]; then
        grep -q '"dealt"' "$newest/MANIFEST" || fail "$peers peers: not within an epoch"
        [ "$(samples "$dir/parts")" -lt 7800 ] || fail "$peers peers: the epoch is over"
    fi
    steps=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' "$dir/parts/summary.json") # perhaps a few more
done
[ "$(samples "$dir/parts")" -eq 7800 ] || fail "$(samples "$dir/parts") records of 7800"
grep -q '"epoch":1,"parts":\[\]' "$newest/MANIFEST" || fail "not between two epochs"
counts "$dir/parts" >"$dir/have"
cmp "$dir/want" "$dir/have" || fail "other counts: $(diff "$dir/want" "$dir/have" | head -n 4)"
