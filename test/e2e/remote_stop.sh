#!/bin/sh
# remote_stop.sh - Ctrl-C while a server is silent, or only refuses: whatever is waited for, the command ends at once,
# with code 75 and a sentence, and the same command goes on when the server is back.
. "$(dirname "$0")/kit"
cd "$dir"
mkdir files
for fault in dead flood; do ln -s . "files/!$fault"; done
ln -s . files/b
mkdir files/day
clicks files/a.tsv 2000 0
clicks files/day/2026-11-01.tsv 500 5000
store
cat >c.yaml <<'END'
data: {format: criteo, secrets: secrets, shuffle: 1000}
model: {type: lr}
train: {epochs: 1, batch: 50, threads: 1}
log: {progress: false}
END

# stopped TEXT WORDS..: $signal, once the store was asked, ends the command within 8 s, which its attempts would take minutes for.
signal=INT
stopped() {
    text=$1
    shift
    rm -f files/asked
    # a shell's background jobs ignore INT
    env --default-signal=INT "$@" >out 2>err &
    tnet=$!
    children="$children $tnet"
    wait_for files/asked $tnet
    begun=$(date +%s)
    kill -s $signal $tnet
    while kill -0 $tnet 2>null; do
        [ $(($(date +%s) - begun)) -le 8 ] || fail "8 s after the signal there is no end of: $*"
        sleep 0.02
    done
    got=0
    wait $tnet || got=$?
    [ "$got" -eq 75 ] || fail "exit code $got of: $*: $(cat err)"
    says "$text"
}
waits='stopped by a signal while waiting for a server'

# data: a pattern, a probe, a day; of one process and of several
for where in "$hdfs/!dead/a*" "$web/!dead/a.tsv" "$hdfs/!dead/a.tsv" "s3://b/!dead/a.tsv"; do
    stopped 'stopped by a signal at step 0; saved as' tnet-train c.yaml run.dir=run "data.train=$where"
    rm -r run
done
stopped 'stopped by a signal at step 0; saved as' tnet-train c.yaml run.dir=run "data.train=$web/a.tsv" "data.valid=s3://b/!dead/!flood/a.tsv"
rm -r run
stopped "$waits" tnet-train c.yaml run.dir=run "data.train=$hdfs/!dead/day/{day:%Y-%m-%d}.tsv" data.days=2026-11-01 data.wait=1h
stopped 'stopped by a signal' tnet-train c.yaml run.dir=run "data.train=$hdfs/!dead/a*" --peers 2
rm -rf run
# what is chosen by data, where nothing is begun; also by those who were started with the signal blocked, as children are
stopped "$waits" tnet-train c.yaml run.dir=run "data.train=$hdfs/!dead/a*" data.shuffle=auto
stopped "$waits" env --block-signal=TERM tnet-train c.yaml run.dir=run "data.train=$hdfs/!dead/a*" train.batch=auto
[ ! -e run ] || fail "nothing was begun, and there is $(ls run)"
echo "remote_stop: the first look at data"

# a rank opens its files at a server that is silent for it alone, and one of both hears the signal, or both: one
# checkpoint, from which the same command goes on
mkdir other
ln -s ../files other/files
sed "s,^endpoint_url = .*,&/!dead," secrets >other/secrets
chmod 600 other/secrets
cat >group.yaml <<END
include: [$dir/c.yaml]
run: {dir: $dir/group}
data: {train: "s3://b/a.tsv", valid: ~}
END
# ranks PLACE WORDS..: rank 1 in that folder, where its secrets are; $rank0 and $rank1 run then
ranks() {
    place=$1
    shift
    export TNET_PEERS=2
    TNET_RANK=0 tnet-train "$dir/group.yaml" "$@" >out 2>err &
    rank0=$!
    (cd "$place" && TNET_RANK=1 exec tnet-train "$dir/group.yaml" "$@" >"$dir/out.1" 2>"$dir/err.1") &
    rank1=$!
    children="$children $rank0 $rank1"
}
# codes CODE: both end with it, within 30 s, of which 15 go by until a lost rank is missed
codes() {
    tries=0
    while kill -0 $rank0 2>null || kill -0 $rank1 2>null; do
        tries=$((tries + 1))
        [ $tries -le 1500 ] || fail "no end, 30 s after a signal to $who: $(cat err err.1)"
        sleep 0.02
    done
    for rank in $rank0 $rank1; do
        got=0
        wait "$rank" || got=$?
        [ "$got" -eq "$1" ] || fail "exit code $got of a rank after a signal to $who: $(cat err err.1)"
    done
}
# hears TEXT WORDS..: whoever hears it
hears() {
    text=$1
    shift
    for who in 'rank 0' 'rank 1' both; do
        rm -rf files/asked group
        ranks other "$@"
        wait_for files/asked $rank1
        case $who in
        'rank 0') kill -s TERM $rank0 ;;
        'rank 1') kill -s TERM $rank1 ;;
        both) kill -s TERM $rank0 $rank1 ;;
        esac
        codes 75
        says "stopped by a signal at step $text"
        grep -qF "saved as '$dir/group/ckpt-1'" err || fail "not saved: $(cat err)"
        [ -s group/LATEST ] || fail "no checkpoint"
    done
    ranks . "$@"
    who=nobody
    codes 0
}
hears '0; saved'
hears '0; saved' cluster.staleness=4
# .. to evaluate with: what was learned before is saved
for auc in histogram exact; do
    hears '' data.train="$dir/files/a.tsv" data.valid=s3://b/a.tsv eval.auc=$auc
done
# rank 0 is lost: nobody waits for the server any more
rm -rf files/asked group
ranks other
wait_for files/asked $rank1
kill -s KILL $rank0
wait $rank0 2>null || true
rank0=$rank1
who='rank 0, which it killed'
codes 6
unset TNET_PEERS
echo "remote_stop: a group of ranks"

# a server that falls silent while a run learns: what it has learned is saved, and the same command goes on
weights() { for file in "$1"/ckpt-*/sparse-* "$1"/ckpt-*/dense-*; do tail -c +65 "$file"; done | cksum; }
set -- data.train="$web/a.tsv" train.epochs=60 checkpoint.every=3epochs checkpoint.keep=1
expect 0 tnet-train c.yaml run.dir=whole "$@"
tnet-train c.yaml run.dir=cut "$@" >out 2>err &
tnet=$!
children="$children $tnet"
wait_for cut/LATEST $tnet
kill -s STOP "$server"
sleep 0.5
kill -s TERM $tnet
got=0
wait $tnet || got=$?
[ "$got" -eq 75 ] || fail "exit code $got: $(cat err)"
says 'stopped by a signal at step'
if grep -q "at step 0;" err; then fail "nothing was learned: $(cat err)"; fi
kill -s CONT "$server"
expect 0 tnet-train c.yaml run.dir=cut "$@"
[ "$(weights whole)" = "$(weights cut)" ] || fail "a run that was cut short by a silent server learned something else"
echo "remote_stop: a server that falls silent"

# evaluation, export
stopped "$waits" tnet-eval c.yaml run.dir=whole "$@" --data "$hdfs/!dead/a*"
stopped "$waits" tnet-eval c.yaml run.dir=whole "$@" --data "$web/!dead/a.tsv" --predictions scores.tsv
[ ! -e scores.tsv ] || fail "half of the predictions are there"
for to in "s3://b/!dead/out" "$hdfs/!dead/out"; do
    stopped "$waits" tnet-export c.yaml run.dir=whole "$@" --to "$to"
done
stopped 'stopped by a signal' tnet-train c.yaml run.dir=published "data.train=$web/a.tsv" export.every=1epoch "export.to=s3://b/!dead/out"
expect 0 tnet-train c.yaml run.dir=published "data.train=$web/a.tsv" export.every=1epoch "export.to=s3://b/out"
[ "$(find files/out -name EXPORT.json | wc -l)" -eq 1 ] || fail "what was owed is not there: $(ls files/out)"
# a closed terminal, at the first request that sends: what was not sent is not left behind
signal=HUP
mkdir tmp
export TMPDIR="$dir/tmp"
for to in "s3://b/!dead/scores.tsv" "$hdfs/!dead/scores.tsv"; do
    stopped "$waits" tnet-eval c.yaml run.dir=whole "$@" --data files/a.tsv --predictions "$to"
    [ -z "$(find tmp files -name '*scores*')" ] || fail "left behind: $(find tmp files -name '*scores*')"
done
echo "remote_stop: evaluation and export"
