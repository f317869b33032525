#!/bin/sh
# task_truth.sh - models of several tasks against a planted truth: clicks, and purchases of which those who click
# make more than others would. The configurations of configs/tasks reach the AUC that no model beats, purchases are
# predicted at their rate on all rows, and what a click would be worth for all rows is not what clicked rows say.
. "$(dirname "$0")/kit"
configs=$(pwd)/configs/tasks
cd "$dir"
world="slots=5 ids=40 zipf=0.5 rate=0.25 spread=1.5 buy=0.3 selection=0.7"
# Words of options: they must be split.
# shellcheck disable=SC2086
for part in "train rows=800k" "valid rows=400k first_row=800k"; do
    tnet-data gen -q $world ${part#* } --to "${part%% *}.csv" --config-to "${part%% *}.yaml"
done

# truth WORDS NAME: a number of valid.csv.truth.json, in the object `purchases` or `oracle`.
truth() { sed "s/.*\"$1\":{//; s/}.*//" valid.csv.truth.json | sed -n "s/.*\"$2\":\([-0-9.e]*\).*/\1/p"; }
figure() { sed "s/.*\"valid\":{//; s/.*\"$2\":{//; s/}.*//" "$1/summary.json" | sed -n "s/.*\"$3\":\([-0-9.e]*\).*/\1/p"; }
# near NUMBER OTHER FAR WHAT
near() { awk -v x="$1" -v y="$2" -v far="$3" 'BEGIN { exit !(x != "" && y != "" && x - y <= far && y - x <= far) }' || fail "$4: $1 is not $2"; }

for config in train.yaml "$configs"/shared.yaml "$configs"/esmm.yaml "$configs"/mmoe.yaml "$configs"/ple.yaml; do
    model=$(basename "$config" .yaml)
    expect 0 tnet-train "$config" run.dir="$model" data.train=train.csv data.valid=valid.csv data.test=valid.csv \
        eval.predictions="$model.tsv" train.epochs=2 train.optimizer='{type: adam, lr: 1e-3, schedule: cosine}'
    echo "task_truth: $model: clicks $(figure "$model" click auc) $(figure "$model" click copc), purchases $(figure "$model" buy auc) $(figure "$model" buy copc)"
    near "$(figure "$model" click auc)" "$(truth oracle auc)" .001 "$model: auc of clicks"
    near "$(figure "$model" buy auc)" "$(truth purchases auc)" .001 "$model: auc of purchases"
    case $model in
    train | esmm) near "$(figure "$model" buy copc)" 1 .01 "$model: copc of purchases on all rows" ;;
    *) near "$(figure "$model" buy copc)" 1 .02 "$model: copc of purchases on all rows" ;;
    esac
    # P(buy | click) over all rows, beside the share of clicked rows that are bought
    awk -F '\t' 'NR > 1 { given += $9; clicks += $2; buys += $6 } END { print given / (NR - 1), buys / clicks }' "$model.tsv" >rates
    read -r given clicked <rates
    near "$given" "$(truth purchases rate_all)" .012 "$model: purchases given a click, of all rows"
    awk -v clicked="$clicked" -v all="$(truth purchases rate_all)" 'BEGIN { exit !(clicked > 1.6 * all) }' ||
        fail "the planted selection is gone: $clicked of clicks"
    rm "$model.tsv"
done
