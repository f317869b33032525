#!/bin/sh
# train_crash.sh - K5, K6: a run that goes on from a checkpoint, saves the next one, removes the one before
# and writes its summary is broken at every single call that changes the disk: it is killed there, or
# the call fails once, for lack of room or for no reason that is told. Started again it must end with
# the files of an undisturbed run; a failure must be one sentence with its documented code. All of
# it with full checkpoints and with deltas; one that cannot be written as a delta comes full then.
[ -w /dev/shm ] && export TMPDIR=/dev/shm # hundreds of checkpoints
. "$(dirname "$0")/kit"
clicks "$dir/train.tsv" 300 0
clicks "$dir/valid.tsv" 100 300
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: $dir/train.tsv, valid: $dir/valid.tsv}
embedding: {dim: 2}
model: {type: deepfm, hidden: [4]}
train: {epochs: 1, batch: 50, threads: 1}
log: {progress: false}
END

# train RUN WORDS..: goes on in $dir/RUN.
train() {
    run=$1
    shift
    tnet-train "$dir/c.yaml" run.dir="$dir/$run" "checkpoint=$saves" "$@" >"$dir/out" 2>"$dir/err"
}

# again: $dir/cut is where a run was stopped after half of its steps. Files are never written twice,
# but for the log, so links are enough.
again() {
    rm -rf "$dir/cut"
    cp -rl "$dir/$half" "$dir/cut"
    cp --remove-destination "$dir/$half/metrics.jsonl" "$dir/cut/metrics.jsonl"
}

# ended POINT: the newest checkpoint of $dir/cut is that of the whole run, and nothing is half there.
# One that was killed before it could remove the one before leaves that to the next save.
plain() {
    sed -E 's/"ordinal":[0-9]+/"ordinal":0/; s/"base":\{[^}]*\}/"base":{}/; s/"crc32c":"[0-9a-f]{8}"\}$//' "$1/MANIFEST"
}
ended() {
    newest=$dir/cut/ckpt-3
    [ -d "$newest" ] || newest=$dir/cut/ckpt-2
    # What could not be removed goes with the next start.
    set -- "$1" "$dir"/cut/*.tmp
    [ ! -e "$2" ] || train cut || fail "exit code $? after $1"
    for name in "$dir"/cut/*; do
        case ${name##*/} in
        LATEST | LOCK | OWNER | ckpt-[123] | metrics.jsonl | run.yaml | summary.json | tb) ;;
        *) fail "$1: left behind: $name" ;;
        esac
    done
    as=$whole
    ! grep -q '"kind":"full"' "$newest/MANIFEST" || as=$full
    diff -rq --exclude=MANIFEST "$as" "$newest" || fail "$1: other bits"
    plain "$newest" >"$dir/manifest"
    cmp -s "$dir/manifest" "$as.manifest" || { [ "$as" = "$full" ] && cmp "$dir/manifest" "$late"; } ||
        fail "$1: another manifest"
    grep -q '"status":"ok","exit_code":0' "$dir/cut/summary.json" || fail "$1: no summary"
    cmp "$dir/out" "$dir/table" || fail "$1: another table"
}

# prepare KIND SAVES: $dir/half-KIND, and in $whole what an undisturbed run makes of it.
prepare() {
    saves=$2
    half=half-$1
    again
    train cut || fail "$(cat "$dir/err")"
    cp "$dir/out" "$dir/table"
    mv "$dir/cut" "$dir/whole-$1"
    whole=$dir/whole-$1/ckpt-2
    grep -q "\"kind\":\"$1\"" "$whole/MANIFEST" || fail "not a $1 checkpoint"
    plain "$whole" >"$whole.manifest"
}

points=0
failures=0
stride=1
! sanitized || stride=7 # programs are slow then

# every: each call once, killed there or failing there. Most files that are closed were read. A kill there leaves what
# one at the next call that changes the disk leaves, so every eighth will do; each close fails, as one of a file that was
# written must not pass unseen.
every() {
    for call in create write fsync close rename unlink mkdir rmdir truncate; do
        error=ENOSPC
        case $call in close | unlink | rmdir | truncate) error=EIO ;; esac
        for action in kill $error; do
            step=$stride
            [ "$call:$action" != close:kill ] || step=$((8 * stride))
            n=$((1 - step))
            while :; do
                n=$((n + step))
                again
                got=0
                { TNET_FAIL=io.$call#$n:$action train cut || got=$?; } 2>"$dir/null"
                point="$action at io.$call#$n"
                case $action:$got in
                kill:137) ;;
                kill:0) break ;;
                *:0) [ "$n" -le "$last" ] || break ;; # made again, or nothing hangs on it
                *:5 | *:8) says "$dir/cut" && failures=$((failures + 1)) ;;
                *) fail "exit code $got after $point: $(cat "$dir/err")" ;;
                esac
                points=$((points + 1))
                [ "$got" -eq 0 ] || train cut || fail "exit code $? behind $point: $(cat "$dir/err")"
                ended "$point"
            done
            [ "$action" != kill ] || last=$((n - (step == stride ? stride : 1)))
        done
        echo "train_crash: io.$call: $last"
    done
}

saves='{every: 3steps, keep: 1}'
train half-full train.max_steps=3 || fail "$(cat "$dir/err")"
# Rows that the disk refused are saved again when the epoch is over, as here they are for the first time.
prepare full '{every: 100steps, keep: 1}'
late=$dir/late
mv "$whole.manifest" "$late"
rm -r "$dir/whole-full"
prepare full '{every: 3steps, keep: 1}'
full=$whole
every

# Killed behind its first save, which is full: the next one is a delta on it.
saves='{every: 100steps, delta_every: 3steps, keep: 1}'
got=0
{ TNET_FAIL=ckpt.after_rename:kill train half-delta || got=$?; } 2>"$dir/null"
[ "$got" -eq 137 ] || fail "exit code $got"
prepare delta "$saves"
every

echo "train_crash: $points points, $failures errors that were told"
