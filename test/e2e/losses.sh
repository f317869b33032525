#!/bin/sh
# losses.sh - losses other than bce, from the file to the served score: numbers are learned down to their
# noise, pairs put rows of a group in order, margins tell sides; the same bits on any number of threads;
# evaluation, predictions, export and the scorer say the same, and none of them speaks of clicks; labels
# and options that do not fit are told in one sentence.
# Words of variables are split on purpose.
# shellcheck disable=SC2086
. "$(dirname "$0")/kit"
cd "$dir"

# part FILE SEED ROWS: a[u] + b[i] + c[q] + noise, as a number, as a grade of 5, and as 0 or 1; ten rows
# of one q behind each other. c, which no slot tells, is large: grades of two groups do not compare.
part() {
    awk -v seed="$2" -v rows="$3" '
        function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }
        BEGIN {
            srand(7)
            for (k = 0; k < 30; k++) { a[k] = normal(); b[k] = normal() }
            srand(seed)
            print "y,grade,sign,u,i,q"
            for (n = 0; n < rows; n++) {
                if (n % 10 == 0) c = 3 * normal()
                u = int(30 * rand())
                i = int(30 * rand())
                s = a[u] + b[i]
                noise = .5 * normal()
                printf "%.5f,%d,%d,u%d,i%d,%d\n", s + noise - 20, int((s + c + noise) / 2 + 100) - 100, (s + noise > 0 ? 1 : -1), u, i, n / 10
            }
        }' >"$1"
}
part train.csv 1 30000
part valid.csv 2 6000
cat >run.yaml <<END
data: {format: csv, train: train.csv, valid: valid.csv, label: y}
slots: [{name: u, type: str}, {name: i, type: str}]
embedding: {dim: 4}
model: {type: widedeep, hidden: [8]}
train: {batch: 256, epochs: 4}
checkpoint: {keep: 9}
log: {progress: false}
END

# value NAME FILE: the last metric of that name in a JSON text.
value() {
    sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$2" | tail -n 1
}
# within NUMBER LEAST MOST WHAT
within() {
    awk -v x="$1" -v least="$2" -v most="$3" 'BEGIN { exit !(x != "" && x >= least && x <= most) }' || fail "$4 is $1"
}
# silent FILE..: nothing in them is of clicks.
silent() {
    ! grep -nE 'logloss|pctr|copc|calibrat|"ctr"|\bauc' "$@" || fail "words of clicks"
}

# ---- numbers: labels around -19.5, noise of deviation .5 ----

for loss in mse mae '{type: huber, delta: .5}'; do
    rm -rf run
    expect 0 tnet-train run.yaml run.dir=run "loss=$loss" eval.calibrate=auto
    within "$(value rmse run/summary.json)" .48 .53 "rmse of $loss"
    within "$(value mae run/summary.json)" .38 .43 "mae of $loss"
    within "$(value prediction_mean run/summary.json)" -19.7 -19.3 "mean of $loss"
    silent out err run/summary.json run/metrics.jsonl
    grep -q '; valid \(rmse\|mae\) 0\.[345]' err || fail "no closing line: $(cat err)"
done
rm -rf run
expect 0 tnet-train run.yaml run.dir=run loss=mse train.threads=1
expect 0 tnet-train run.yaml run.dir=threads2 loss=mse train.threads=2
expect 0 tnet-train run.yaml run.dir=threads4 loss=mse train.threads=4
same_model run threads2
same_model run threads4
within "$(value loss run/summary.json)" .2 .4 "mean squared error of the last epoch"

# The first bias is the mean label: without a step all predictions are about that.
expect 0 tnet-train run.yaml run.dir=none loss=mse train.max_steps=1 train.optimizer.lr=1e-9 train.sparse.lr=1e-9
within "$(value prediction_mean none/summary.json)" -19.7 -19.3 "the first bias"

expect 0 tnet-eval run.yaml run.dir=run loss=mse --predictions p.tsv --report r.html
cp out eval.txt
sed -n 's/,"config":.*//; s/.* id="data">//p' r.html >page.json
grep -q '"columns":\["metric"' page.json || fail "no metrics in the report"
silent out err page.json
[ "$(head -n 1 p.tsv)" = "$(printf 'id\tlabel\tweight\tprediction')" ] || fail "head of predictions: $(head -n 1 p.tsv)"
awk -F '\t' -v want="$(value rmse run/summary.json)" '
    NR > 1 { e += ($4 - $2) ^ 2 } END { r = sqrt(e / (NR - 1)) - want; exit !(r < 1e-6 && r > -1e-6) }' p.tsv || fail "predictions are not what was judged"
model=$(tnet-export -q run.yaml run.dir=run loss=mse)
silent "$model/model.json"
expect 0 tnet-score "$model" --data valid.csv
cut -f 2- out >scores
cut -f 2- p.tsv >predictions
cmp scores predictions || fail "tnet-score says other than tnet-eval"
expect 0 tnet-eval run.yaml loss=mse --export "$model"
cmp out eval.txt || fail "the export is judged otherwise"
expect 3 tnet-eval run.yaml data.label=sign --export "$model"
says "the export's scores are of target 'number', those of loss 'bce' of 'click'"
expect 3 tnet-train run.yaml run.dir=run loss=bce data.label=sign train.epochs=5
says "the checkpoint is of a loss of target 'number', and loss 'bce' has target 'click'"
expect 3 tnet-eval run.yaml run.dir=run loss=mse --calibrate platt
says "'--calibrate' makes probabilities, and a model of loss 'mse' has none"

# Two processes: the same sums of a joint batch, and one bias.
split -n l/4 train.csv part- && sed -i 1d part-aa
sed 1d valid.csv >valid.rows && split -l 3000 valid.rows valid-
for peers in 1 2; do
    expect 0 tnet-train --peers $peers run.yaml run.dir=peers$peers loss=mse 'data.train=[part-aa, part-ab, part-ac, part-ad]' data.header=false \
        'data.columns=[y, grade, sign, u, i, q]' 'data.valid=[valid-aa, valid-ab]' train.batch=$((256 / peers))
    within "$(value rmse peers$peers/summary.json)" .48 .53 "rmse of $peers"
    cp peers$peers/summary.json peers$peers.json
done
within "$(value loss peers2.json)" .2 .4 "error of two processes"
awk -v a="$(value loss peers1.json)" -v b="$(value loss peers2.json)" 'BEGIN { exit !(a / b < 1.1 && b / a < 1.1) }' ||
    fail "two processes learn otherwise than one"

# ---- sides ----

for loss in hinge squared_hinge focal; do
    rm -rf run
    expect 0 tnet-train run.yaml run.dir=run loss=$loss data.label=sign eval.metrics='[auc, accuracy, ctr]'
    within "$(value accuracy run/summary.json)" .86 .95 "accuracy of $loss"
    within "$(value auc run/summary.json)" .93 .99 "auc of $loss"
done

# ---- pairs ----

pairs="data.label=grade data.group=q loss=pairwise"
expect 0 tnet-train run.yaml run.dir=first $pairs train.max_steps=1 train.optimizer.lr=1e-9 train.sparse.lr=1e-9
expect 0 tnet-train run.yaml run.dir=pairs1 $pairs train.threads=1
expect 0 tnet-train run.yaml run.dir=pairs4 $pairs train.threads=4 data.shuffle=0
same_model pairs1 pairs4
within "$(value pairwise_accuracy first/summary.json)" .3 .7 "order of an untrained model"
within "$(value pairwise_accuracy pairs1/summary.json)" .94 .99 "order"
expect 0 tnet-train run.yaml run.dir=pairs.mse $pairs loss=mse eval.metrics='[rmse, pairwise_accuracy]'
awk -v a="$(value pairwise_accuracy pairs1/summary.json)" -v b="$(value pairwise_accuracy pairs.mse/summary.json)" 'BEGIN { exit !(a > b) }' ||
    fail "mse, which sees the groups' own level, puts more pairs in order than pairwise"
expect 0 tnet-eval run.yaml run.dir=pairs1 $pairs --predictions p.tsv
[ "$(head -n 1 p.tsv)" = "$(printf 'id\tlabel\tweight\tscore\tgroup')" ] || fail "head of predictions: $(head -n 1 p.tsv)"
headless="data.header=false data.columns=[y,grade,sign,u,i,q] data.valid=[valid-aa,valid-ab]"
expect 0 tnet-eval -q run.yaml run.dir=pairs1 $pairs $headless
cp out alone.txt
expect 0 tnet-eval -q run.yaml run.dir=pairs1 $pairs $headless --peers 2
cmp alone.txt out || fail "two processes judge pairs otherwise"
expect 0 tnet-train run.yaml run.dir=torn $pairs data.group=i data.train=valid.csv 'data.valid=~' train.batch=1 train.max_steps=20
grep -q 'warn.*no batch holds two rows of one data.group with unequal labels' err || fail "nobody says that there are no pairs: $(cat err)"

# ---- labels that do not fit ----

# label TEXT LOSS: one row with it.
label() {
    printf 'y,u,i\n1,u1,i1\n%s,u1,i1\n' "$1" >bad.csv
    expect 4 tnet-train run.yaml run.dir=bad data.train=bad.csv 'data.valid=~' loss="$2"
    says "bad.csv:3:1: error: expected a label, found \"$1\""
    expect 4 tnet-data check run.yaml train=bad.csv loss="$2"
    grep -q "bad.csv:3:1: error: expected a label, found \"$1\"" out || fail "tnet-data check: $(cat out err)"
}
label 3.5 bce
grep -q 'hint: .*losses of numbers take them as they are: tnet-train --list-losses' out || fail "no way out: $(cat err)"
label 0.5 hinge
label 2e9 mse
label one mae
expect 0 tnet-data check run.yaml loss=huber
expect 0 tnet-data stat run.yaml loss=mse
grep -qE '^labels from -2[0-9.]+ to -1[0-9.]+, mean -19\.[45]' out || fail "tnet-data stat: $(head -n 3 out)"

# ---- options that do not fit ----

# refuses TEXT: the configuration has that one fault.
refuses() {
    { grep -qF -- "$1" err && grep -q ": 1 error in the configuration" err; } || fail "no '$1' in: $(cat err)"
}

expect 3 tnet-train run.yaml loss=mse eval.metrics='[auc, rmse]'
refuses "metric 'auc' does not judge a model of loss 'mse', which makes numbers"
expect 3 tnet-train run.yaml loss=mae train.stop.monitor=valid.logloss
refuses "metric 'logloss' does not judge a model of loss 'mae', which makes numbers"
expect 3 tnet-train run.yaml loss=pairwise
refuses "loss 'pairwise' needs data.group, the column whose value groups rows"
expect 3 tnet-train run.yaml loss=mse data.negative_sampling=.5
refuses "scores of loss 'mse' cannot be corrected for it"
expect 0 tnet-train --list-losses
[ "$(grep -B 1 'data.negative_sampling' out | grep -oE '^[a-z]+')" = bce ] || fail "list of losses: $(cat out)"
expect 3 tnet-train run.yaml loss=hinge eval.calibrate=platt
refuses "a model of loss 'hinge' has no probabilities to calibrate"
expect 3 tnet-train run.yaml loss='{type: mse, delta: 1}'
refuses "unknown key 'delta'"
expect 3 tnet-train run.yaml loss=mes
refuses "mse"

# ---- losses of several scores of one label ----

cat >scores.yaml <<END
include: [run.yaml]
data: {label: {column: sign, threshold: 0}}
model:
  type: graph
  inputs: {deep: {embed: all}}
  layers:
    - {name: near, dense: deep, units: 1}
    - {name: h, dense: deep, units: 8, activation: relu}
    - {name: far, dense: h, units: 1}
    - {name: logit, add: [near, far]}
  output: logit
train: {max_steps: 60, epochs: 1}
END
# hash RUN WORDS..: of the weights that the run leaves
hash() {
    run=$1
    shift
    rm -rf "$run"
    expect 0 tnet-train -q scores.yaml run.dir="$run" "$@"
    { tail -c +65 "$run"/ckpt-1/dense-0000.safetensors && tail -c +65 "$run"/ckpt-1/sparse-0000-1023.tns; } | cksum
}
none=$(hash none)
[ "$(hash zero 'model.losses={near: 0, far: 0}')" = "$none" ] || fail "losses of weight 0 change what is learned"
some=$(hash some 'model.losses={near: 0.5, far: excess}' train.threads=1)
[ "$some" != "$none" ] || fail "losses change nothing"
[ "$(hash some 'model.losses={near: 0.5, far: excess}' train.threads=3)" = "$some" ] || fail "other bits on three threads"
expect 0 tnet-export -q scores.yaml run.dir=some 'model.losses={near: 0.5, far: excess}' --to of-scores
expect 0 tnet-score "$(cat out)" --data valid.csv
mv out served
expect 0 tnet-eval -q some --data valid.csv --predictions judged.tsv
cmp -s served judged.tsv || fail "the export of a model with several losses scores otherwise"
expect 3 tnet-train scores.yaml 'model.losses={nearer: 1}'
refuses "no input or layer 'nearer' above this one (did you mean 'near'?)"
expect 3 tnet-train scores.yaml 'model.losses={h: 1}'
refuses "the output 'h' has 8 columns, not 1"
expect 3 tnet-train scores.yaml 'model.losses={near: often}'
refuses "often"
expect 3 tnet-train scores.yaml 'model.losses=[near]'
refuses "'losses' is a map of at most 8 layers: {layer: weight or excess}"
expect 3 tnet-train scores.yaml 'tasks={a: {label: sign, loss: mse}, b: {label: y, loss: mse}}' data.label=~ 'model.output={a: near, b: far}' \
    'model.layers=[{name: near, dense: deep, units: 1}, {name: far, dense: deep, units: 1}]' 'model.losses={near: 1}'
refuses "'losses' are of one label, and 'tasks' has several"
