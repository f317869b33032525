#!/bin/sh
# peers_tasks.sh - several tasks in a group: it learns what one process learns, finds the same of each task to the last bit, exports it,
# begins with the rates of all ranks, and says what the labels of all have shown.
. "$(dirname "$0")/kit"
cd "$dir"
export TNET_FAST=5

# Quotes that may span lines make each file one part, so that the joint batches are known.
for i in 0 1 2; do
    labels all.csv $((i + 1)) 1200
    tail -n +2 all.csv >$i.csv
done
labels all.csv 9 3001
tail -n +2 all.csv >valid.csv
cat >run.yaml <<END
data: {format: csv, header: false, columns: [click, buy, like, seconds, user, item], valid: valid.csv, shuffle: 0, part_bytes: 8kB}
slots: [user, item]
tasks:
  click: {label: click}
  buy: {label: buy, of: click, weight: learned}
  like: {where: click, weight: 0.5, loss: focal}
  watch: {label: seconds, loss: huber, where: click}
model: {type: mmoe, experts: 2, expert: [16], tower: [8], bias_init: -1}
train: {batch: 40, epochs: 2, threads: 1, optimizer: {type: adagrad, lr: 0.05}}
checkpoint: {every: 20steps, keep: 9}
eval: {calibrate: none}
log: {progress: false}
END
files() { echo "[$(seq -s, 0 $(($1 - 1)) | sed 's/[0-9]/&.csv/g')]"; }

# ---- 2 and 3 processes learn what one learns of their joint batches ----

for n in 2 3; do
    awk -v n=$n -v b=40 'BEGIN {
        do {
            got = 0
            for (i = 0; i < n; i++)
                for (k = 0; k < b && (getline line < (i ".csv")) > 0; k++) { print line; got++ }
        } while (got > 0)
    }' >joint.csv
    expect 0 tnet-train run.yaml --peers $n data.train="$(files $n)" run.dir=of$n data.quote=multiline
    expect 0 tnet-train run.yaml data.train=joint.csv train.batch=$((40 * n)) run.dir=alone$n data.quote=multiline
    for what in "click logloss" "buy logloss" "buy auc" "like logloss" "watch rmse" "watch mae"; do
        # shellcheck disable=SC2086 # two words
        want=$(figure alone$n $what)
        # shellcheck disable=SC2086
        within "$(figure of$n $what)" "$(echo "$want" | awk '{ print $1 - 1e-4 }')" "$(echo "$want" | awk '{ print $1 + 1e-4 }')" "$n peers: $what, which is $want of one process,"
    done
done
cp of3/summary.json first.json
expect 0 tnet-train run.yaml --peers 3 data.train="$(files 3)" run.dir=of3 data.quote=multiline --fresh
cut() { sed 's/.*"valid"//' "$1" | grep -o '"auc":[^,]*\|"logloss":[^,]*\|"rmse":[^,]*'; }
cut first.json >want
cut of3/summary.json >have
[ "$(wc -l <want)" -ge 8 ] || fail "few figures: $(cat want)"
cmp want have || fail "other figures the second time"
echo "$name: 2 and 3 peers learn what one process learns, with the same bits twice"

# ---- any number of processes finds the same of each task, by sums and by rows ----

expect 0 tnet-train run.yaml --peers 2 data.train="$(files 3)" run.dir=two
found() { sed -E 's/"(t|seconds)":[^,}]*//g' out; }
# judged WORDS..: tnet-eval of 1, 2 and 3 processes.
judged() {
    for n in 1 2 3; do
        expect 0 tnet-eval run.yaml run.dir=two --json --peers $n "$@"
        found >have
        [ $n -eq 1 ] && cp have want
        cmp want have || fail "$n peers find $(cat have), not $(cat want)"
        [ ! -e p.tsv ] || mv p.tsv p$n.tsv
        [ ! -e p1.tsv ] || cmp p1.tsv p$n.tsv || fail "$n peers predict something else"
    done
}
judged eval.metrics="[auc,ne,rmse]"
judged eval.predictions=p.tsv eval.slices=[item] eval.slices_min_rows=5 eval.auc=exact data.group=user "eval.metrics=[auc,gauc,logloss,rmse]"
grep -q '"buy":{"rows":3001,[^}]*"gauc":0.[0-9]' want || fail "no such findings: $(cat want)"
[ "$(awk -F '\t' 'NR > 1 && $6 != "" && $9 != ""' p3.tsv | wc -l)" -eq 3001 ] || fail "not a line for each row"
echo "$name: 1, 2 and 3 peers find the same of each task"

# ---- and exports the same ----

expect 0 tnet-export run.yaml run.dir=two export.to=by-1
expect 0 tnet-export run.yaml run.dir=two export.to=by-3 --peers 3
diff -r by-1 by-3 >&2 || fail "3 peers export other bytes"

# ---- a run goes on with another number of processes; each rank evaluates at staleness 1 ----

expect 0 tnet-train run.yaml --peers 3 data.train="$(files 3)" run.dir=two train.epochs=3
expect 0 tnet-train run.yaml data.train="$(files 3)" run.dir=two train.epochs=4
expect 0 tnet-train run.yaml --peers 3 data.train="$(files 3)" run.dir=apart cluster.staleness=1 train.epochs=5
for run in two apart; do
    within "$(figure $run click auc)" .6 .9 "$run: auc of clicks"
    within "$(figure $run buy auc)" .6 .9 "$run: auc of purchases"
    within "$(figure $run watch rmse)" .8 1.8 "$run: rmse of seconds"
done

# ---- the output of each task begins at the rate of all ranks; one rank has rows without likes ----

awk -F , -v OFS=, '{ $3 = ""; print }' 1.csv >unliked.csv
for n in 1 3; do
    expect 0 tnet-train run.yaml --peers $n data.train="[0.csv, unliked.csv, 2.csv]" run.dir=begun$n model.bias_init=prior train.max_steps=1 \
        "train.optimizer={type: sgd, lr: 1e-9}" "train.sparse={type: sgd, lr: 1e-9}"
    for task in click buy like; do
        within "$(figure begun$n $task copc)" .9 1.1 "$n peers: copc of $task at the beginning"
    done
    within "$(figure begun$n watch prediction_mean)" 4.6 5.4 "$n peers: mean of seconds at the beginning"
done

# ---- what the labels of all ranks have shown ----

{ cat 1.csv && printf '0,1,,,1,2\n1,0,,,3,4\n0,1,,,5,6\n'; } >odd.csv
awk -F , -v OFS=, '{ $3 = ""; print }' 0.csv >bare.csv
expect 0 tnet-train run.yaml --peers 2 data.train="[bare.csv, odd.csv]" run.dir=odd train.epochs=2
[ "$(grep -c "2 rows of data.train have 'buy' without 'click', which is no share" err)" -eq 1 ] || fail "contradictions: $(cat err)"
! grep -q "learns nothing" err || fail "likes of rank 1 are not counted: $(cat err)"
echo "$name: other numbers of processes, rates and labels of all ranks"
