#!/bin/sh
# short_epochs.sh - checkpoint.every: auto saves after an epoch that ends behind another 250,000 rows, and what is the best
# model meanwhile stands on the disk as soon as anything else does. A run that is killed or stopped leaves the same.
. "$(dirname "$0")/kit"
cd "$dir"
if sanitized; then skip "rows by the 100,000 take minutes"; fi

# stand RUN: checkpoints and the epochs that they are of.
stand() {
    for one in "$1"/ckpt-*; do
        echo "${one##*/}$(sed -n 's/.*\("epoch":[0-9]*\).*/ \1/p' "$one/MANIFEST" | head -n 1)"
    done
}

# same RUN RUN: the newest checkpoints hold the same bits; manifests have ordinals.
same() {
    diff -rq --exclude=MANIFEST "$1/$(cut -d' ' -f1 "$1/LATEST")" "$2/$(cut -d' ' -f1 "$2/LATEST")" >differ || fail "$2 is another model: $(cat differ)"
}

# blown POINT WORDS..: a run that ends there, with 137 or 75.
blown() {
    got=0
    point=$1
    shift
    { TNET_FAIL=$point tnet-train "$@" >out 2>err || got=$?; } 2>null
    [ "$got" -eq 137 ] || [ "$got" -eq 75 ] || fail "exit code $got at $point: $(cat err)"
}

# ---- 100,000 rows and five epochs: 250,000 are learned in the third, 500,000 at the end ----

awk 'BEGIN {print "label,a"; for (i = 0; i < 100000; i++) print (i * i % 7 < 2) "," i % 50}' >long.csv
head -n 1001 long.csv >valid.csv
cat >c.yaml <<'CONFIG'
data: {format: csv, label: label, train: long.csv, valid: valid.csv}
slots: [{name: a}]
model: lr
train: {batch: 1000, epochs: 5, threads: 1, optimizer: {type: adam, lr: 1e-3}, sparse: {type: adam, lr: 1e-3}, stop: {monitor: valid.logloss}}
log: {progress: false}
CONFIG
expect 0 tnet-train c.yaml run.dir=whole
printf 'ckpt-1 "epoch":3\nckpt-2 "epoch":5\n' >want
stand whole >have
cmp want have || fail "other checkpoints: $(cat have)"
for steps in 250 350; do # of 500, before and behind the first checkpoint
    rm -rf cut
    blown "step.0#$steps:kill" c.yaml run.dir=cut
    expect 0 tnet-train c.yaml run.dir=cut
    same whole cut
    stand cut >have
    cmp want have || fail "other checkpoints after a kill at $steps: $(cat have)"
done
expect 0 tnet-train c.yaml run.dir=each checkpoint.every=1epoch checkpoint.keep=9
[ "$(stand each | wc -l)" -eq 5 ] || fail "of five epochs: $(stand each)"

# The best model, of the second epoch, waits in memory until the checkpoint of the third is due: it is written first.
jumpy="train.optimizer.lr=0.3 train.sparse.lr=0.3 train.stop.patience=9"
printf 'ckpt-1 "epoch":2\nckpt-2 "epoch":3\nckpt-3 "epoch":5\nckpt-4 "epoch":5\n' >want
# shellcheck disable=SC2086 # words
expect 0 tnet-train c.yaml run.dir=waits $jumpy checkpoint.keep=9
grep -q 'restored the best model: logloss .* at step 200' err || fail "another best model: $(cat err)"
stand waits >have
cmp want have || fail "other checkpoints: $(cat have)"

# Where the disk refuses the rows of the model that waited, no other model is saved in its place, or called the best.
quiet="log.jsonl=false log.tensorboard=false checkpoint.on_error=warn"
refused=0
for write in 3 4 5 6 7; do
    # shellcheck disable=SC2086
    expect 0 env TNET_FAIL=io.write#$write:ENOSPC tnet-train c.yaml run.dir=refused$write $jumpy $quiet
    if grep -q 'cannot write .*sparse-' err; then
        refused=$((refused + 1))
        grep -q 'best model, .* at step 200, .* was not kept' err || fail "another model is the best: $(cat err)"
    fi
done
[ $refused -gt 0 ] || fail "no write was one of rows"

# Rows that a disk refuses are tried once more, and not for ever.
expect 8 env TNET_FAIL=io.write#5+:ENOSPC timeout 60 tnet-train c.yaml run.dir=full checkpoint.every=1epoch log.jsonl=false log.tensorboard=false

# ---- 1,200 rows: the best model is saved before what comes after it ----

clicks train.tsv 1200 0
clicks valid.tsv 400 1200
cat >s.yaml <<'CONFIG'
data: {format: criteo, train: train.tsv, valid: valid.tsv}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {batch: 100, epochs: 30, threads: 1, optimizer: {type: adam, lr: 1e-3}, sparse: {type: adam, lr: 1e-3}, stop: {monitor: valid.auc, patience: 3}}
log: {progress: false}
CONFIG
expect 0 tnet-train s.yaml run.dir=best
grep -q 'restored the best model' err || fail "the last model was the best: $(cat err)"
printf '1\n2\n3\n' >want # the best, the last, and the best again
stand best | sed 's/ckpt-//; s/ .*//' >have
cmp want have || fail "other checkpoints of the best: $(cat have)"
steps=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' best/summary.json | head -n 1)
best=$(sed -n 's/.*"best":{[^}]*"step":\([0-9]*\).*/\1/p' best/summary.json | head -n 1)
[ "$best" -lt $((steps - 12)) ] || fail "the best model is of step $best of $steps"
for step in $((best + 5)) $((best + 17)); do # a stop saves, and a kill comes after it
    rm -rf cut
    blown "step.0#$step:stop" s.yaml run.dir=cut
    blown "step.0#6:kill" s.yaml run.dir=cut
    expect 0 tnet-train s.yaml run.dir=cut
    grep -q 'restored the best model' err || fail "stopped at $step: $(cat err)"
    same best cut
done
for step in $((best - 1)) $((best + 2)) $((best + 14)); do
    rm -rf cut
    blown "step.0#$step:kill" s.yaml run.dir=cut
    expect 0 tnet-train s.yaml run.dir=cut
    same best cut
done

# ---- what else is to stand there, or cannot wait ----

for every in auto 1epoch; do # the exports of all epochs, the same ones
    expect 0 tnet-train s.yaml run.dir="published-$every" export.to="to-$every" export.every=1epoch checkpoint.every=$every
done
diff -rq --exclude=EXPORT.json to-auto to-1epoch >differ || fail "other exports: $(cat differ)"
expect 0 tnet-train s.yaml run.dir=deltas checkpoint.delta_every=1epoch checkpoint.keep=50
[ "$(stand deltas | wc -l)" -ge $((steps / 12)) ] || fail "deltas are missing: $(stand deltas)"
rule="train.sparse={type: adam, lr: 1e-3, l2: 1e-4, l2_mode: dense}"
expect 0 timeout 60 tnet-train s.yaml run.dir=dense "$rule" # one that waits for itself never ends
expect 0 tnet-train s.yaml run.dir=dense-each "$rule" checkpoint.every=1epoch
same dense-each dense
