#!/bin/sh
# days.sh - runs over days: 10 days in one run, in 10 runs of one day, and in runs that are killed at
# random leave the same bits; a day is learned once; what is missing, late, left out, changed or wrong is
# told in a sentence, and loses nothing. The seed of the moments is printed; TNET_SEED replays one.
. "$(dirname "$0")/kit"
draw
kills=${TNET_KILLS:-6}
cd "$dir"
i=0
while [ $i -lt 10 ]; do
    day=logs/202611$((21 + i))
    mkdir -p "$day"
    clicks "$day/part-0.tsv" 200 $((i * 900))
    clicks "$day/part-1.tsv" 250 $((i * 900 + 450))
    i=$((i + 1))
done
cat >c.yaml <<'END'
data: {format: criteo, train: "logs/{day:%Y%m%d}/part-*.tsv", valid: next, valid_rows: 100, shuffle: 300, part_bytes: 40KiB}
embedding: {dim: 2}
model: {type: deepfm, hidden: [8], dropout: 0.2}
train: {batch: 50, threads: 1, optimizer: {type: adam, schedule: {type: constant, warmup: 30}}}
log: {progress: false}
END

# run CODE WORDS..: tnet-train c.yaml.
run() {
    code=$1
    shift
    expect "$code" tnet-train c.yaml "$@"
}

# told TEXT: on stderr, which is no error.
told() { grep -qF -- "$1" err || fail "no '$1' in: $(cat err)"; }

# weights RUN: of its newest checkpoint, without the heads that name the run that wrote it.
weights() {
    newest=runs/$1/$(cut -d' ' -f1 "runs/$1/LATEST")
    for file in "$newest"/sparse-* "$newest"/dense-*; do
        tail -c +65 "$file"
    done | cksum
}
same() { [ "$(weights "$1")" = "$(weights "$2")" ] || fail "the models of $1 and $2 differ (seed $seed)"; }
other() { [ "$(weights "$1")" != "$(weights "$2")" ] || fail "the models of $1 and $2 are the same"; }
days_of() { grep -o '"days":{[^}]*}' "runs/$1/$(cut -d' ' -f1 "runs/$1/LATEST")/MANIFEST"; }
learned_of() { days_of "$1" | sed 's/,"last":.*/}/'; }

# timed WORDS..: a run that goes through, and in $took its milliseconds.
timed() {
    begun=$(date +%s%N)
    run 0 "$@"
    took=$((($(date +%s%N) - begun) / 1000000))
}

# cut_short RUN WORDS..: a run that is killed within the first half of what timed saw it take.
cut_short() {
    which=$1
    shift
    killed "$kills" $((took / 2)) tnet-train c.yaml run.name="$which" checkpoint.every=3steps "$@"
}

# ---- one run, one run a day, killed runs
timed run.name=one data.days=2026-11-21..2026-11-30
told 'day 2026-11-30 is learned: 450 rows'
[ "$(grep -c '"kind":"day"' runs/one/metrics.jsonl)" -eq 10 ] || fail "not a day record per day"
grep -q '"kind":"day".*"day":"2026-11-27","epochs":1,"rows":450,.*"checkpoint":"ckpt-7"' runs/one/metrics.jsonl || fail "no record of 2026-11-27"
grep -q '"kind":"eval".*"data":"day 2026-11-28","rows":100,' runs/one/metrics.jsonl || fail "the day after is not evaluated"
[ -d runs/one/tb/next ] || fail "no curve of the days after: $(ls runs/one/tb)"
[ "$(learned_of one)" = '"days":{"learned":[[20778,20787]]}' ] || fail "$(days_of one)"
i=21
while [ $i -le 30 ]; do
    run 0 run.name=many day=2026-11-$i
    i=$((i + 1))
done
same one many
cut_short cut data.days=2026-11-21..2026-11-30
same one cut
for left in runs/cut/*.tmp; do
    [ ! -e "$left" ] || fail "left behind: $left"
done
# two passes a day; the shape of the epochs is another
timed run.name=twice data.days=2026-11-21..2026-11-23 train.epochs=2
for d in 21 22 23; do run 0 run.name=twice_many day=2026-11-$d train.epochs=2; done
same twice twice_many
cut_short twice_cut data.days=2026-11-21..2026-11-23 train.epochs=2
same twice twice_cut
other twice one

# ---- the same command again
run 0 run.name=one data.days=2026-11-21..2026-11-30
told 'days 2026-11-21..30 are learned; nothing new in data.days'
same one many
# .. also behind a kill between a checkpoint and its name in LATEST
cp runs/one/LATEST named
echo 'ckpt-1 00000000' >runs/one/LATEST
echo half >runs/one/LATEST.0123456789abcdef.tmp
run 0 run.name=one data.days=2026-11-21..2026-11-30
cmp named runs/one/LATEST || fail "LATEST is not named again: $(cat runs/one/LATEST)"
[ ! -e runs/one/LATEST.0123456789abcdef.tmp ] || fail "an unfinished file stays"
run 0 run.name=one data.days=2026-11-21..2026-12-03
told "days 2026-11-21..30 are learned; nothing new: 2026-12-01 is not there (no file matches 'logs/20261201/part-*.tsv')"
run 0 run.name=one day=2026-11-25
told 'nothing new'
same one many

# ---- days that go back, a day left out, a day twice
run 3 run.name=b data.days=2026-11-25..2026-11-22
told "data.days '2026-11-25..2026-11-22' ends before it begins"
run 0 run.name=b data.days=2026-11-23..2026-11-24
run 3 run.name=b day=2026-11-22
says 'day 2026-11-22 lies before 2026-11-24, which is learned already'
run 3 run.name=b day=2026-11-26
says 'day 2026-11-25 is not learned, and data.days goes on with 2026-11-26 behind 2026-11-24'
cp -r runs/b runs/again
run 0 run.name=again day=2026-11-24 --again
other again b
run 0 run.name=again day=2026-11-22 --again
[ "$(learned_of again)" = '"days":{"learned":[[20779,20781]]}' ] || fail "$(days_of again)"
expect 0 tnet-export c.yaml run.name=again day=2026-11-23 --to again-export
! grep -q "is not learned" err || fail "a day that was learned before: $(cat err)"
run 0 run.name=b 'data.days=[2026-11-24, 2026-11-26]'
[ "$(learned_of b)" = '"days":{"learned":[[20780,20781],[20783,20783]]}' ] || fail "$(days_of b)"
run 0 run.name=b 'data.days=2026-11-23..2026-11-24'
told 'days 2026-11-23..24, 2026-11-26 are learned; nothing new'
run 3 run.name=b --again data.days=2026-11-23..2026-11-24
says '--again learns one day once more, and data.days names 2'

mv logs/20261122 away
run 4 run.name=again day=2026-11-22 --again
says "day 2026-11-22 is not there: no file matches 'logs/20261122/part-*.tsv'"
mv away logs/20261122

# ---- days that are missing
run 4 run.name=m day=2026-12-24
says "day 2026-12-24 is not there: no file matches 'logs/20261224/part-*.tsv'"
mv logs/20261123 away
run 4 run.name=m data.days=2026-11-21..2026-11-25
says 'day 2026-11-23 is not there, and 2026-11-24 is'
[ "$(learned_of m)" = '"days":{"learned":[[20778,20779]]}' ] || fail "days before the gap are lost: $(days_of m)"
run 0 run.name=m data.days=2026-11-22..2026-11-23
told 'nothing new: 2026-11-23 is not there'

# ---- waiting
{
    until grep -q 'waiting for day 2026-11-23' err; do sleep 0.05; done
    mv away logs/20261123
} 2>null &
children="$children $!"
run 0 run.name=m data.days=2026-11-21..2026-11-23 data.wait=60s
told 'waiting for day 2026-11-23'
run 0 run.name=three data.days=2026-11-21..2026-11-23
same m three
tnet-train c.yaml run.name=m data.days=2026-11-21..2026-12-31 data.wait=inf >out 2>err &
pid=$!
children="$children $pid"
tries=0
until grep -q 'waiting for day 2026-12-01' err; do
    tries=$((tries + 1))
    [ $tries -lt 1200 ] || fail "does not wait: $(cat err)"
    sleep 0.05
done
kill -INT $pid
got=0
wait $pid || got=$?
[ $got -eq 75 ] || fail "exit code $got of a run that waits and is stopped"
same one m

# ---- done: a day is there when its writer says so
run 4 run.name=d day=2026-11-21 data.done=_SUCCESS
says "day 2026-11-21 is not there: there is no 'logs/20261121/_SUCCESS'"
touch logs/20261121/_SUCCESS
run 0 run.name=d data.days=2026-11-21..2026-11-22 data.done=_SUCCESS
told "nothing new: 2026-11-22 is not there (there is no 'logs/20261122/_SUCCESS')"

# ---- a bad day rolled back: the checkpoint before it, and the day as it is now
cp logs/20261123/part-0.tsv good
printf 'x\ty\n' >>logs/20261123/part-0.tsv
run 0 run.name=bad data.days=2026-11-21..2026-11-22
run 4 run.name=bad day=2026-11-23
says '20261123/part-0.tsv'
clicks logs/20261123/part-0.tsv 200 9000
run 0 run.name=bad day=2026-11-23
other bad three
mv good logs/20261123/part-0.tsv
run 0 run.name=bad day=2026-11-23
told 'nothing new'
run 0 run.name=bad day=2026-11-23 checkpoint.resume=runs/bad/ckpt-2
same bad three

# ---- a disk that is full, files that change within a day
got=0
TNET_FAIL=ckpt.begin#3:ENOSPC tnet-train c.yaml run.name=full data.days=2026-11-21..2026-11-25 >out 2>err || got=$?
if [ $got -ne 0 ]; then
    [ $got -eq 8 ] || fail "exit code $got of a full disk: $(cat err)"
    run 0 run.name=full data.days=2026-11-21..2026-11-23
    same full three
    got=0
    TNET_FAIL=ckpt.begin#3:kill tnet-train c.yaml run.name=change data.days=2026-11-21..2026-11-22 checkpoint.every=4steps >out 2>err || got=$?
    days_of change | grep -q '"day":20778' || fail "killed elsewhere: $(days_of change)"
    cp logs/20261121/part-1.tsv good
    clicks logs/20261121/part-1.tsv 251 9300
    run 4 run.name=change data.days=2026-11-21..2026-11-22
    says 'the training data have changed since the checkpoint'
    mv good logs/20261121/part-1.tsv
    run 0 run.name=change day=2026-11-22 # the day that was begun comes first
    run 0 run.name=change day=2026-11-23
    same change three
fi

# ---- memory that is full within a day
got=0
tnet-train c.yaml run.name=mem data.days=2026-11-21..2026-11-23 embedding.memory=1000kB >out 2>err || got=$?
[ $got -eq 7 ] || fail "exit code $got of full memory: $(cat err)"
days_of mem | grep -qF '"learned":[[20778,20778]],"day":20779' || fail "not within the second day: $(days_of mem)"
run 0 run.name=mem data.days=2026-11-21..2026-11-23
same mem three

# ---- the end within a day, and on
run 0 run.name=steps data.days=2026-11-21..2026-11-23 train.max_steps=13
days_of steps | grep -q '"day":20779,"epoch":1,"before":1' || fail "not within the second day: $(days_of steps)"
run 0 run.name=figures data.days=2026-11-21..2026-11-23 train.max_steps=13 eval.calibrate=none
if grep -q valid out; then fail "figures of the model at the end of the first day: $(cat out)"; fi
run 0 run.name=steps data.days=2026-11-21..2026-11-23 train.max_steps=13
told "run 'steps' is finished (step 13 of 13); nothing trained; train on with train.max_steps=27"
run 0 run.name=begun data.days=2026-11-21..2026-11-23 train.max_steps=3
expect 0 tnet-export runs/begun --to exported-begun
expect 0 tnet-eval runs/begun --data logs/20261123/part-0.tsv
run 0 run.name=steps data.days=2026-11-21..2026-11-23
told 'goes on from ckpt-2 (within day 2026-11-22; day 2026-11-21 is learned, step 13)'
told 'day 2026-11-22 is learned: 450 rows'
same steps three

# ---- words
run 3 run.name=w
told "data.train has {day:..} or {hour:..}, and data.days is not set"
run 3 run.name=w day=yesterday
told "'yesterday' of data.days is not a date like 2026-11-07"
run 3 run.name=w day=2026-02-30
told "'2026-02-30' of data.days is not a date"
run 3 run.name=w day=2026-11-21 data.train=logs/20261121/part-0.tsv
told "data.days is set, and 'logs/20261121/part-0.tsv' of data.train is the same for all days"
run 3 run.name=w day=2026-11-21 'data.train=logs/{day:%Y%m}/part-0.tsv'
told "is the same for several days"
run 3 run.name=w day=2026-11-21 'data.train=logs/{day:%Q}/part-0.tsv'
told "'%Q' in '%Q'"
run 3 run.name=w day=2026-11-21 'data.train=logs/{day}/part-0.tsv'
told "{day is not of the form {day:%Y%m%d}"
run 3 run.name=w day=2026-11-21 data.wait=soon
told "data.wait is 'soon'"
run 3 run.name=w day=2026-11-21 data.wait=-1s
told "data.wait is '-1s', not a time like 0s, 30min or 2h, nor inf"
run 3 run.name=w data.train=logs/20261121/part-0.tsv
told "data.valid is 'next', the day after, and data.days is not set"
run 3 run.name=w day=2026-11-21 'data.valid=logs/{day:%Y%m%d}/part-0.tsv'
told "stand in data.train only"
run 3 run.name=w day=2026-11-21 train.stop.monitor=valid.auc
told "'train.stop' "
run 3 run.name=w day=2026-11-21 train.optimizer.schedule=cosine
told "ends with the run, and a run over days has no end"
run 3 run.name=w day=2026-11-21 train.epochs=0
told "'train.epochs' is 0"
run 3 run.name=w day=2026-11-21 run.day=2026-11-22
told "'run.day' and data.days are both set"
[ ! -e runs/w ] || fail "a run was begun"

# ---- hours
mkdir hours
h=0
while [ $h -lt 24 ]; do
    clicks "hours/$(printf '20261121-%02d' $h).tsv" 20 $((h * 100))
    h=$((h + 1))
done
run 0 run.name=h day=2026-11-21 'data.train=hours/{day:%Y%m%d}-{hour:%H}.tsv'
told 'day 2026-11-21 is learned: 480 rows'
rm hours/20261121-13.tsv
run 4 run.name=h2 day=2026-11-21 'data.train=hours/{hour:%Y%m%d-%H}.tsv'
says "cannot find 'hours/20261121-13.tsv'"

run 0 run.name=mse day=2026-11-21 loss=mse
grep '"kind":"day"' runs/mse/metrics.jsonl | grep -q '"loss":0\.' || fail "no loss of the day: $(cat runs/mse/metrics.jsonl)"

# ---- other programs know the day
expect 0 tnet-eval c.yaml run.name=three day=2026-11-24
grep -q '^rows  *450' out || fail "not the rows of the day: $(cat out)"
expect 0 tnet-eval c.yaml run.name=three data.days=2026-11-24..2026-11-25
grep -q '^rows  *900' out || fail "not the rows of both days: $(cat out)"
expect 0 tnet-export c.yaml run.name=three day=2026-11-23 export.to=exported
last=$(grep -o '"day":"[^"]*"' runs/three/summary.json)
[ "$last" = '"day":"2026-11-23"' ] || fail "summary.json: $last"
grep -qF "$last" "$(cat out)/EXPORT.json" || fail "not the day in EXPORT.json"
expect 0 tnet-data stat c.yaml day=2026-11-24
grep -q '450' out || fail "tnet-data does not know the day: $(cat out)"
expect 0 tnet-train c.yaml day=2026-11-24 --dry-run
expect 0 tnet-train c.yaml day=2026-11-24 --print-config

expect 0 tnet-export c.yaml run.name=three day=2026-11-29 export.to=exported
told 'day 2026-11-29 is not learned; exported is the model of 2026-11-23'
expect 4 tnet-eval c.yaml run.name=three data.days=2026-11-30..2026-12-01
says "day 2026-12-01 is not there: no file matches 'logs/20261201/part-*.tsv'"
expect 4 tnet-eval c.yaml run.name=three day=2026-11-25 data.done=_SUCCESS # half a day is no figure
says "day 2026-11-25 is not there: there is no 'logs/20261125/_SUCCESS'"
[ ! -s out ] || fail "figures of a day that is not there: $(cat out)"
expect 4 tnet-eval c.yaml run.name=three day=2026-12-01 --peers 2
says "day 2026-12-01 is not there: no file matches 'logs/20261201/part-*.tsv'"

# ---- weights of another run, which has learned days
run 0 run.name=from data.days=2026-11-23..2026-11-24 checkpoint.from=runs/three
told 'warning: the run begins with weights of 2026-11-23: rows of day 2026-11-23 may be in them already'
run 0 run.name=from2 day=2026-11-24 checkpoint.from=runs/three
! grep -q 'may be in them' err || fail "a new day is warned of: $(cat err)"

# ---- files of their own judge every day: what a stop within an evaluation leaves is made up for, with every evaluation once
clicks fixed.tsv 200 9700
fixed="data.valid=fixed.tsv data.days=2026-11-21..2026-11-22"
judged() { grep '"kind":"eval"' "runs/$1/metrics.jsonl" | grep -o '"step":[0-9]*' | sort -u; }
# shellcheck disable=SC2086
run 0 run.name=fixed $fixed
judged fixed >want
[ "$(wc -l <want)" -eq 2 ] || fail "not an evaluation a day: $(cat want)"
for read in 3 4 5 6 7; do
    got=0
    # shellcheck disable=SC2086
    TNET_FAIL=io.read_data#$read:stop tnet-train c.yaml run.name=stop$read $fixed >out 2>err || got=$?
    [ $got -eq 75 ] || fail "exit code $got at read $read: $(cat err)"
    # shellcheck disable=SC2086
    run 0 run.name=stop$read $fixed
    same fixed stop$read
    judged stop$read >have
    cmp want have || fail "other evaluations after a stop at read $read: $(cat have)"
done

# ---- several processes
timed run.name=p2 data.days=2026-11-21..2026-11-23 --peers 2
for d in 21 22 23; do run 0 run.name=p2_many day=2026-11-$d --peers 2; done
same p2 p2_many
kills=3
cut_short p2_cut data.days=2026-11-21..2026-11-23 --peers 2
same p2 p2_cut
run 0 run.name=p2 data.days=2026-11-21..2026-11-23 --peers 2
told 'days 2026-11-21..23 are learned; nothing new'
