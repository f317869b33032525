#!/bin/sh
# publish.sh - what a run publishes while it trains (export.every): the bytes that tnet-export writes of the
# same checkpoints, a full export and deltas on it; also of two processes, over days, after kills at random
# moments and on a disk that is full. The seed of the moments is printed; TNET_SEED replays one.
. "$(dirname "$0")/kit"
draw
cd "$dir"
clicks train.tsv 3000 0
clicks test.tsv 200 3000
cat >c.yaml <<'END'
run: {name: publish}
data: {format: criteo, train: train.tsv}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 2, batch: 50, threads: 1, sparse: sgd}
checkpoint: {keep: 100, every: 3steps}
log: {progress: false}
export: {every: 10steps, dict: [tnd, tsv]}
END

# marked RUN: the checkpoints of a run that were to be exported, oldest first.
marked() {
    for n in $(find "$1" -name 'ckpt-*' | sed -n 's/.*ckpt-\([0-9]*\)$/\1/p' | sort -n); do
        if grep -q '"export":{"due":true' "$1/ckpt-$n/MANIFEST"; then echo "$1/ckpt-$n"; fi
    done
}

# as_exported RUN TO WORDS..: all that the run has published in TO is what tnet-export writes, one after the other.
as_exported() {
    run=$1
    to=$2
    shift 2
    rm -rf again
    before=
    for ckpt in $(marked "$run") "$run/$(cut -d' ' -f1 "$run/LATEST")"; do
        if [ -z "$before" ] || [ "$layers" -eq 8 ]; then
            tnet-export -q c.yaml "$@" --checkpoint "$ckpt" --to again >out 2>err || fail "$(cat err)"
            layers=0
        elif tnet-export -q c.yaml "$@" --checkpoint "$ckpt" --to again --delta-from "$before" >out 2>err; then
            layers=$((layers + 1))
        else
            grep -q 'is this very model' err || fail "$(cat err)"
            continue # the end of the run is its last moment
        fi
        before=$(basename "$(cat out)")
    done
    [ "$(cat "$to/LATEST")" = "$before" ] || fail "LATEST of $to is $(cat "$to/LATEST"), not $before"
    cp "$to/LATEST" again/LATEST
    diff -r "$to" again >differs || fail "$to is not what tnet-export writes (seed $seed): $(cat differs)"
}

look() {
    for export in "$to"/*/; do # whatever bears a name is whole
        case $export in *.tmp/ | "$to/*/") continue ;; esac
        [ -s "$export/EXPORT.json" ] || fail "seed $seed: $export is no export"
    done
}
# after_kills RUN TO WORDS..: the same command again and again, killed at random moments, until it ends.
after_kills() {
    run=$1
    to=$2
    shift 2
    killed "${TNET_KILLS:-5}" 430 tnet-train c.yaml run.dir="$run" export.to="$to" "$@"
    find "$to" -name '*.tnd.*' -o -name '*.tmp' -type d | grep -q . && fail "seed $seed: left behind: $(ls "$to")"
    return 0
}

# one process: 12 moments and the end, which is the last of them; two full ones
expect 0 tnet-train c.yaml run.dir=one export.to=one-to
[ "$(grep -c '^published ' err)" -eq 12 ] || fail "not 12 exports: $(cat err)"
[ "$(grep -c 'all rows, the first of this run$' err)" -eq 1 ] || fail "not one first: $(cat err)"
[ "$(grep -c 'is the last of 8 deltas, more are not read$' err)" -eq 1 ] || fail "not one more full one: $(cat err)"
as_exported one one-to
latest=$(cat one-to/LATEST)
expect 0 tnet-export -q c.yaml --checkpoint one --to full
[ "$(basename "$(cat out)")" = "$latest" ] || fail "the newest is $latest, not $(cat out)"
expect 0 tnet-score "one-to/$latest" --data test.tsv
cp out delta.scores
expect 0 tnet-score "full/$latest" --data test.tsv
cmp out delta.scores || fail "base and deltas score otherwise than all of it"
expect 0 tnet-train c.yaml run.dir=one export.to=one-to
if grep -q 'published\|newest export' err; then fail "published once more: $(cat err)"; fi

# with one checkpoint that stays, and by epochs: the end of the run is that of the last epoch
expect 0 tnet-train c.yaml run.dir=tight export.to=tight-to checkpoint.keep=1
diff -r one-to tight-to >differs || fail "checkpoint.keep=1 publishes otherwise: $(cat differs)"
expect 0 tnet-train c.yaml run.dir=epochs export.to=epochs-to export.every=1epoch checkpoint.every=never
[ "$(grep -c '^published ' err)" -eq 2 ] || fail "not 2 exports: $(cat err)"
as_exported epochs epochs-to

# killed at random moments
after_kills two two-to
diff -r one-to two-to >differs || fail "kills have changed what is published (seed $seed): $(cat differs)"
echo "publish: kills"

# two processes
expect 0 tnet-train c.yaml run.dir=peers export.to=peers-to --peers 2
[ "$(grep -c '^published ' err)" -eq 7 ] || fail "not 7 exports: $(cat err)"
as_exported peers peers-to
after_kills peers2 peers2-to --peers 2
diff -r peers-to peers2-to >differs || fail "kills have changed what two publish (seed $seed): $(cat differs)"
echo "publish: peers"

# days: each once, in as many runs as you like
for d in 1 2 3; do
    mkdir -p logs/2026110$d
    clicks logs/2026110$d/part-0.tsv 500 $((d * 1000))
done
days='data.train=logs/{day:%Y%m%d}/part-*.tsv train.epochs=1 export.every=day embedding.expiry.ttl_days=1'
# shellcheck disable=SC2086
expect 0 tnet-train c.yaml run.dir=days export.to=days-to $days data.days=2026-11-01..2026-11-03
[ "$(grep -c '^published ' err)" -eq 3 ] || fail "not 3 exports: $(cat err)"
# shellcheck disable=SC2086
as_exported days days-to $days data.days=2026-11-01..2026-11-03
for d in 1 2 3; do
    # shellcheck disable=SC2086
    expect 0 tnet-train c.yaml run.dir=daily export.to=daily-to $days data.days=2026-11-01..2026-11-03 day=2026-11-0$d
done
[ "$(find daily-to -name EXPORT.json | wc -l)" -eq 3 ] || fail "not 3 exports: $(ls daily-to)"
echo "publish: days"

# Killed at any point between the last day's checkpoint and the end: the same command, which has nothing left to learn,
# publishes what the run owes, and makes up for the evaluations and the record of the day.
late="run.dir=late export.to=late-to data.valid=next data.days=2026-11-01..2026-11-02 $days"
# told: the days and evaluations that metrics.jsonl tells of
told() {
    sed -n 's/.*"kind":"\(day\|eval\)".*"\(day\|data\)":"\([^"]*\)".*"rows":\([0-9]*\).*/\1 \3 \4/p' late/metrics.jsonl | sort -u
}
# shellcheck disable=SC2086
expect 0 tnet-train c.yaml $late
cp -a late before && cp -a late-to before-to
# shellcheck disable=SC2086
expect 0 tnet-train c.yaml $late day=2026-11-03
told >told.whole
[ "$(grep -c ^day told.whole)" -eq 3 ] || fail "not 3 days: $(cat told.whole)"
# shellcheck disable=SC2086
expect 0 tnet-train c.yaml $late day=2026-11-03
if grep -q 'goes on' err; then fail "a run that owes nothing was begun: $(cat err)"; fi
for point in ckpt.after_rename export.begin ckpt.before_prune export.before_latest io.rename; do
    for n in 1 2; do
        rm -rf late late-to
        cp -a before late
        cp -a before-to late-to
        got=0
        # shellcheck disable=SC2086
        TNET_FAIL="$point#$n:kill" tnet-train c.yaml $late day=2026-11-03 >out 2>err || got=$?
        # shellcheck disable=SC2086
        expect 0 tnet-train c.yaml $late day=2026-11-03
        grep -q "nothing new" err || fail "killed at pass $n of $point: $(cat err)"
        diff -r days-to late-to >differs || fail "killed ($got) at pass $n of $point: $(cat differs)"
        told >told.late
        cmp told.late told.whole || fail "killed ($got) at pass $n of $point: $(diff told.late told.whole)"
    done
done
# A word of steps publishes the end of the run, also of one that was killed between its last day and that.
end="$days data.days=2026-11-01..2026-11-03 export.every=1000steps checkpoint.every=1epoch"
# shellcheck disable=SC2086
expect 0 tnet-train c.yaml run.dir=end export.to=end-to $end
# shellcheck disable=SC2086
expect 0 tnet-train c.yaml run.dir=end export.to=end-to $end
if grep -q 'goes on' err; then fail "a run that owes nothing was begun: $(cat err)"; fi
for n in 3 4 5 6; do
    got=0
    # shellcheck disable=SC2086
    TNET_FAIL=ckpt.begin#$n:kill tnet-train c.yaml run.dir=end-$n export.to=end-$n-to $end >out 2>err || got=$?
    # shellcheck disable=SC2086
    [ "$got" -eq 0 ] || expect 0 tnet-train c.yaml run.dir=end-$n export.to=end-$n-to $end
    diff -r end-to end-$n-to >differs || fail "killed ($got) at save $n: the end is not published: $(cat differs)"
done
echo "publish: debts"

# A file may not grow: dict.tsv is the first that is refused. The run ends, and the same command publishes what it
# owes; with checkpoint.on_error=warn it goes on until the third failure in a row, and its chain has no hole.
rows=$(find one/ckpt-* -type f -printf '%s\n' | sort -n | tail -n 1)
text=$(wc -c <"one-to/$latest/dict.tsv")
[ "$rows" -lt "$text" ] || fail "dict.tsv has $text bytes, a file of a checkpoint $rows"
limit="ulimit -f $(((rows + text) / 2 / 512)) && exec"
expect 8 sh -c "$limit tnet-train c.yaml run.dir=small export.to=small-to"
says "is not exported: "
says "File too large"
[ -d small-to/"$(cat small-to/LATEST)" ] || fail "no export before it failed: $(ls small-to)"
[ ! -d "small-to/$latest" ] || fail "nothing failed: $(ls small-to)"
[ -z "$(find small-to -name '*.tmp')" ] || fail "left behind: $(ls small-to)"
expect 0 tnet-train c.yaml run.dir=small export.to=small-to
diff -r one-to small-to >differs || fail "a full disk has changed what is published: $(cat differs)"
mkdir "small-to/$latest.0123456789abcdef.tmp" # as a kill leaves it
expect 0 tnet-train c.yaml run.dir=small export.to=small-to
diff -r one-to small-to >differs || fail "what a kill has left stays where the export is there: $(cat differs)"
expect 8 sh -c "$limit tnet-train c.yaml run.dir=warn export.to=warn-to checkpoint.on_error=warn"
[ "$(grep -c '^warning: ckpt-[0-9]* is not exported: .*File too large' err)" -eq 2 ] || fail "not two warnings: $(cat err)"
expect 0 tnet-train c.yaml run.dir=warn export.to=warn-to
expect 0 tnet-score "warn-to/$(cat warn-to/LATEST)" --data test.tsv
cmp out delta.scores || fail "after a full disk deltas score otherwise"
echo "publish: a full disk"

# what cannot be
refused() {
    grep -qF -- "$1" err || fail "no '$1' in: $(cat err)"
}
expect 3 tnet-train c.yaml export.every=day
refused "'export.every' is day, and data.train has no {day:..}"
expect 3 tnet-train c.yaml 'export.to=""'
refused "export.to names no folder"
sed 's/every: 10steps/every: often/' c.yaml >bad.yaml
expect 3 tnet-train bad.yaml
refused "bad.yaml:8:17: error: 'export.every' is 'often', not like day, hour, 1epoch, 5000steps, 15min"
