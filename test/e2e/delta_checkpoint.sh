#!/bin/sh
# delta_checkpoint.sh - a checkpoint that holds changes only is read by the other programs as the whole that it
# stands for: the same evaluation, predictions, scores and rows as from a full one of the same step.
. "$(dirname "$0")/kit"
clicks "$dir/train.tsv" 3000 0
clicks "$dir/test.tsv" 500 3000
cd "$dir"
cat >run.yaml <<END_OF_RUN
run: {name: delta}
data: {format: criteo, train: train.tsv, test: test.tsv}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 1, batch: 100, threads: 2}
checkpoint: {keep: 10}
log: {progress: false}
export: {to: export, dict: [tnd, tsv]}
END_OF_RUN

# full: every five steps all of it. delta: all of it at steps 15 and 30, changes in between; what nothing
# stands below, the first one, is full too.
expect 0 tnet-train -q run.yaml run.dir=full checkpoint.every=5steps
expect 0 tnet-train -q run.yaml run.dir=delta checkpoint.every=15steps checkpoint.delta_every=5steps
for n in 4 5; do
    grep -q '"base":{' "delta/ckpt-$n/MANIFEST" || fail "delta/ckpt-$n stands on nothing: $(ls delta)"
    if grep -q '"base":{' "full/ckpt-$n/MANIFEST"; then fail "full/ckpt-$n is none"; fi
done
[ "$(du -b delta/ckpt-5/sparse-* | cut -f 1)" -lt "$(du -b full/ckpt-5/sparse-* | cut -f 1)" ] ||
    fail "the delta is as large as the whole"

# evaluation
for run in full delta; do
    expect 0 tnet-eval -q run.yaml --checkpoint "$run/ckpt-5" --predictions "$run.tsv" --json
    sed 's/"seconds":[^,}]*//; s/"checkpoint":[^,}]*//; s/"rows_per_s":[^,}]*//' out >"$run.json"
done
[ "$(wc -l <full.tsv)" -eq 501 ] || fail "$(wc -l <full.tsv) lines for 500 rows"
cmp full.tsv delta.tsv || fail "other predictions"
grep -q '"auc"' full.json || fail "no metrics: $(cat full.json)"
grep -o '"[a-z]*":[0-9.e-]*' full.json | grep -E '"(auc|logloss|copc)"' >full.metrics
grep -o '"[a-z]*":[0-9.e-]*' delta.json | grep -E '"(auc|logloss|copc)"' | cmp - full.metrics || fail "other metrics"
tnet-eval -q run.yaml --checkpoint delta/ckpt-4 --predictions before.tsv >null
if cmp -s before.tsv delta.tsv; then fail "one delta is like the other"; fi

# export: ids are of files and so differ, what is in them does not
for run in full delta; do
    expect 0 tnet-export -q run.yaml --checkpoint "$run/ckpt-5"
    cp out "$run.export"
    expect 0 tnet-score "$(cat out)" --data test.tsv
    cp out "$run.scores"
    tail -n +3 "$(cat "$run.export")/dict.tsv" >"$run.rows"
done
[ "$(cat full.export)" != "$(cat delta.export)" ] || fail "one id for two checkpoints"
cmp full.scores delta.scores || fail "other scores"
cmp full.rows delta.rows || fail "other rows"

# the changes between two deltas as a delta of their exports
expect 0 tnet-export -q run.yaml --checkpoint delta/ckpt-4 --to changes export.dict=tnd
base=$(basename "$(cat out)")
expect 0 tnet-export -q run.yaml --checkpoint delta/ckpt-5 --to changes --delta-from "$base" export.dict=tnd
expect 0 tnet-score "$(cat out)" --data test.tsv
cmp out full.scores || fail "a delta of exports scores otherwise"

# a whole that is gone is said, by name
mv delta/ckpt-3 elsewhere
expect 5 tnet-eval -q run.yaml --checkpoint delta/ckpt-5
says "ckpt-3"
expect 5 tnet-export -q run.yaml --checkpoint delta/ckpt-5 --to nothing
says "ckpt-3"
[ ! -e nothing ] || [ -z "$(ls nothing)" ] || fail "left behind: $(ls nothing)"
