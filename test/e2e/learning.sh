#!/bin/sh
# On data whose truth is known, lr, fm, ffm and fwfm come as close to the oracle as their number of parameters allows:
# excess log loss on test rows at most 1.3 d / (2 n). ffm and fwfm hold what fm planted, with more parameters: a vector for
# each other slot, where k^2 directions per pair of slots change nothing; or 28 weights of pairs.
set -e
bin=${TNET_BIN:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rows=200000
batch=1024

number() { sed -n "s/.*\"$1\":\"\{0,1\}\([-0-9.e]*\).*/\1/p" "$2"; }

# plant MODEL: rows to learn from and rows to judge by
plant() {
    "$bin/tnet-data" gen -q preset=plain model="$1" slots=8 ids=60 dim=3 rows=$rows --to "$dir/$1.ffm" >/dev/null
    "$bin/tnet-data" gen -q preset=plain model="$1" slots=8 ids=60 dim=3 rows=$rows first_row=$rows \
        --to "$dir/$1.test.ffm" >/dev/null
}

# learn MODEL PLANTED EPOCHS [PARAMETERS [MODEL-OPTIONS]]; parameters that can be told apart: those planted
learn() {
    model=$1 planted=$2 epochs=$3 d=$4 options=$5
    steps=$((epochs * rows / batch))
    cat >"$dir/$model.yaml" <<END
data: {format: libffm, train: $dir/$planted.ffm, test: $dir/$planted.test.ffm, shuffle: 200k}
embedding: {dim: 3, init: {normal: [0, 0.05]}}
model: {type: $model$options}
train:
  epochs: $epochs
  batch: $batch
  optimizer: {type: adam, lr: 0.01, schedule: {type: cosine, steps: $steps}}
  sparse: {type: adam, lr: 0.01, bias: global}
run: {dir: $dir/run-$model}
log: {progress: false}
END
    "$bin/tnet-train" -q "$dir/$model.yaml" checkpoint.every=never >"$dir/$model.out"
    loss=$(awk '$1 == "logloss" { print $NF }' "$dir/$model.out")
    [ -n "$d" ] || d=$(number free_parameters "$dir/$planted.ffm.truth.json")
    oracle=$(sed -n 's/.*"logloss":\([0-9.]*\).*/\1/p' "$dir/$planted.test.ffm.truth.json")
    awk -v loss="$loss" -v oracle="$oracle" -v d="$d" -v n=$rows -v model="$model" 'BEGIN {
        excess = loss - oracle; limit = 1.3 * d / (2 * n)
        printf "%s: excess log loss %.5f, limit %.5f (d %d)\n", model, excess, limit, d
        exit !(excess <= limit && excess > -limit)
    }'
}

plant lr
plant fm
learn lr lr 6
learn fm fm 10
learn ffm fm 10 $((1 + 8 * 59 * (1 + 7 * 3) - 28 * 9)) ', k: 3'
learn fwfm fm 10 $(($(number free_parameters "$dir/fm.ffm.truth.json") + 28))
