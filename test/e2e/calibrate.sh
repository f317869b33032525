#!/bin/sh
# calibrate.sh - the calibration that a run ends with: what it is fitted on, who uses it, and when it
# is not used.
. "$(dirname "$0")/kit"
clicks "$dir/train.tsv" 6000 0
clicks "$dir/test.tsv" 2000 8000
clicks "$dir/all.tsv" 4000 6000
cd "$dir"
awk -F '\t' '$1 == 0 || NR % 2 == 0' all.tsv >valid.tsv     # half of the clicks are gone
awk -F '\t' '$1 == 0 && NR % 10' test.tsv >none.tsv         # all of them
cat >run.yaml <<END
run: {name: calibrated, dir: run}
data: {format: criteo, train: train.tsv, valid: valid.tsv, test: test.tsv}
model: {type: deepfm, hidden: [16, 8]}
embedding: {dim: 4}
train: {batch: 256, threads: 2, epochs: 2}
eval: {calibrate: platt}
END
# figure FILE NAME: the first number of that name.
figure() {
    sed 's/.*"'"$2"'":\([^,}]*\).*/\1/' "$1"
}
told() {
    grep -qF -- "$1" err || fail "not told '$1': $(cat err)"
}
same() {
    cmp "$1" "$2" || fail "$3"
}
# near FILE FILE: scores of the same rows, to the last digits that matter.
near() {
    paste "$1" "$2" | awk -F '\t' '
        NR > 1 {
            d = $4 - $9; e = $5 - $10; size = $4 < 0 ? -$4 : $4
            if ($1 != $6 || d * d > 4e-12 * (1 + size * size) || e * e > 1e-12) { print; bad = 1 }
        }
        END { exit bad || NR < 2 }' >differ || fail "$3: $(head -n 3 differ)"
}

# a run fits on the raw scores of data.valid, exactly as tnet-eval does, and says what that did
expect 0 tnet-train run.yaml eval.predictions=trained.tsv
told "calibrated by platt on $(wc -l <valid.tsv) rows of valid: p = sigmoid("
told "to 1.000; in run/calibration.json"
told "  calibrated by platt (raw: logloss "
grep -q "warning: valid.copc" err && fail "advice on what is mended: $(cat err)"
grep -q "^test is calibrated by platt (raw: logloss " out || fail "the table does not say so: $(cat out)"
grep -q "^metric  *valid (raw)  *test$" out || fail "the table does not say what is raw: $(cat out)"
cp -r run kept
expect 0 tnet-eval -q run.yaml --calibrate platt --calibration-out fitted.json
same fitted.json run/calibration.json "a run and tnet-eval fit something else"

# who evaluates sees the same probabilities, and the raw ones when asked
expect 0 tnet-eval run.yaml eval.predictions=seen.tsv --json
told "scores are calibrated by 'run/calibration.json': p = sigmoid("
mv out seen.json
same trained.tsv seen.tsv "a run and tnet-eval predict something else"
grep -q '"calibrated_by":"platt","raw_logloss":' seen.json || fail "$(cat seen.json)"
expect 0 tnet-eval run.yaml eval.calibrate=none eval.predictions=raw.tsv --json
mv out raw.json
grep -q calibrated err raw.json && fail "raw scores are called calibrated: $(cat err)"
line=$(sed 's/.*"a":\([^,]*\),"b":\([^}]*\)}.*/\1 \2/' run/calibration.json)
awk -F '\t' -v OFS='\t' -v line="$line" '
    BEGIN { split(line, map, " "); CONVFMT = "%.9g" }
    NR > 1 { $4 = map[1] * $4 + map[2]; $5 = 1 / (1 + exp(-$4)) }
    { print }' raw.tsv >mapped.tsv
near mapped.tsv seen.tsv "not sigmoid(a z + b)"
for metric in logloss copc; do
    [ "$(figure raw.json $metric)" = "$(figure seen.json raw_$metric)" ] || fail "raw $metric: $(cat seen.json)"
    sed 's/.*"test":{//; s/,"calibrated_by":.*//' run/summary.json >a.json
    sed 's/,"calibrated_by":.*//' seen.json >b.json
    a=$(figure a.json $metric)
    b=$(figure b.json $metric)
    [ "$a" = "$b" ] || fail "$metric of the summary is $a, of tnet-eval $b"
done
expect 0 tnet-eval -q run.yaml eval.predictions=pair.tsv --peers 2
same seen.tsv pair.tsv "two processes predict something else"
for peers in 1 2; do
    expect 0 tnet-eval -q run.yaml --data test.tsv --data all.tsv --data none.tsv --json --peers $peers
    sed 's/.*"logloss":/"logloss":/; s/,"slices":.*//' out >peers-$peers
done
same peers-1 peers-2 "two processes judge something else"
expect 0 tnet-eval -q run.yaml --report page.html
grep -q "calibrated by platt" page.html || fail "the report does not say so"

# so does who serves
expect 0 tnet-export run.yaml --to export
told "the export is calibrated by 'run/calibration.json': p = sigmoid("
tnet-score "$(cat out)" <test.tsv >served.tsv || fail "tnet-score"
near seen.tsv served.tsv "tnet-eval and tnet-score predict something else"
expect 0 tnet-export run.yaml --to bare eval.calibrate=none
grep -q calibrated err && fail "$(cat err)"
tnet-score "$(cat out)" <test.tsv >served.tsv || fail "tnet-score"
near raw.tsv served.tsv "an export without a calibration"

expect 0 tnet-train -q run.yaml run.dir=sampled data.negative_sampling=0.5 eval.predictions=trained.tsv
expect 0 tnet-eval -q run.yaml run.dir=sampled data.negative_sampling=0.5 eval.predictions=seen.tsv
same trained.tsv seen.tsv "a run of sampled negatives and tnet-eval predict something else"
expect 0 tnet-export -q run.yaml run.dir=sampled data.negative_sampling=0.5 --to sampled.export
tnet-score "$(cat out)" <test.tsv >served.tsv || fail "tnet-score"
near seen.tsv served.tsv "sampled negatives are corrected twice, or not at all"
expect 3 tnet-eval run.yaml run.dir=sampled eval.predictions=now.tsv
told "data.negative_sampling: here 1, in the checkpoint 0.5"

# the same command changes nothing; one that was stopped, or killed before it had fitted, mends that
expect 0 tnet-train -q run.yaml
same run/calibration.json kept/calibration.json "a finished run has fitted something else"
rm run/calibration.json
expect 0 tnet-train -q run.yaml
same run/calibration.json kept/calibration.json "the file does not come back"
expect 0 tnet-train run.yaml run.dir=parts train.max_steps=30
cp parts/calibration.json part.json
cmp -s part.json kept/calibration.json && fail "30 steps, and all of them, have one file"
expect 0 tnet-train -q run.yaml run.dir=parts
grep -v LOCK parts/calibration.json | same - kept/calibration.json "a run in parts fits something else"

# several processes: the file that one would write for their model
expect 0 tnet-train -q run.yaml run.dir=group --peers 2
expect 0 tnet-eval -q run.yaml run.dir=group --calibrate platt --calibration-out fitted.json
same fitted.json group/calibration.json "two processes fit something else"
expect 0 tnet-train -q run.yaml run.dir=best --peers 2 train.stop.monitor=valid.logloss train.epochs=4
expect 0 tnet-eval -q run.yaml run.dir=best --calibrate platt --calibration-out fitted.json
same fitted.json best/calibration.json "not of the best model that two processes have"
expect 0 tnet-train run.yaml run.dir=last --peers 2 train.epochs=9 \
    'train.stop={monitor: valid.logloss, patience: 1, restore: last}'
told "no better logloss 1 times in a row: stopping"
expect 0 tnet-eval -q run.yaml run.dir=last --calibrate platt --calibration-out fitted.json
same fitted.json last/calibration.json "not of the model that two processes have stopped with"
expect 0 tnet-train -q run.yaml run.dir=best1 train.stop.monitor=valid.logloss train.epochs=4
expect 0 tnet-eval -q run.yaml run.dir=best1 --calibrate platt --calibration-out fitted.json
same fitted.json best1/calibration.json "not of the best model"

# another model: not used, said in one line with what makes a new one, which is so
cp run/calibration.json parts/calibration.json
cp part.json run/calibration.json
expect 0 tnet-eval run.yaml eval.predictions=now.tsv
told "scores are not calibrated: 'run/calibration.json' calibrates model "
grep -o "'tnet-eval CONFIG --calibrate platt --calibration-out run/calibration.json'" err >line ||
    fail "no way to a new one: $(cat err)"
same raw.tsv now.tsv "scores behind a map of another model"
expect 0 tnet-export run.yaml --to other
told "the export is not calibrated: 'run/calibration.json' calibrates model "
grep -q calibration "$(cat out)/model.json" && fail "an export with the map of another model"
expect 4 tnet-export run.yaml --to other --calibration run/calibration.json
says "calibrates model "
expect 0 tnet-eval -q run.yaml --calibrate platt --calibration-out run/calibration.json
same run/calibration.json kept/calibration.json "the new one is another"
expect 0 tnet-eval run.yaml eval.predictions=now.tsv --checkpoint parts/ckpt-1
told "scores are not calibrated: 'parts/calibration.json' calibrates model "
expect 0 tnet-eval run.yaml eval.calibrate=isotonic eval.predictions=now.tsv
told "scores are not calibrated: 'run/calibration.json' is platt, eval.calibrate is isotonic"
printf 'x' | dd of=run/calibration.json bs=1 seek=40 conv=notrunc 2>null
expect 0 tnet-eval run.yaml eval.predictions=now.tsv
told "scores are not calibrated: damaged 'run/calibration.json'"
same raw.tsv now.tsv "scores behind a damaged map"
rm run/calibration.json
expect 0 tnet-eval run.yaml eval.predictions=now.tsv
told "scores are not calibrated: no calibration 'run/calibration.json'"

# nothing to fit on: said, and the run has ended well
expect 0 tnet-train run.yaml run.dir=a data.valid=none.tsv
told "not calibrated (eval.calibrate is platt): data.valid has 0 rows with a click and "
[ ! -e a/calibration.json ] || fail "fitted on one class"
expect 0 tnet-train run.yaml run.dir=b data.valid=~
told "not calibrated (eval.calibrate is platt): data.valid is not set"
grep -q calibrated_by b/summary.json && fail "$(cat b/summary.json)"
expect 0 tnet-train run.yaml run.dir=c checkpoint.every=never
told "not calibrated (eval.calibrate is platt): no checkpoint holds this model"

cp -r kept g
expect 0 tnet-train run.yaml run.dir=g train.epochs=3 checkpoint.every=never
told "not calibrated (eval.calibrate is platt): no checkpoint holds this model"
same g/calibration.json kept/calibration.json "the file of the newest checkpoint is gone"

# auto: platt, held to what the scores say where it gains little; without a word where rows are few
# number KEY FILE: of a map
number() {
    sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$2"
}
expect 0 tnet-train run.yaml run.dir=d eval.calibrate=auto
same d/calibration.json kept/calibration.json "auto is not platt where that is sure"
for method in auto platt; do
    expect 0 tnet-train run.yaml run.dir=e eval.calibrate=$method data.valid=all.tsv train.epochs=1
    cp e/calibration.json $method.json
    rm -r e
done
for key in a b; do
    echo "$key $(number $key auto.json) $(number $key platt.json)"
done | awk '
    { was = $1 == "a" ? 1 : 0; held = ($2 - was) / ($3 - was) }
    !(held > .5 && held < 1) { exit 1 }' || fail "auto is $(cat auto.json), platt $(cat platt.json)"
expect 0 tnet-train run.yaml run.dir=d eval.calibrate=isotonic
told "calibrated by isotonic on "
expect 0 tnet-eval run.yaml run.dir=d eval.calibrate=auto
told "scores are calibrated by 'd/calibration.json': p linear between "
head -n 800 valid.tsv >few.tsv
expect 0 tnet-train run.yaml run.dir=h eval.calibrate=auto data.valid=few.tsv
[ ! -e h/calibration.json ] || fail "auto has fitted on few clicks: $(cat err)"
expect 0 tnet-train run.yaml run.dir=h eval.calibrate=platt data.valid=few.tsv
told "calibrated by platt on 800 rows of valid: "
expect 0 tnet-train run.yaml run.dir=f eval.calibrate=none
told "warning: valid.copc"
told "'eval.calibrate=platt' corrects that in tnet-eval and tnet-export"
[ ! -e f/calibration.json ] || fail "fitted without being asked"
for other in a b d f; do
    same_model run $other
done

# begun anew it goes with the run before
expect 0 tnet-train -q run.yaml run.dir=d --fresh eval.calibrate=none
[ -e d/earlier-1/calibration.json ] || fail "not kept: $(ls d/earlier-1)"
[ ! -e d/calibration.json ] || fail "that of the run before stays"
