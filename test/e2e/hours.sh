#!/bin/sh
# hours.sh - runs over hours have what runs over days have: at once, hour by hour and after kills they leave the same
# bits, exports and calibrations; an hour is learned once; what is missing or wrong is told. The seed of the moments is
# printed; TNET_SEED replays one.
. "$(dirname "$0")/kit"
draw
cd "$dir"
n=0
for hour in 07/22 07/23 08/00 08/01 08/02; do
    mkdir -p "logs/202611${hour%/*}"
    clicks "logs/202611$hour.tsv" 400 $((n * 400))
    n=$((n + 1))
done
cat >c.yaml <<'END'
data: {format: criteo, train: "logs/{day:%Y%m%d}/{hour:%H}.tsv", valid: next, shuffle: 300}
embedding: {dim: 2, expiry: {ttl_days: 1}}
model: {type: deepfm, hidden: [8], dropout: 0.2}
train: {batch: 50, threads: 1}
checkpoint: {keep: 100}
eval: {calibrate: platt}
export: {every: hour, dict: [tnd]}
log: {progress: false}
END
# run CODE RUN WORDS..
run() {
    code=$1 name_of=$2
    shift 2
    expect "$code" tnet-train c.yaml run.dir="run-$name_of" export.to="to-$name_of" "$@"
}
newest() { echo "run-$1/$(cut -d' ' -f1 "run-$1/LATEST")"; }
weights() { for file in "$(newest "$1")"/sparse-* "$(newest "$1")"/dense-*; do tail -c +65 "$file"; done | cksum; }
same() {
    [ "$(weights "$1")" = "$(weights "$2")" ] || fail "the models of $1 and $2 differ (seed $seed)"
    diff -r "to-$1" "to-$2" >differs || fail "other exports of $2 (seed $seed): $(cut -c 1-300 differs | head -n 5)"
}

run 0 once data.days=2026-11-07T22..2026-11-08T02
grep -q 'hour 2026-11-07T22 is learned: 400 rows' err || fail "$(cat err)"
grep -q 'published without a calibration .*: data.valid is next, and hour 2026-11-08T03 is not there yet' err || fail "$(cat err)"
[ "$(grep -c '"kind":"day"' run-once/metrics.jsonl)" -eq 5 ] || fail "not five records: $(cat run-once/metrics.jsonl)"
grep -q '"day":"2026-11-08T02"' run-once/metrics.jsonl || fail "no hour in a record"
grep -q '"data":"hour 2026-11-08T00"' run-once/metrics.jsonl || fail "the hour after is not judged"
grep -q '"days":{"unit":"hour","learned":\[\[498358,498362\]\]' "$(newest once)/MANIFEST" || fail "$(grep -o "days.:.*" "$(newest once)/MANIFEST" | cut -c 1-100)"
[ "$(find to-once -name model.json -exec grep -l '"calibration"' {} + | wc -l)" -eq 4 ] || fail "not four calibrated exports of five"
grep -q '"day":"2026-11-08T02"' run-once/summary.json || fail "$(cat run-once/summary.json)"

for hour in 07T22 07T23 08T00 08T01 08T02; do
    run 0 each hour=2026-11-$hour
done
same once each
run 0 each hour=2026-11-08T02
grep -q 'hours 2026-11-07T22..2026-11-08T02 are learned; nothing new' err || fail "$(cat err)"
run 0 two data.days=2026-11-07T22..2026-11-08T02 --peers 2
echo "$name: at once, and hour by hour"

killed "${TNET_KILLS:-4}" 170 tnet-train c.yaml run.dir=run-killed export.to=to-killed 'data.days=[2026-11-07T22..T23, 2026-11-08T00..T02]'
same once killed
echo "$name: kills leave the same"

expect 0 tnet-eval run-once --data logs/20261107/22.tsv
clicks logs/20261108/03.tsv 400 2000
expect 0 tnet-eval run-once
head -n 1 out | grep -q 2026-11-08T03 || fail "not of the hour after: $(cat out)"
expect 0 tnet-eval run-once --calibrate platt
run 3 once hour=2026-11-08T05
says "hour 2026-11-08T03 is not learned, and data.days goes on with 2026-11-08T05 behind 2026-11-08T02"
rm logs/20261108/03.tsv
run 0 once hour=2026-11-08T03
grep -q 'hours 2026-11-07T22..2026-11-08T02 are learned; nothing new: 2026-11-08T03 is not there' err || fail "$(cat err)"
run 3 once hour=2026-11-07T21
says "hour 2026-11-07T21 lies before 2026-11-08T02, which is learned already"
run 3 once day=2026-11-08 export.every=day
says "data.days are days, and the run has learned hours"
# refused WORDS OPTION..
refused() {
    words=$1
    shift
    run 3 x "$@"
    grep -qF "$words" err || fail "no '$words' in: $(cat err)"
}
refused "data.days are hours, and 'logs/{day:%Y%m%d}/' of data.train is the same for all of a day" \
    'data.train="logs/{day:%Y%m%d}/"' hour=2026-11-07T22
refused "'2026-11-07T24' of data.days is not a date like 2026-11-07, nor an hour like 2026-11-07T05" hour=2026-11-07T24
refused "data.days are days and hours" 'data.days=[2026-11-06, 2026-11-07T22]'
refused "is of a day and an hour" data.days=2026-11-07T22..2026-11-08
refused "ends before it begins" data.days=2026-11-07T22..T05
refused "'export.every' is day, and data.days are hours" hour=2026-11-07T22 export.every=day
echo "$name: what is wrong is told"
