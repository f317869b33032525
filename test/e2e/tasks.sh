#!/bin/sh
# tasks.sh - several labels in one run: four models learn clicks, purchases given a click, likes and
# seconds; figures, predictions and the monitor of each task; a section of one task is a run of one
# label to the bit; the same bits from any format, on any number of threads, and after a kill; what
# has one score says so.
. "$(dirname "$0")/kit"
cd "$dir"

labels train.csv 1 30000
labels valid.csv 2 8000
cat >run.yaml <<END
data: {format: csv, train: train.csv, valid: valid.csv}
slots: [user, item]
tasks:
  click: {label: click}
  buy: {label: buy, of: click}
  like: {where: click, weight: 0.5, loss: focal}
  watch: {label: seconds, loss: huber, where: click}
model: {type: mmoe, experts: 3, expert: [32, 16], tower: [16]}
train: {epochs: 3, batch: 256}
eval: {calibrate: none}
log: {progress: false}
END

# ---- every model learns each task ----

for model in 'shared, hidden: [32], tower: [16]' 'esmm, tower: [32, 16]' 'mmoe, experts: 3, expert: [32, 16], gate: [8], tower: [16]' \
    'ple, shared: 1, own: 2, layers: 2, expert: [32, 16], tower: [16]'; do
    rm -rf run
    expect 0 tnet-train run.yaml run.dir=run "model={type: $model}"
    echo "tasks: $model: $(figure run click auc) $(figure run buy auc) $(figure run buy copc) $(figure run like auc) $(figure run watch rmse)"
    within "$(figure run click auc)" .76 .83 "$model: auc of clicks"
    within "$(figure run buy auc)" .78 .85 "$model: auc of purchases"
    within "$(figure run buy copc)" .93 1.07 "$model: copc of purchases"
    within "$(figure run like auc)" .65 .76 "$model: auc of likes"
    within "$(figure run watch rmse)" .95 1.15 "$model: rmse of seconds"
    tnet-train run.yaml "model={type: $model}" --print-graph >graph.yaml
    { echo "include: [run.yaml]" && cat graph.yaml; } >again.yaml
    expect 0 tnet-train run.yaml run.dir=first "model={type: $model}" train.max_steps=3 --fresh
    expect 0 tnet-train again.yaml run.dir=second train.max_steps=3 --fresh
    same_model first second
    rm -rf first second
done

# another model over a graph: its list of layers is no number of layers
ple='model={type: ple, expert: [16], tower: [16]}'
expect 0 tnet-train run.yaml run.dir=first train.max_steps=3 --fresh "$ple"
expect 0 tnet-train again.yaml run.dir=second train.max_steps=3 --fresh "$ple"
same_model first second
rm -rf first second

# ---- weights that are learned: kept over a stop, and gone from an export ----

expect 0 tnet-train run.yaml run.dir=learned tasks.watch.weight=learned tasks.click.weight=learned train.epochs=2
within "$(figure learned buy auc)" .78 .85 "learned weights: auc of purchases"
expect 0 tnet-train run.yaml run.dir=parts tasks.watch.weight=learned tasks.click.weight=learned train.epochs=2 train.max_steps=150
expect 0 tnet-train run.yaml run.dir=parts tasks.watch.weight=learned tasks.click.weight=learned train.epochs=2
[ "$(figure learned watch rmse)" = "$(figure parts watch rmse)" ] || fail "learned weights begin anew after a stop"
expect 0 tnet-export learned --to without
! grep -q 'loss.watch' without/*/dense.safetensors || fail "an export has weights of losses"

# ---- figures and predictions of each task ----

rm -rf run
expect 0 tnet-train run.yaml run.dir=run data.test=valid.csv eval.predictions=p.tsv train.stop.monitor=valid.buy.auc
grep -q '^metric *valid.click *valid.buy *valid.like *valid.watch *test.click' out || fail "no columns of tasks: $(cat out)"
grep -q '"best":{"name":"buy.auc","value":0.[78]' run/summary.json || fail "another metric was watched"
[ "$(head -n 1 p.tsv)" = "$(printf 'id\tlabel\tweight\tlogit\tpctr\tbuy.label\tbuy.logit\tbuy.pctr\tbuy.given\tlike.label\tlike.logit\tlike.pctr\twatch.label\twatch.prediction')" ] ||
    fail "head of predictions: $(head -n 1 p.tsv)"
# P(buy) = P(click) P(buy | click) in each row; rates agree with the figures; a label that does not count is empty
awk -F '\t' 'NR > 1 {
        d = $8 - $5 * $9
        if (d * d > 1e-12) { print "row " NR ": " $8 " is not " $5 " times " $9; exit 1 }
        buys += $8
        if (($2 == 0) != ($13 == "")) { print "row " NR ": seconds of " $2 " are " $13; exit 1 }
    } END { printf "%.6f\n", buys / (NR - 1) > "rate" }' p.tsv || fail "predictions"
within "$(cat rate)" "$(figure run buy pctr | awk '{ print $1 - 1e-5 }')" "$(figure run buy pctr | awk '{ print $1 + 1e-5 }')" "rate of predictions"
expect 0 tnet-eval run --data valid.csv
grep -q '^auc .* n/a' out || fail "tnet-eval: $(cat out)"
expect 0 tnet-train run.yaml run.dir=default train.epochs=auto --fresh
grep -q '"best":{"name":"tasks.ne"' default/summary.json || fail "the mean of the tasks is not watched: $(grep -o '"best".*' default/summary.json | head -c 100)"
! sed -n "/\"kind\":\"eval\"/p" run/metrics.jsonl | grep -qv "\"buy\":{\"rows\":8000,\"auc\":" || fail "metrics.jsonl has no figures of a task"

# ---- a page for each task ----

expect 0 tnet-eval run --data valid.csv --report page.html
for task in click: buy:.buy like:.like watch:.watch; do
    page=page${task#*:}.html
    grep -q "\"title\":\"${task%:*} of [^\"]* on valid.csv\"" "$page" || fail "$page is of: $(grep -o '"title":"[^"]*"' "$page")"
done
expect 0 tnet-eval run --data valid.csv
for task in buy:3 like:4; do
    shown=$(awk -v at="${task#*:}" '$1 == "auc" { print $at }' out)
    grep -q "\"auc\",${shown%??}" "page.${task%:*}.html" || fail "page.${task%:*}.html does not show its auc $shown"
done
grep -q '8000 records of 1 file' page.buy.html || fail "page.buy.html does not say of what rows"

# ---- slices of each task are what its rows alone say ----

expect 0 tnet-eval run --data valid.csv eval.slices=[item] eval.slices_min_rows=40 eval.auc=exact
cp out sliced
item=$(awk '/^buy by item/ { getline; print $1 }' sliced)
{ head -n 1 valid.csv && awk -F , -v item="$item" '$6 == item' valid.csv; } >of_item.csv
expect 0 tnet-eval run --data of_item.csv
for task in click:2 buy:3; do
    for metric in logloss copc ctr; do
        awk -v task="${task%:*}" -v column="${task#*:}" -v metric=$metric -v item="$item" '
            NR == FNR { if ($1 == metric) want = $column; next }
            $2 == "by" { of = $1; for (i = 4; i <= NF; i++) if ($i == metric) at = i - 2 }
            of == task && $1 == item { have = $at }
            END { d = have - want; if (have == "" || d * d > 2e-5) { print task, metric, have, "not", want; exit 1 } }' out sliced ||
            fail "slice of item $item"
    done
done
[ "$(grep -c '^buy.auc, .95 interval by ' sliced)" -eq 2 ] || fail "no intervals of a task: $(cat sliced)"
expect 0 tnet-eval run --data valid.csv eval.slices=[item] --json
grep -q '"watch":{"rows":[^}]*"slices":{"item":\[{"sign":[^,]*,"rows":[0-9]*,"rmse":' out || fail "no slices of seconds: $(head -c 3000 out)"

# ---- a map for each task of clicks, by its own labels; carried by exports ----

# even PREDICTIONS: clicks over predicted ones of click, buy and like, which a map makes 1 on the rows that it was fitted to.
even() {
    awk -F '\t' 'NR > 1 { a += $2; b += $5; c += $6; d += $8; if ($10 != "") { e += $10; f += $12 } }
        END { x = a / b - 1; y = c / d - 1; z = e / f - 1; print x, y, z
              exit !(x * x < 1e-8 && y * y < 1e-8 && z * z < 1e-8) }' "$1" || fail "the rates of $1 are off"
}
expect 0 tnet-train run.yaml run.dir=mapped eval.calibrate=platt data.test=valid.csv eval.predictions=mapped.tsv
grep -q 'calibrated by platt on 8000 rows of valid: click: p = sigmoid.*; buy: p = sigmoid.*; like: p = sigmoid.*; buy.logloss 0.3' err ||
    fail "calibration: $(grep calibrated err)"
even mapped.tsv >null
expect 0 tnet-export mapped --to mapped-export
expect 0 tnet-score mapped-export --data valid.csv
cmp -s mapped.tsv out || fail "an export is calibrated otherwise: $(diff mapped.tsv out | head -n 3)"
expect 0 tnet-eval mapped --export mapped-export --data valid.csv
grep -q '^buy: calibrated by platt$' out || fail "an export has no word of its calibration: $(cat out)"
expect 0 tnet-eval mapped --data valid.csv eval.calibrate=none --predictions raw.tsv
cut -f 9,14 raw.tsv >plain
cut -f 9,14 mapped.tsv >have
cmp plain have || fail "a share given a click, or seconds, are calibrated"
expect 0 tnet-eval run --calibrate isotonic --calibration-out c.json
grep -q '^buy by isotonic  *before  *after$' out || fail "no table of a task: $(cat out)"
expect 0 tnet-export run --to by-file --calibration c.json
expect 0 tnet-score by-file --data valid.csv
! cmp -s p.tsv out || fail "the file calibrates nothing"
awk -F '\t' 'NR > 1 && $8 > 0 { n += $8 } END { print n / (NR - 1) }' out >rate
within "$(cat rate)" "$(figure run buy ctr | awk '{ print $1 - 1e-4 }')" "$(figure run buy ctr | awk '{ print $1 + 1e-4 }')" "calibrated rate of purchases"
# 200 of each kind are few: one task has none, and stays as it is
awk -F , -v OFS=, 'NR > 1 && ++n > 100 { $3 = "" } 1' valid.csv >unliked.csv
expect 0 tnet-train run.yaml run.dir=left eval.calibrate=platt data.valid=unliked.csv train.epochs=1
grep -q "calibrated by platt.*; 'like' is left as it is: data.valid has [0-9]* rows with a click" err || fail "no word of likes: $(cat err)"
! grep -q '"name":"like"' left/calibration.json || fail "a map of few rows"

# ---- one task is a run of one label ----

cat >one.yaml <<END
data: {format: csv, train: train.csv, valid: valid.csv}
slots: [user, item]
model: {type: deepfm, hidden: [16]}
train: {epochs: 1, batch: 256}
END
expect 0 tnet-train one.yaml run.dir=label data.label=click loss=focal
expect 0 tnet-train one.yaml run.dir=task 'tasks={click: {loss: focal}}'
same_model label task
[ "$(sed -n 's/.*"auc":\([0-9.]*\).*/\1/p' label/summary.json)" = "$(sed -n 's/.*"auc":\([0-9.]*\).*/\1/p' task/summary.json)" ] || fail "one task has other figures"

# ---- the same bits: threads, formats, a kill ----

short="train.epochs=1 data.valid=~ eval.calibrate=none"
# shellcheck disable=SC2086
train() { expect 0 tnet-train run.yaml run.dir="$1" $short "$2" "$3"; }
train a train.threads=1 data.readers=1
train b train.threads=2 data.readers=2
same_model a b
cat >columns.yaml <<END
data: {format: csv, train: train.csv, label: click}
slots: [user, item, {name: buy, type: float, as: value}, {name: like, type: float, as: value}, {name: seconds, type: float, as: value}]
END
for format in jsonl tfrecord; do
    expect 0 tnet-data convert columns.yaml --to train.$format "to.format=$format"
    train "$format" "data.format=$format" "data.train=train.$format"
    same_model a "$format"
done
draw
expect 0 tnet-train run.yaml run.dir=whole train.epochs=2
killed 3 600 tnet-train run.yaml run.dir=killed train.epochs=2 checkpoint.every=40steps
for figure in "click auc" "buy logloss" "watch rmse"; do
    # shellcheck disable=SC2086
    [ "$(figure whole $figure)" = "$(figure killed $figure)" ] || fail "seed $seed: a run that was killed ends with another $figure"
done

# ---- an export has the scores of all tasks ----

expect 0 tnet-export run --to export 'export.graph=[native, onnx]'
expect 0 tnet-score export --data valid.csv
cmp -s p.tsv out || fail "tnet-score says something else than the trainer: $(diff p.tsv out | head -n 3)"
# columns of labels may be missing, of further tasks alone or all
cut -d , -f 1,3-6 valid.csv >unbought.csv
expect 0 tnet-score export --data unbought.csv
awk -F '\t' -v OFS='\t' 'NR > 1 { $1 = $6 = "" } 1' p.tsv >scores.tsv
awk -F '\t' -v OFS='\t' 'NR > 1 { $1 = "" } 1' out | cmp -s scores.tsv - || fail "without a column of purchases: $(head -n 3 out)"
cut -d , -f 5,6 valid.csv >unlabelled.csv
expect 0 tnet-score export --no-label --data unlabelled.csv
awk -F '\t' -v OFS='\t' 'NR > 1 { $1 = $2 = $6 = $10 = $13 = "" } 1' p.tsv >scores.tsv
awk -F '\t' -v OFS='\t' 'NR > 1 { $1 = "" } 1' out | cmp -s scores.tsv - || fail "without labels: $(head -n 3 out)"
expect 0 tnet-eval run --data valid.csv eval.slices=[item] eval.slices_min_rows=40
cp out want
expect 0 tnet-eval run --export export --data valid.csv eval.slices=[item] eval.slices_min_rows=40 --predictions exported.tsv
cmp -s p.tsv exported.tsv || fail "tnet-eval --export predicts something else: $(diff p.tsv exported.tsv | head -n 3)"
cmp -s want out || fail "tnet-eval --export finds something else: $(diff want out | head -n 5)"
expect 3 tnet-eval run.yaml run.dir=run --export export --data valid.csv 'tasks={click: {label: click}, bay: {label: buy, of: click}}'
says "has other tasks than the configuration"
for output in buy:logit buy:pctr buy:given like:pctr watch:score; do
    grep -q "$output" export/*/graph.onnx || fail "graph.onnx has no $output"
done
grep -q '"tasks":\[{"name":"click","task":"click","score":"tower.click.out","source":{}},{"name":"buy"' export/*/model.json || fail "model.json names no tasks"

# ---- rows without a click are left out: the first task and its shares are corrected, in evaluations and exports ----

expect 0 tnet-train run.yaml run.dir=sampled data.negative_sampling=0.3 tasks.like.loss=bce tasks.buy.weight=2
for task in click buy like; do
    within "$(figure sampled $task copc)" .9 1.1 "copc of $task with a third of the rows without a click"
done
within "$(figure sampled click auc)" .76 .83 "auc of clicks"
within "$(figure sampled buy auc)" .78 .85 "auc of purchases"
expect 0 tnet-eval sampled --data valid.csv --predictions sampled.tsv
[ "$(awk '$1 == "copc" { print $3 }' out)" = "$(printf '%.6f' "$(figure sampled buy copc)")" ] || fail "tnet-eval finds another copc"
awk -F '\t' 'NR > 1 { d = $8 - $5 * $9; if (d * d > 1e-12) { print NR, $8, $5 * $9; exit 1 } }' sampled.tsv || fail "a corrected share is no product"
expect 0 tnet-eval sampled --peers 2 --data valid.csv --predictions both.tsv
cmp sampled.tsv both.tsv || fail "2 peers correct otherwise"
expect 0 tnet-export sampled --to sampled-export
expect 0 tnet-score sampled-export --data valid.csv
paste sampled.tsv out | awk -F '\t' 'NR > 1 {
        for (i = 4; i <= 14; i++) { d = $i - $(i + 14); if (d * d > 1e-10) { print NR, i, $i, $(i + 14); exit 1 } }
    }' || fail "an export is corrected otherwise"
expect 0 tnet-train run.yaml run.dir=even data.negative_sampling=0.3 data.valid=valid.csv data.test=valid.csv eval.calibrate=platt eval.predictions=mapped.tsv
even mapped.tsv >null
expect 3 tnet-train run.yaml run.dir=x --fresh data.negative_sampling=0.3 tasks.like.where=~
grep -q "'data.negative_sampling' leaves out rows by the label of 'click', and scores of 'like' cannot be corrected for it" err || fail "sampling: $(cat err)"

# ---- what the labels show ----

{ head -n 1 train.csv && printf '0,1,,,1,2\n1,0,,,3,4\n0,1,,,5,6\n'; } >odd.csv
expect 0 tnet-train run.yaml run.dir=odd data.train=odd.csv data.valid=~ train.epochs=2
[ "$(grep -c "2 rows of data.train have 'buy' without 'click', which is no share" err)" -eq 1 ] || fail "contradictions: $(cat err)"
grep -q "task 'like' learns nothing: no row of data.train counts for it" err || fail "a task without rows: $(cat err)"
expect 0 tnet-train run.yaml run.dir=none --fresh data.train=train.csv data.valid=~ train.epochs=1 tasks.buy.label='{column: buy, threshold: 9}'
grep -q "task 'buy' learns nothing: no row of data.train has a click of it" err || fail "a task without clicks: $(cat err)"

# ---- days: learned one by one, each published ----

for day in 1 2 3; do
    { head -n 1 train.csv && sed -n "$((day * 3000)),$((day * 3000 + 2500))p" train.csv; } >"day-2026110$day.csv"
done
days='data.train=day-{day:%Y%m%d}.csv data.days=2026-11-01..2026-11-03 data.valid=next train.epochs=1 export.every=day export.to=published'
# shellcheck disable=SC2086
expect 0 tnet-train run.yaml run.dir=days --fresh $days
[ "$(grep -c '"kind":"day"' days/metrics.jsonl)" -eq 3 ] || fail "days: $(cat err)"
grep -q '"kind":"eval".*"buy":{"rows":' days/metrics.jsonl || fail "the day after has no figures of a task"
expect 0 tnet-score published --data valid.csv
[ "$(head -n 1 out)" = "$(head -n 1 p.tsv)" ] || fail "what is published has no tasks: $(head -n 1 out)"

# what is published is calibrated by task, each export by maps of its own model
# shellcheck disable=SC2086
expect 0 tnet-train run.yaml run.dir=days2 --fresh $days export.to=published2 eval.calibrate=platt
grep -q '"name":"buy","task":"click","score":"task.buy".*"calibration":{"kind":"platt"' published2/*/model.json || fail "published purchases are not calibrated"

# ---- a task that means something else ----

expect 3 tnet-eval run.yaml run.dir=run tasks.buy.of=~
says "tasks: here click: {label: click, loss: bce}, buy: {label: buy, loss: bce}, like"
expect 3 tnet-train run.yaml run.dir=run tasks.watch.label=item2
says "in the checkpoint click: {label: click, loss: bce}, buy: {label: buy, loss: bce, of: click}"

# ---- what has one score ----

expect 3 tnet-eval run --report -
says "'--report' writes a page for each task, and standard output holds one"
expect 3 tnet-train run.yaml run.dir=x --fresh model=deepfm
grep -q "the model has one output, and 'tasks' wants 4" err || fail "a model of one output: $(cat err)"
expect 3 tnet-train run.yaml run.dir=x --fresh model=esmm tasks.buy.of=~
grep -q "esmm multiplies probabilities, and no task says of which other it is a share" err || fail "esmm without a share: $(cat err)"
