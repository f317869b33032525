#!/bin/sh
# warm_start.sh - a run begins with other weights: of another model's checkpoint, and of TensorNet;
# without training it leaves a checkpoint that all programs take, and the way back to TensorNet.
. "$(dirname "$0")/kit"
root=$(pwd)

# told TEXT: the last command succeeded, and said so on stderr.
told() {
    grep -qF -- "$1" "$dir/err" || fail "no '$1' in: $(cat "$dir/err")"
}

clicks "$dir/train.tsv" 3000 0
clicks "$dir/test.tsv" 500 3000
cat >"$dir/old.yaml" <<END
run: {name: old, dir: $dir/old}
data: {format: criteo, train: $dir/train.tsv, test: $dir/test.tsv}
model: {type: widedeep, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 1, batch: 128, threads: 2}
END
expect 0 tnet-train -q "$dir/old.yaml"

# another model: its own layers, the rows of the old one; told on stderr and in summary.json
expect 0 tnet-train "$dir/old.yaml" run.dir="$dir/new" 'model={type: deepfm, hidden: [16]}' train.max_steps=3 \
    checkpoint.from="$dir/old"
told "slot       C1                        taken  "
told "parameter  deep.1.W                  new    "
told "begins with the weights of '$dir/old/ckpt-1' (step 24): "
grep -q '"begun":{"from":".*ckpt-1. (step 24)","items":\[.*{"what":"slot","name":"C1","how":"taken"' "$dir/new/summary.json" ||
    fail "summary: $(cat "$dir/new/summary.json")"
for loss in mse squared_hinge; do # what a score is belongs to the new run alone
    expect 0 tnet-train "$dir/old.yaml" run.dir="$dir/$loss" loss=$loss train.max_steps=3 checkpoint.from="$dir/old"
    told "slot       C1                        taken  "
done
expect 3 tnet-train "$dir/old.yaml" run.dir="$dir/wide" embedding.dim=6 checkpoint.from="$dir/old"
told "slot 'C1': 'deep' is 6 wide, in the checkpoint 4"
expect 5 tnet-train "$dir/old.yaml" run.dir="$dir/none" checkpoint.from="$dir/absent"
says "no checkpoint '$dir/absent'"
expect 5 tnet-train "$dir/old.yaml" run.dir="$dir/none" checkpoint.from="$dir/old.yaml"
says "'$dir/old.yaml' is a file, and a checkpoint is a folder"
expect 3 tnet-train "$dir/old.yaml" run.dir="$dir/none" 'checkpoint.from={rows: none}'
says "checkpoint.from.rows is 'none', and there is no checkpoint.from.path"
expect 3 tnet-train "$dir/old.yaml" run.dir="$dir/none" "checkpoint.from={path: $dir/old, tensornet: {dir: $dir}}"
says "checkpoint.from has both 'path' and 'tensornet'"

# layers that keep what they begin with: with all of them and no rate of rows, the scores keep their bits
expect 0 tnet-eval -q "$dir/old.yaml" --predictions "$dir/old.pred"
for peers in 1 2; do
    expect 0 tnet-train -q "$dir/old.yaml" run.dir="$dir/still$peers" --peers $peers train.threads=1 checkpoint.from="$dir/old" \
        train.freeze='["*"]' 'train.sparse={type: adagrad, lr: 0}'
    grep -q '"frozen":\["deep.1.W","deep.1.b",' "$dir/still$peers/summary.json" || fail "summary: $(cat "$dir/still$peers/summary.json")"
    expect 0 tnet-eval -q "$dir/old.yaml" run.dir="$dir/still$peers" --predictions "$dir/still.pred"
    cmp "$dir/old.pred" "$dir/still.pred" || fail "frozen, $peers processes: other predictions"
done
mkdir "$dir/20261101" "$dir/20261102"
for day in 20261101 20261102; do head -n 500 "$dir/train.tsv" >"$dir/$day/a.tsv"; done
for last in 1 2; do # the second command goes on by itself
    expect 0 tnet-train -q "$dir/old.yaml" run.dir="$dir/days" data.train="$dir/{day:%Y%m%d}/a.tsv" data.test=~ checkpoint.from="$dir/old" \
        train.freeze='["*"]' 'train.sparse={type: adagrad, lr: 0}' data.days=2026-11-01..2026-11-0$last
done
expect 0 tnet-eval -q "$dir/days" --data "$dir/test.tsv" --predictions "$dir/still.pred"
cmp "$dir/old.pred" "$dir/still.pred" || fail "frozen over two days: other predictions"
expect 3 tnet-train -q "$dir/old.yaml" run.dir="$dir/none" checkpoint.from="$dir/old" 'train.freeze=[depth]'
says "train.freeze: the model has no layer or parameter 'depth'"
expect 3 tnet-train -q "$dir/old.yaml" run.dir="$dir/none" 'train.freeze=[deep]'
says "train.freeze: 'deep.1.W' would keep its first values, as nothing gives it others"

# without training: the same model as a checkpoint of its own, for every program
expect 0 tnet-train -q "$dir/old.yaml" run.dir="$dir/copy" train.epochs=0 "checkpoint.from={path: $dir/old/ckpt-1}"
grep -q '"steps":0,' "$dir/copy/summary.json" || fail "trained: $(cat "$dir/copy/summary.json")"
expect 0 tnet-eval -q "$dir/old.yaml" --predictions "$dir/old.pred"
expect 0 tnet-eval -q "$dir/old.yaml" run.dir="$dir/copy" --predictions "$dir/copy.pred"
cmp "$dir/old.pred" "$dir/copy.pred" || fail "other predictions"
expect 0 tnet-export -q "$dir/old.yaml" run.dir="$dir/copy" --to "$dir/export"
expect 0 tnet-score "$(cat "$dir/out")" --data "$dir/test.tsv"
[ "$(wc -l <"$dir/out")" -eq 501 ] || fail "scores: $(head "$dir/out")"

# The bias of an export is corrected for sampled negatives: a run that samples would correct it again.
dense=$(echo "$dir"/export/*/dense.safetensors)
expect 3 tnet-train -q "$dir/old.yaml" run.dir="$dir/twice" checkpoint.from="{dense: $dense}" data.negative_sampling=0.5
says "and data.negative_sampling would correct it again"

# The batch norms of an export are folded into its layers: a model with batch norms cannot begin with them.
expect 0 tnet-train -q "$dir/old.yaml" run.dir="$dir/norm" model.batch_norm=true
expect 0 tnet-export -q "$dir/old.yaml" run.dir="$dir/norm" model.batch_norm=true --to "$dir/folded"
dense=$(echo "$dir"/folded/*/dense.safetensors)
expect 5 tnet-train -q "$dir/old.yaml" run.dir="$dir/norm2" model.batch_norm=true checkpoint.from="{dense: $dense}"
says "is of an export, whose batch norms are folded into the layers before them: it has no '"
says "hint: 'checkpoint.from: RUN' begins with the checkpoint itself"
expect 0 tnet-train -q "$dir/old.yaml" run.dir="$dir/norm2" model.batch_norm=true checkpoint.from="$dir/norm"

# nor is even that one needed to evaluate: a run that has not begun is what it begins with
expect 0 tnet-eval "$dir/old.yaml" run.dir="$dir/unborn" checkpoint.from="$dir/old" --predictions "$dir/unborn.pred"
told "no checkpoint yet: the model begins with the weights of '$dir/old/ckpt-1' (step 24): "
cmp "$dir/old.pred" "$dir/unborn.pred" || fail "not begun: other predictions"
[ ! -e "$dir/unborn" ] || fail "an evaluation made a run directory"
expect 0 tnet-eval -q "$dir/old.yaml" run.dir="$dir/unborn" checkpoint.from="$dir/old" --peers 2 --predictions "$dir/unborn.pred"
cmp "$dir/old.pred" "$dir/unborn.pred" || fail "not begun, two processes: other predictions"
expect 3 tnet-eval -q "$dir/old.yaml" run.dir="$dir/unborn" checkpoint.from="$dir/old" --calibrate platt --data "$dir/test.tsv"
says "'--calibrate' needs a checkpoint, and this run has none yet"
expect 5 tnet-export -q "$dir/old.yaml" run.dir="$dir/unborn" checkpoint.from="$dir/old"
says "'tnet-train CONFIG train.epochs=0' makes one of checkpoint.from"

# a clean end and a second start: the run goes on, and takes nothing anew
expect 0 tnet-train "$dir/old.yaml" run.dir="$dir/copy" train.epochs=1 checkpoint.from="$dir/old"
grep -q '"begun":null' "$dir/copy/summary.json" || fail "begun again: $(cat "$dir/copy/summary.json")"

# several processes begin alike
expect 0 tnet-train -q "$dir/old.yaml" run.dir="$dir/two" --peers 2 train.threads=1 train.epochs=0 checkpoint.from="$dir/old"
expect 0 tnet-eval -q "$dir/old.yaml" run.dir="$dir/two" --predictions "$dir/two.pred"
cmp "$dir/old.pred" "$dir/two.pred" || fail "two processes: other predictions"

# TensorNet: there, and back
cd "$root"
golden=test/golden/tensornet/adagrad_r1
mkdir "$dir/cases"
tar xzf test/golden/tensornet/cases.tar.gz -C "$dir/cases"
expect 0 tnet-train configs/tensornet.yaml run.dir="$dir/tn" train.epochs=0
told "begins with the weights of TensorNet's '$golden/bin' (2020-05-10): 13 taken, 0 new, 0 left"
expect 0 tnet-eval -q configs/tensornet.yaml run.dir="$dir/tn" --predictions "$dir/tn.pred"
sed 1d "$dir/cases/adagrad_r1/pred.files.tsv" >"$dir/want"
for part in tn tn.1; do sed 1d "$dir/$part.pred"; done | paste "$dir/want" - | awk '{ d = $3 - $8; n++; if ($1 != $4 || d > 1e-6 || d < -1e-6) bad++ }
    END { exit n != 200 || bad }' || fail "other predictions than TensorNet's: $(paste "$dir/want" "$dir/tn.pred" | head -n 3)"
expect 0 tnet-data ckpt export configs/tensornet.yaml run.dir="$dir/tn" --tensornet "$dir/back" --ranks 2
[ "$(cat "$dir/out")" = "$dir/back/2020-05-10" ] || fail "exported to $(cat "$dir/out")"
expect 2 tnet-data ckpt export configs/tensornet.yaml run.dir="$dir/tn" --tensornet "$dir/back"
says "exists; --dt names another day"
expect 0 tnet-train -q configs/tensornet.yaml run.dir="$dir/again" train.epochs=0 checkpoint.from.tensornet.dir="$dir/back"
expect 0 tnet-eval -q configs/tensornet.yaml run.dir="$dir/again" --predictions "$dir/again.pred"
paste "$dir/tn.pred" "$dir/again.pred" | sed 1d | awk '{ d = $5 - $10; if (d > 1e-6 || d < -1e-6) bad++ } END { exit bad }' ||
    fail "there and back: other predictions"
expect 0 tnet-train -q configs/tensornet.yaml run.dir="$dir/tn"
grep -q '"epochs":1' "$dir/tn/summary.json" || fail "it does not go on: $(cat "$dir/tn/summary.json")"

# a map of its own
expect 0 tnet-data ckpt map "$golden/bin"
cp "$dir/out" "$dir/map.yaml"
expect 0 tnet-train -q configs/tensornet.yaml run.dir="$dir/mapped" train.epochs=0 \
    "checkpoint.from.tensornet.map=$dir/map.yaml"
expect 5 tnet-data ckpt map "$dir"
says "is no TensorNet checkpoint"
expect 5 tnet-data ckpt map "$dir/cases/adam_r1/bin" # without tf_checkpoint, as our own exports
says "tf_checkpoint.index' is not there, which alone names the dense variables"
expect 2 tnet-data ckpt maps "$dir"
says "unknown word 'maps', neither map nor export"
expect 2 tnet-data ckpt export configs/tensornet.yaml
says "'--tensornet DIR'"
expect 3 tnet-train configs/tensornet.yaml run.dir="$dir/x" \
    'checkpoint.from.tensornet.map.dense=[{name: a, shape: [8], to: dnn_0.b}]'
says "make 8"
