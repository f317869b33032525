#!/bin/sh
# peers.sh - a group on this machine: what it computes, what it survives, how it ends. K8, C1, C4, I5.
. "$(dirname "$0")/kit"

# Test builds divide their timers: a silent peer is lost after 3 s instead of 15.
export TNET_FAST=5

# Numbers that do not depend on who sees which data first: no shuffling, no bias from the first rows. Quotes that may span
# lines make each file one part, so that the joint batches are known.
for i in 0 1 2 3; do
    clicks "$dir/$i.tsv" 1200 $((i * 1200))
done
clicks "$dir/valid.tsv" 1000 4800
cat >"$dir/c.yaml" <<END
data: {format: criteo, valid: $dir/valid.tsv, test: $dir/valid.tsv, shuffle: 0, quote: multiline}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16], bias_init: -1}
train: {batch: 60, epochs: 2, threads: 1}
eval: {every: 10steps, metrics: [auc, logloss, copc]}
checkpoint: {every: 10steps, keep: 9}
cluster: {restarts: 0}
log: {progress: false}
END
config=$dir/c.yaml

# files N: the first N of the data, as a list.
files() {
    list=$dir/0.tsv
    i=1
    while [ "$i" -lt "$1" ]; do
        list=$list,$dir/$i.tsv
        i=$((i + 1))
    done
    echo "[$list]"
}

# joint N B FILE: what N peers see together, B rows of each file in turn.
joint() {
    awk -v n="$1" -v b="$2" -v dir="$dir" 'BEGIN {
        do {
            got = 0
            for (i = 0; i < n; i++)
                for (k = 0; k < b && (getline line < (dir "/" i ".tsv")) > 0; k++) { print line; got++ }
        } while (got > 0)
    }' >"$3"
}

# scores RUN: data, step, loss and AUC of every evaluation, those of a step that was done twice once.
scores() {
    sed -n 's/.*"kind":"eval","step":\([0-9]*\),.*"data":"\([a-z]*\)".*"loss":\([^,]*\),.*"auc":\([^,]*\),.*/\2 \1 \3 \4/p' \
        "$1/metrics.jsonl" | sort -k1,1 -k2,2n -u
}

# near FILE FILE: the same but for rounding.
near() {
    awk -v other="$2" '{
        if ((getline line < other) <= 0 || split(line, b, " ") != NF || b[1] != $1 || b[2] != $2) exit 1
        for (i = 3; i <= NF; i++) { d = b[i] - $i; if (d > 1e-4 || d < -1e-4 || (i == 3 && d * d > 1e-12)) exit 1 }
        n++
    }
    END { if (n < 5 || (getline line < other) > 0) exit 1 }' "$1" || fail "$3: $(cat "$1") other than $(cat "$2")"
}

# same_bits CKPT CKPT: weights and rows of two checkpoints of one run's length.
same_bits() {
    ls "$1" >"$dir/one"
    ls "$2" >"$dir/two"
    cmp "$dir/one" "$dir/two" || fail "$1 and $2 hold other files"
    for file in "$1"/sparse-* "$1"/dense-*; do
        tail -c +65 "$file" >"$dir/one"
        tail -c +65 "$2/$(basename "$file")" >"$dir/two"
        cmp "$dir/one" "$dir/two" || fail "$(basename "$file") of $1 and $2 differ"
    done
}

newest() { echo "$1/$(cut -d' ' -f1 "$1/LATEST")"; }

# One process, or 2, 3, 4 on their shares of the same joint batch.
for n in 1 2 3 4; do
    expect 0 tnet-train "$config" --peers $n data.train="$(files $n)" run.dir="$dir/of$n"
    ! grep -q 'silent' "$dir/err" || fail "a peer was silent: $(cat "$dir/err")"
    joint $n 60 "$dir/joint.tsv"
    expect 0 tnet-train "$config" data.train="$dir/joint.tsv" train.batch=$((60 * n)) run.dir="$dir/alone$n"
    scores "$dir/of$n" >"$dir/have"
    scores "$dir/alone$n" >"$dir/want"
    [ -s "$dir/want" ] || fail "no evaluations"
    near "$dir/want" "$dir/have" "$n peers"
done
echo "$name: 2, 3 and 4 peers learn what one process learns"

# The same command makes the same bits.
expect 0 tnet-train "$config" --peers 3 data.train="$(files 3)" run.dir="$dir/again"
same_bits "$(newest "$dir/of3")" "$(newest "$dir/again")"
scores "$dir/again" >"$dir/have"
scores "$dir/of3" >"$dir/want"
cmp "$dir/want" "$dir/have" || fail "other scores the second time"
echo "$name: the same bits twice"

# C4: ranks without data take part in everything; fewer parts than peers.
head -n 3 "$dir/0.tsv" >"$dir/few.tsv"
expect 0 tnet-train "$config" --peers 4 data.train="$dir/few.tsv" run.dir="$dir/few" eval.every=1epoch
grep -q '^rows ' "$dir/out" || fail "no results: $(cat "$dir/out")"
expect 0 tnet-train "$config" --peers 4 data.train="$(files 2)" run.dir="$dir/parts"
echo "$name: ranks without data"

# K8: what 2 have saved goes on with 3, and then with 1.
expect 0 tnet-train "$config" --peers 2 data.train="$(files 2)" run.dir="$dir/k8" train.epochs=1 checkpoint.every=1epoch
[ "$(grep -c '^trained 2400 rows in .*; valid loss ' "$dir/err")" -eq 1 ] || fail "no closing line, or two: $(cat "$dir/err")"
expect 0 tnet-train "$config" --peers 3 data.train="$(files 2)" run.dir="$dir/k8" train.epochs=2 checkpoint.every=1epoch --resume
expect 0 tnet-train "$config" --peers 1 data.train="$(files 2)" run.dir="$dir/k8" train.epochs=3 checkpoint.every=1epoch --resume
grep -q '"kind":"end".*"step":' "$dir/k8/metrics.jsonl" || fail "no end in $dir/k8/metrics.jsonl"
expect 0 tnet-eval "$config" run.dir="$dir/k8"
echo "$name: 2 peers, then 3, then 1"

# What is wrong with the command is told once, by the process that was started.
expect 3 tnet-train "$config" --peers 3 data.train="$(files 3)" train.epochs=x
[ "$(grep -c error "$dir/err")" -eq 2 ] || fail "not told once: $(cat "$dir/err")"
expect 3 tnet-train "$config" --peers 3 data.train="$(files 3)" cluster.recovery=relaxed
[ "$(grep -c "unknown key 'recovery'" "$dir/err")" -eq 1 ] || fail "not told once: $(cat "$dir/err")"
got=0
# shellcheck disable=SC3045 # dash and bash have it
(ulimit -n 200 && exec tnet-train "$config" --peers 64 data.train="$(files 3)" run.dir="$dir/room") 2>"$dir/err" || got=$?
[ "$got" -eq 3 ] || fail "64 peers with 200 open files: exit code $got"
says "a group of 64 peers may need 443 open files, the hard limit is 200"
expect 2 env TNET_RANK=0 tnet-train "$config" --peers 3 data.train="$(files 3)"
says "TNET_RANK says that this process is one of a group already"

# A record at fault: its file and offset, once from the rank that has read it.
cp "$dir/1.tsv" "$dir/bad.tsv"
printf 'no record at all\n' >>"$dir/bad.tsv"
expect 4 tnet-train "$config" --peers 2 data.train="[$dir/0.tsv,$dir/bad.tsv]" run.dir="$dir/bad" data.bad_records_max=0
grep -q '^rank 1: .*bad.tsv:1201:17: error: too few fields' "$dir/err" || fail "no word of the place: $(cat "$dir/err")"
[ "$(grep -c 'error: ' "$dir/err")" -eq 1 ] || fail "not told once: $(cat "$dir/err")"
expect 4 tnet-train "$config" --peers 4 data.train="$(files 2)" run.dir="$dir/bad2" data.valid="$dir/none.tsv"
says "cannot find '$dir/none.tsv'"
expect 8 tnet-train "$config" --peers 4 data.train="$(files 2)" run.dir=/proc/tnet
says "cannot make folder '/proc/tnet'"
echo "$name: a bad record"

# ---- ends, wanted and unwanted ----

# begin RUN WORD..: a group of 3 in the background that would train for long; returns when it has saved once. Rank 1
# waits 12 ms in every step: a run of 160 steps that has saved at its 30th leaves 1.5 s and more for a signal.
begin() {
    run=$dir/$1
    shift
    TNET_FAIL=step.1:sleep=12 tnet-train "$config" --peers 3 data.train="$(files 3)" eval.every=100steps run.dir="$run" "$@" >"$dir/out" 2>"$dir/err" &
    group=$!
    children="$children $group"
    wait_for "$run/ckpt-1/MANIFEST" "$group"
}

# rank R: its process.
rank() {
    pids=$(cat "/proc/$group/task/$group/children")
    for pid in $pids; do
        if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "TNET_RANK=$1"; then
            echo "$pid"
            return
        fi
    done
    fail "no rank $1"
}

# ends CODE: the group, all of it, within 30 s.
ends() {
    begun=$(date +%s)
    alive=$(cat "/proc/$group/task/$group/children" 2>"$dir/null" || true)
    got=0
    { wait "$group" || got=$?; } 2>"$dir/null"
    took=$(($(date +%s) - begun))
    [ "$got" -eq "$1" ] || fail "exit code $got, expected $1: $(tail -n 8 "$dir/err")"
    [ "$took" -le 30 ] || fail "ended after $took s"
    for pid in $alive; do
        ! kill -0 "$pid" 2>"$dir/null" || fail "process $pid is left"
    done
}

# A signal to any of them saves, and the same command goes on to the same bits.
long="train.epochs=8 checkpoint.every=30steps"
# shellcheck disable=SC2086
expect 0 tnet-train "$config" --peers 3 data.train="$(files 3)" eval.every=100steps run.dir="$dir/whole" $long
for whom in parent 0 2; do
    # shellcheck disable=SC2086
    begin "term$whom" $long
    [ "$whom" = parent ] && pid=$group || pid=$(rank "$whom")
    kill -TERM "$pid"
    ends 75
    [ "$(grep -c 'error: ' "$dir/err")" -eq 1 ] || fail "not told once: $(cat "$dir/err")"
    # shellcheck disable=SC2086
    expect 0 tnet-train "$config" --peers 3 data.train="$(files 3)" eval.every=100steps run.dir="$dir/term$whom" $long
    grep -q '"kind":"start".*"resumed_from":"' "$dir/term$whom/metrics.jsonl" || fail "SIGTERM to $whom: did not go on"
    same_bits "$(newest "$dir/whole")" "$(newest "$dir/term$whom")"
done
echo "$name: SIGTERM saves, and the same command goes on to the same bits"

# Ctrl-C reaches all at once, and is one interrupt for each; a second one ends all now.
begin ctrl-c train.epochs=100000
for pid in $group $(cat "/proc/$group/task/$group/children"); do
    kill -INT "$pid" 2>"$dir/null" || true # one may have ended by the word of another
done
ends 75
begin twice train.epochs=100000
kill -STOP "$(rank 1)" # so that the first has no end yet
pids=$(cat "/proc/$group/task/$group/children")
for _ in 1 2 3 4 5; do # two that come at once may count as one
    kill -INT "$group" 2>"$dir/null" || true
    sleep 0.1
done
ends 130
for pid in $pids; do
    ! kill -0 "$pid" 2>"$dir/null" || fail "process $pid is left"
done
echo "$name: Ctrl-C saves, a second one ends all"

# A second group where one is at work: refused at once, in one sentence, however it is started. The first goes on.
begin busy train.epochs=100000
# refused CODE TEXT WORDS..
refused() {
    code=$1
    text=$2
    shift 2
    got=0
    "$@" >"$dir/out2" 2>"$dir/err2" || got=$?
    [ "$got" -eq "$code" ] || fail "exit code $got, expected $code, of: $*: $(cat "$dir/err2")"
    grep -qF -- "$text" "$dir/err2" || fail "no '$text' in: $(cat "$dir/err2")"
    [ "$(grep -c 'error: ' "$dir/err2")" -eq 1 ] || fail "not one error: $(cat "$dir/err2")"
}
begun=$(date +%s)
refused 5 "run directory '$run' is in use by pid $(rank 0) on host" \
    tnet-train "$config" --peers 3 data.train="$(files 3)" run.dir="$run"
for r in 0 1 2; do
    refused 5 "is in use by" env TNET_RANK=$r TNET_PEERS=3 tnet-train "$config" data.train="$(files 3)" run.dir="$run"
done
took=$(($(date +%s) - begun))
[ "$took" -le 10 ] || fail "refused after $took s"
kill -TERM "$group"
ends 75
! grep -q silent "$dir/err" || fail "the first group was disturbed: $(cat "$dir/err")"
echo "$name: a second group is refused at once, and the first notices nothing"

# C1: a peer that is killed, whichever it is, ends all with 6 and a sentence. The same command goes on.
for r in 1 0; do
    # shellcheck disable=SC2086
    begin "kill$r" $long
    victim=$(rank "$r")
    kill -KILL "$victim"
    killed=$(date +%s)
    ends 6
    [ $(($(date +%s) - killed)) -le 2 ] || fail "the others were not told: that took $(($(date +%s) - killed)) s"
    [ "$(grep -c 'error: ' "$dir/err")" -eq 1 ] || fail "not told once: $(cat "$dir/err")"
    grep -q "error: rank $r (pid $victim) was killed by signal 9 (Killed)" "$dir/err" || fail "not told: $(cat "$dir/err")"
    ! grep -q "last heard of\|silent" "$dir/err" || fail "the others found out by themselves: $(cat "$dir/err")"
    grep -q "hint: .*goes on from the newest checkpoint" "$dir/err" || fail "no hint: $(cat "$dir/err")"
    # shellcheck disable=SC2086
    expect 0 tnet-train "$config" --peers 3 data.train="$(files 3)" eval.every=100steps run.dir="$dir/kill$r" $long
    same_bits "$(newest "$dir/whole")" "$(newest "$dir/kill$r")"
done
echo "$name: a killed peer ends the group with 6, and the same command goes on to the same bits"

# cluster.restarts: the group starts again by itself, whoever is killed, two at once, and at any moment, up to a number; same bits.
draw
# child N: the Nth process that the group has at present, from 1; nothing: there are fewer.
child() { cut -d' ' -f"$1" "/proc/$group/task/$group/children" 2>"$dir/null" || true; }
# shellcheck disable=SC2086
begin restarts cluster.restarts=50/1h $long
fallen=0
for moment in 1 2 3 4; do
    sleep "0.$((seed % 7 + moment))"
    victims="$(child $((seed % 3 + 1))) $([ $moment -ne 3 ] || child $(((seed + 1) % 3 + 1)))"
    # shellcheck disable=SC2086
    kill -KILL $victims 2>"$dir/null" && fallen=$((fallen + 1))
    seed=$((seed / 7 + moment))
done
ends 0
again=$(grep -c 'the group starts again and goes on from the newest checkpoint' "$dir/err")
[ $((again >= 1 && again <= fallen)) -eq 1 ] || fail "$again restarts after $fallen kills: $(cat "$dir/err")"
! grep -q 'error: ' "$dir/err" || fail "told as an error: $(cat "$dir/err")"
same_bits "$(newest "$dir/whole")" "$(newest "$dir/restarts")"
# shellcheck disable=SC2086
begin once cluster.restarts=1/1h $long
kill -KILL "$(child 3)"
until grep -q 'starts again' "$dir/err" && [ -n "$(child 3)" ]; do sleep 0.05; done
kill -KILL "$(child 2)" || fail "no second group"
ends 6
grep -q "hint: .*goes on from the newest checkpoint" "$dir/err" || fail "no hint at the end: $(cat "$dir/err")"
echo "$name: a group starts again by itself, as often as cluster.restarts says, to the same bits"

# A peer that stands still is lost, too.
begin stopped train.epochs=100000
victim=$(rank 1)
kill -STOP "$victim"
ends 6
grep -q "rank 1 (host .*) was last heard of" "$dir/err" || fail "rank 1 is not named: $(cat "$dir/err")"
grep -q "rank 1 (pid $victim) does not end" "$dir/err" || fail "rank 1 is left: $(cat "$dir/err")"
echo "$name: a stopped peer ends the group with 6"

# A rank that cannot begin ends all at once, wherever it fails: each log has one line, with the rank at fault.
# by_hand CODE TEXT RUN RANK WORD..: three ranks, of which RANK gets the further words.
by_hand() {
    code=$1
    text=$2
    run=$dir/$3
    odd=$4
    shift 4
    begun=$(date +%s)
    for r in 0 1 2; do
        # shellcheck disable=SC2086
        [ $r = "$odd" ] && more=$* || more=
        # shellcheck disable=SC2086
        TNET_RANK=$r TNET_PEERS=3 tnet-train "$config" data.train="$(files 2)" run.dir="$run" \
            cluster.start_timeout=60s $more >"$dir/out$r" 2>"$dir/err$r" &
        eval "pid$r=\$!"
        children="$children $!"
    done
    for r in 0 1 2; do
        got=0
        eval "wait \$pid$r" 2>"$dir/null" || got=$?
        [ "$got" -eq "$code" ] || fail "rank $r: exit code $got, expected $code: $(cat "$dir/err$r")"
        grep -qF -- "$text" "$dir/err$r" || fail "rank $r: no '$text': $(cat "$dir/err$r")"
        [ $r = "$odd" ] || grep -q "rank $r: error: .*rank $odd\|^rank $odd: .*error: " "$dir/err$r" ||
            fail "rank $r does not name rank $odd: $(cat "$dir/err$r")"
    done
    took=$(($(date +%s) - begun))
    [ "$took" -le 10 ] || fail "ended after $took s"
}
by_hand 4 "cannot find '$dir/none.tsv'" fail-data 1 data.train="$dir/none.tsv"
by_hand 3 "the configuration of rank 2 on host" fail-config 2 train.batch=61
by_hand 3 "unknown model 'nosuch'" fail-model 1 model.type=nosuch
by_hand 3 "unknown model 'nosuch'" fail-leader 0 model.type=nosuch
echo "$name: a rank that cannot begin ends all"

# A rank that is stopped while others are missing.
rm -f "$dir/err0" "$dir/err1"
for r in 0 1; do
    TNET_RANK=$r TNET_PEERS=3 tnet-train "$config" data.train="$(files 2)" run.dir="$dir/early" \
        >"$dir/out$r" 2>"$dir/err$r" &
    eval "pid$r=\$!"
    children="$children $!"
done
tries=0
until grep -qs 'rank 1 of 3' "$dir/err1" && grep -qs 'rank 0 of 3' "$dir/err0"; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "ranks do not begin"
    sleep 0.05
done
# shellcheck disable=SC2154
kill -TERM "$pid1"
for r in 1 0; do
    got=0
    eval "wait \$pid$r" 2>"$dir/null" || got=$?
    [ "$got" -eq 75 ] || fail "rank $r: exit code $got, expected 75: $(cat "$dir/err$r")"
    grep -q "stopped by a signal while waiting for the peers" "$dir/err$r" || fail "rank $r: $(cat "$dir/err$r")"
done
echo "$name: a rank that is stopped while the group forms ends all"

# At whatever moment of a start SIGTERM comes: no rank is ended by it before it can tell the others. Before
# there are ranks it ends the parent as it ends any program.
for ms in 5 15 25 35 50 70; do
    begun=$(date +%s)
    : >"$dir/err" # a signal may come before the child's shell has opened it
    tnet-train "$config" --peers 2 data.train="$(files 2)" train.epochs=100000 run.dir="$dir/sweep$ms" >"$dir/out" 2>"$dir/err" &
    pid=$!
    children="$children $pid"
    sleep "0.0$(printf %02d "$ms")"
    kill -TERM "$pid"
    got=0
    wait "$pid" 2>"$dir/null" || got=$?
    case $got in
    75) ! grep -q 'was killed\|lost' "$dir/err" || fail "SIGTERM after $ms ms: $(cat "$dir/err")" ;;
    143) [ ! -s "$dir/err" ] || fail "SIGTERM after $ms ms: $(cat "$dir/err")" ;;
    *) fail "SIGTERM after $ms ms: exit code $got: $(cat "$dir/err")" ;;
    esac
    [ $(($(date +%s) - begun)) -le 8 ] || fail "SIGTERM after $ms ms: ended after $(($(date +%s) - begun)) s"
done
echo "$name: SIGTERM in the first moments stops a group at once"

# By hand, not all at once; one that is missing is waited for, and not for ever.
for r in 1 0; do
    TNET_RANK=$r TNET_PEERS=2 tnet-train "$config" data.train="$(files 2)" run.dir="$dir/hand" >"$dir/out$r" 2>"$dir/err$r" &
    eval "pid$r=\$!"
    children="$children $!"
    [ "$r" = 0 ] || sleep 2
done
# shellcheck disable=SC2154
wait "$pid1" || fail "rank 1: $(tail -n 3 "$dir/err1")"
# shellcheck disable=SC2154
wait "$pid0" || fail "rank 0: $(tail -n 3 "$dir/err0")"
[ -s "$dir/out0" ] || fail "rank 0 prints no results"
[ ! -s "$dir/out1" ] || fail "rank 1 prints, too: $(cat "$dir/out1")"
same_bits "$(newest "$dir/of2")" "$(newest "$dir/hand")"
expect 6 env TNET_RANK=0 TNET_PEERS=2 tnet-train "$config" data.train="$(files 2)" run.dir="$dir/alone" cluster.start_timeout=1s
says "rank 1"
echo "$name: started by hand, one after another"
