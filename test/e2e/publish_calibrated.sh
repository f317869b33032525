#!/bin/sh
# publish_calibrated.sh - what a run publishes while it trains has the calibration of its own model: that which
# tnet-eval fits to the same checkpoint, of files and of the day after, of one process and of two, also after kills.
# The seed of the kills is printed; TNET_SEED replays one.
. "$(dirname "$0")/kit"
draw
cd "$dir"
clicks train.tsv 2000 0
clicks valid.tsv 1000 2000
for day in 1 2 3 4; do clicks "day$day.tsv" 1000 $((3000 + day * 1000)); done
cat >c.yaml <<'END'
run: {name: publish}
data: {format: criteo, train: train.tsv, valid: valid.tsv}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 2, batch: 50, threads: 1}
checkpoint: {keep: 100}
eval: {calibrate: platt}
log: {progress: false}
export: {every: 15steps, dict: [tnd]}
END
mkdir logs
for day in 1 2 3 4; do mv day$day.tsv logs/2026110$day.tsv; done
days="data.train=logs/{day:%Y%m%d}.tsv data.days=2026-11-01..2026-11-04 data.valid=next export.every=day train.epochs=1"

# map FILE: the calibration in a file; nothing where it has none.
map() { grep -o '"calibration":{[^}]*}' "$1" || true; }

# as_fitted RUN TO WORDS..: every checkpoint that was to be exported has an export with the map that tnet-eval fits to it;
# $without of them have none, since there are no rows.
as_fitted() {
    run=$1
    to=$2
    shift 2
    lack=0
    n=0
    for ckpt in "$run"/ckpt-*; do
        grep -q '"export":{"due":true' "$ckpt/MANIFEST" || continue
        n=$((n + 1))
        rm -rf again fitted.json
        expect 0 tnet-export -q c.yaml "$@" run.dir="$run" --checkpoint "$ckpt" --to again
        id=$(ls again)
        [ -n "$(map "again/$id/model.json")" ] || lack=$((lack + 1))
        [ "$(map "again/$id/model.json")" = "$(map "$to/$id/model.json")" ] || fail "$to/$id has another map than $ckpt"
        if [ -n "$(map "$to/$id/model.json")" ]; then
            expect 0 tnet-eval -q c.yaml "$@" run.dir="$run" --checkpoint "$ckpt" --calibrate platt --calibration-out fitted.json
            [ "$(map fitted.json)" = "$(map "$to/$id/model.json")" ] || fail "$to/$id: $(map "$to/$id/model.json"), not $(map fitted.json)"
        fi
    done
    [ "$n" -ge 3 ] || fail "$n exports in $run"
    [ "$lack" -eq "$without" ] || fail "$lack exports of $run have no calibration, not $without"
}

without=0
expect 0 tnet-train c.yaml run.dir=steps export.to=x
as_fitted steps x
expect 0 tnet-train c.yaml run.dir=epochs export.to=y export.every=1epoch train.epochs=3
as_fitted epochs y
expect 0 tnet-train c.yaml run.dir=two export.to=z --peers 2
as_fitted two z

# A map of another kind than is wanted is not served.
first=$(find steps/ckpt-* -prune -type d -exec grep -l '"export":{"due":true' {}/MANIFEST \; | head -n 1)
rm -rf again
expect 0 tnet-export -q c.yaml run.dir=steps --checkpoint "$(dirname "$first")" --to again eval.calibrate=isotonic
[ -z "$(map again/*/model.json)" ] || fail "isotonic was wanted: $(map again/*/model.json)"
echo "$name: of files, by steps and epochs, of two processes"

# The last day has nothing behind it, until there is.
# shellcheck disable=SC2086 # words
expect 0 tnet-train c.yaml $days run.dir=days export.to=d
lacks="(eval.calibrate is platt): data.valid is next, and"
grep -qF "published without a calibration $lacks day 2026-11-05 is not there yet" err || fail "$(cat err)"
grep -qF "not calibrated $lacks the day after is not there yet" err || fail "$(cat err)"
without=1
# shellcheck disable=SC2086
as_fitted days d $days
# shellcheck disable=SC2086
expect 4 tnet-eval -q c.yaml $days run.dir=days --calibrate platt
says "nothing to calibrate on: data.valid is next, and day 2026-11-05 is not there yet"
clicks logs/20261105.tsv 1000 8000
# shellcheck disable=SC2086
expect 0 tnet-eval c.yaml $days run.dir=days --calibrate platt
head -n 1 out | grep -q 'day 2026-11-05' || fail "not of the day after: $(cat out)"
# shellcheck disable=SC2086
expect 2 tnet-eval -q c.yaml $days run.dir=days --calibrate platt --data logs/20261103.tsv
says "needs rows that the model was not trained on"
rm logs/20261105.tsv
echo "$name: of days, by the day after"

# stopped WANT TO WORDS..: a signal ends the second evaluation that an export waits for, and then the one that makes up for it.
stopped() {
    reference=$1
    to=$2
    shift 2
    for stop in 2 1 99; do
        code=75
        [ $stop -ne 99 ] || code=0
        expect $code env TNET_FAIL=saver.gather#$stop:stop tnet-train c.yaml "$@" run.dir="run-$to" export.to="$to"
    done
    diff -r "$reference" "$to" >differs || fail "other exports after a stop: $(cut -c 1-300 differs | head -n 5)"
}
# shellcheck disable=SC2086
stopped d sd $days
stopped x sx
stopped y sy export.every=1epoch train.epochs=3
echo "$name: an export that was stopped is made up for"

# A kill comes before the export of the end, the sixth: the same command makes it, with its calibration.
expect 137 env TNET_FAIL=export.begin#6:kill tnet-train c.yaml run.dir=run-ex export.to=ex
expect 0 tnet-train c.yaml run.dir=run-ex export.to=ex
diff -r x ex >differs || fail "other exports after a kill before the last: $(cut -c 1-300 differs | head -n 5)"
echo "$name: the last export is made up for"

# after_kills WANT TO WORDS..: the same command, stopped and killed at random moments until it ends, leaves the exports of WANT.
after_kills() {
    reference=$1
    to=$2
    shift 2
    killed "${TNET_KILLS:-4}" 120 tnet-train c.yaml "$@" run.dir="run-$to" export.to="$to"
    diff -r "$reference" "$to" >differs || fail "seed $seed: other exports after kills: $(cut -c 1-300 differs | head -n 5)"
}
# shellcheck disable=SC2086
after_kills d kd $days
after_kills x kx
after_kills y ky export.every=1epoch train.epochs=3
echo "$name: kills leave the same exports"
