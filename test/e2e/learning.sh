#!/bin/sh
# On data whose truth is known, lr and fm come as close to the oracle as their number of parameters allows:
# excess log loss on test rows at most 1.3 d / (2 n).
set -e
bin=${TNET_BIN:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rows=200000
batch=1024

number() { sed -n "s/.*\"$1\":\"\{0,1\}\([-0-9.e]*\).*/\1/p" "$2"; }

# learn MODEL EPOCHS MODEL-OPTIONS..
learn() {
    model=$1 epochs=$2
    shift 2
    "$bin/tnet-data" gen -q preset=plain model="$model" slots=8 ids=60 dim=3 rows=$rows \
        --to "$dir/$model.ffm" >/dev/null
    "$bin/tnet-data" gen -q preset=plain model="$model" slots=8 ids=60 dim=3 rows=$rows \
        first_row=$rows --to "$dir/$model.test.ffm" >/dev/null
    steps=$((epochs * rows / batch))
    cat >"$dir/$model.yaml" <<END
data: {format: libffm, train: $dir/$model.ffm, test: $dir/$model.test.ffm, shuffle: 200k}
embedding: {dim: 3, init: {normal: [0, 0.05]}}
model: {type: $model}
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
    d=$(number free_parameters "$dir/$model.ffm.truth.json")
    oracle=$(sed -n 's/.*"logloss":\([0-9.]*\).*/\1/p' "$dir/$model.test.ffm.truth.json")
    awk -v loss="$loss" -v oracle="$oracle" -v d="$d" -v n=$rows -v model="$model" 'BEGIN {
        excess = loss - oracle; limit = 1.3 * d / (2 * n)
        printf "%s: excess log loss %.5f, limit %.5f (d %d)\n", model, excess, limit, d
        exit !(excess <= limit && excess > -limit)
    }'
}

learn lr 6
learn fm 10
