#!/bin/sh
# compare.sh - two models on the same rows: which is better, by what, and rows that are not the same.
. "$(dirname "$0")/kit"
clicks "$dir/train.tsv" 6000 0
clicks "$dir/test.tsv" 3000 8000
cd "$dir"
cat >good.yaml <<END
run: {name: good, dir: good}
data: {format: criteo, train: train.tsv, test: test.tsv}
model: {type: lr}
train: {batch: 64, threads: 2, epochs: 2}
eval: {slices: [C1]}
END
sed 's/good/poor/g; s/{type: lr}/{type: deepfm, hidden: [4]}\nembedding: {dim: 2}/; s/epochs: 2/max_steps: 4/' good.yaml >poor.yaml
expect 0 tnet-train -q good.yaml
expect 0 tnet-train -q poor.yaml eval.predictions=poor.tsv
expect 0 tnet-export -q poor.yaml --to export
export=$(cat out)
# figure NAME FILE: the first number of that name.
figure() {
    sed 's/"'"$1"'":\([^,}]*\).*/\n\1/' "$2" | tail -n 1
}
# change METRIC: of the table.
change() {
    awk -v metric="$1" '/^compared with/ { on = 1 } on && $1 == metric { print $4; exit }' out
}

# with itself nothing changes, and chance explains it
expect 0 tnet-eval -q good.yaml --compare good
for metric in auc logloss copc ece; do
    [ "$(change $metric)" = 0.000000 ] || fail "$metric of a model and itself: $(cat out)"
done
grep -q "^chance could make this difference of AUC: p 1 by DeLong's test" out || fail "$(cat out)"
grep -q "^C1: 0 of [0-9]* values moved" out || fail "$(cat out)"

# a better one is better, one way and the other
expect 0 tnet-eval -q good.yaml --compare poor
grep -q "^this model has the higher AUC: p [0-9.e-]* by DeLong's test" out || fail "$(cat out)"
grep -q "^other  *[1-9]" out || fail "no value of C1 has moved: $(cat out)"
auc=$(change auc)
expect 0 tnet-eval -q poor.yaml --compare good
grep -q "^the other has the higher AUC: p " out || fail "$(cat out)"
[ "$(change auc)" = "-$auc" ] || fail "$(change auc), not -$auc"

# the run, its checkpoint, its export and its predictions are one model
expect 0 tnet-eval -q good.yaml --compare poor/ckpt-1 --json
figure other out | grep -qx '"poor/ckpt-1"' || fail "$(cat out)"
sed 's/.*"compare":{"other":"[^"]*"//; s/,"model":.*//' out >first
for other in poor "$export" poor.tsv; do
    expect 0 tnet-eval -q good.yaml --compare "$other" --json
    sed 's/.*"compare":{"other":"[^"]*"//; s/,"model":.*//' out >now
    # last bits of scores of an export may differ
    for name in auc logloss p copc; do
        awk -v a="$(figure $name first)" -v b="$(figure $name now)" 'BEGIN { d = a - b; exit d * d > 1e-10 }' ||
            fail "$name of $other: $(cat now)"
    done
done
cmp first now || fail "predictions and the run differ"
expect 0 tnet-eval -q poor.yaml --json
[ "$(figure auc out)" != "$(figure auc first)" ] || fail "the histogram's AUC is exact"
expect 0 tnet-eval -q poor.yaml --json eval.auc=exact
for name in auc logloss copc ece; do
    [ "$(figure $name out)" = "$(figure $name first)" ] || fail "$name of the other is not its own: $(cat first)"
done

# the report
expect 0 tnet-eval -q good.yaml --compare poor.tsv --report page.html
grep -q '"compare":{"other":"poor.tsv"' page.html || fail "no comparison in the report"
[ "$(grep -o '"reliability":\[\[' page.html | wc -l)" -eq 2 ] || fail "no reliability of both"

# .. with the history of its run, which was resumed, and which is not always there
expect 0 tnet-train -q good.yaml run.dir=twice train.max_steps=50 log.every=1ms
expect 0 tnet-train -q good.yaml run.dir=twice log.every=1ms
expect 0 tnet-eval -q good.yaml run.dir=twice --report page.html
[ "$(grep -c '"resumed_from":"ckpt-' twice/metrics.jsonl)" -eq 1 ] || fail "not resumed"
grep -q "\"note\":\"$(grep -c '"kind":"train"' twice/metrics.jsonl) records of training, 0 evaluations\." page.html ||
    fail "not the records of metrics.jsonl: $(grep -o '[0-9]* records of training' page.html)"
grep -q 'Resumed from ckpt-1 at step 50\."' page.html || fail "resumption is not told"
expect 0 tnet-eval -q good.yaml --checkpoint twice/ckpt-1 --report page.html
grep -q "Resumed from ckpt-1 at step 50\." page.html || fail "no history of a checkpoint's own run"
rm twice/metrics.jsonl
expect 0 tnet-eval -q good.yaml run.dir=twice --report page.html
grep -q "No history: twice/metrics.jsonl is not there" page.html || fail "not told that there is none"
expect 0 tnet-eval -q good.yaml --export "$export" --report page.html
grep -q "No history: an export" page.html || fail "the history of an export"

# other rows
head -n 3000 poor.tsv >few.tsv
expect 4 tnet-eval -q good.yaml --compare few.tsv
says "'few.tsv' has 2999 rows, fewer than the data that is evaluated"
tail -n 1 poor.tsv | cat poor.tsv - >many.tsv
expect 4 tnet-eval -q good.yaml --compare many.tsv
says "'many.tsv' has 3001 rows, the data that is evaluated has 3000"
awk -F '\t' -v OFS='\t' 'NR == 7 { $2 = 1 - $2 } { print }' poor.tsv >other.tsv
expect 4 tnet-eval -q good.yaml --compare other.tsv
says "'other.tsv' is of other rows: row 6 has label"
awk -F '\t' -v OFS='\t' 'NR == 7 { $4 = "x" } { print }' poor.tsv >bad.tsv
expect 4 tnet-eval -q good.yaml --compare bad.tsv
says "'bad.tsv', line 7: no prediction with a label"
expect 4 tnet-eval -q good.yaml --compare train.tsv
says "'train.tsv' holds no predictions of clicks"
mkdir empty
expect 5 tnet-eval -q good.yaml --compare empty
says "'empty' is neither an export nor a checkpoint"
expect 3 tnet-eval -q good.yaml --compare poor --peers 2
says "'--compare' does not work with several processes"
expect 2 tnet-eval -q good.yaml --compare poor --data - <test.tsv
says "standard input, which two models cannot share"
expect 3 tnet-eval -q good.yaml --compare poor.tsv data.label=none
says "'--compare' needs labels"

# files put together keep their heads
(head -n 1001 poor.tsv && head -n 1 poor.tsv && tail -n +1002 poor.tsv) >joined.tsv
expect 0 tnet-eval -q good.yaml --compare joined.tsv --data - --json <test.tsv
sed 's/.*"compare":{"other":"[^"]*"//; s/,"model":.*//' out >now
cmp first now || fail "joined predictions differ"
