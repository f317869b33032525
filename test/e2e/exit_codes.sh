#!/bin/sh
# exit_codes.sh - S5: every documented exit code, provoked for real, and the sentence that comes with it.
# 6 (peers and network) has no cause in one process.
. "$(dirname "$0")/kit"
clicks "$dir/clicks.tsv" 2000 0
cat >"$dir/c.yaml" <<END
run: {dir: $dir/run}
data: {format: criteo, train: $dir/clicks.tsv, test: $dir/clicks.tsv}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16]}
train: {epochs: 1, batch: 128, threads: 2}
log: {progress: false}
END
config=$dir/c.yaml

# 0: answers on stdout, nothing on stderr; a run.
for program in tnet-train tnet-eval tnet-data tnet-export tnet-score tnet-serve tnet-tune tnet-keygen; do
    [ -x "$bin/$program" ] || continue
    for question in -h --help --version --man; do
        expect 0 "$program" "$question"
        [ -s "$dir/out" ] || fail "$program $question says nothing on stdout"
        [ ! -s "$dir/err" ] || fail "$program $question speaks on stderr"
    done
    # 2: usage
    expect 2 "$program" --no-such-option
    says "unknown option '--no-such-option'"
    expect 2 "$program"
    # 8: nobody takes the answer
    expect 8 sh -c "exec $program --help >/dev/full"
    says "cannot write to stdout"
done
expect 0 tnet-train "$config"
expect 0 tnet-eval "$config"
expect 0 tnet-eval "$config" --json --report "$dir/r.html" --predictions "$dir/p.tsv"
[ "$(wc -l <"$dir/p.tsv")" -eq 2001 ] || fail "predictions are not one line per row"
grep -q '"kind":"eval"' "$dir/out" || fail "no JSON: $(cat "$dir/out")"

# 1: a bug; here an assertion on what only tests may set
expect 1 sh -c "ulimit -c 0 && TNET_FAIL=nonsense exec tnet-train $config"
grep -q '^tnet: bug at .*: .* is false$' "$dir/err" || fail "no word of a bug: $(cat "$dir/err")"
grep -q 'tnet-train[([]' "$dir/err" || fail "no backtrace: $(cat "$dir/err")"

# 0: a descriptor that is closed at the start does not become a file of the run
expect 0 sh -c "exec tnet-train $config run.dir=$dir/closed <&- >&- 2>&-"
expect 0 tnet-eval "$config" run.dir="$dir/closed"

# 2: usage
# A peer that never comes.
expect 6 env TNET_RANK=0 TNET_PEERS=2 tnet-train "$config" run.dir="$dir/alone" cluster.start_timeout=1s
expect 2 tnet-train "$config" another.yaml
says "one word too many: 'another.yaml'"
expect 2 tnet-train "$config" --dry-rum
says "did you mean '--dry-run'?"
expect 2 tnet-eval "$config" --checkpoint a --export b
says "not both"

expect 2 tnet-keygen "$dir/keys" ../outside
says "cannot name a key"

# 0, 8: keys are made once, the secret half for its owner alone
expect 0 tnet-keygen "$dir/keys" rank-0
[ "$(stat -c %a "$dir/keys/rank-0.key")" = 600 ] || fail "the secret key is open to others"
expect 8 tnet-keygen "$dir/keys" rank-0
says "rank-0.key' is there already"

long=$(printf '%0300d' 0)
# .. a run directory that no disk could hold
for path in "$dir/$long" "$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long"; do
    expect 2 tnet-train "$config" run.dir="$path"
    expect 2 tnet-export "$config" --to "$path"
done

# 3: configuration
expect 3 tnet-train "$dir/none.yaml"
grep -q "cannot open '$dir/none.yaml'" "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-train "$config" modle.type=lr
grep -qF "unknown key 'modle' (did you mean 'model'?)" "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-train "$config" train.optimizer.grad_normalize=true
grep -qF 'grad_normalize` is for rows' "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-train "$config" embedding.reset=epoch checkpoint.delta_every=100steps
grep -qF 'embedding.reset drops all rows, which checkpoint.delta_every cannot write' "$dir/err" || fail "$(cat "$dir/err")"
expect 3 env TNET_RANK=0 TNET_PEERS=2 tnet-train "$config" embedding.reset=epoch
grep -qF 'embedding.reset is for a run of one process' "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-train "$config" train.optimizer.type=adagrad_decay
grep -qF 'sums of rows fade; use adagrad or rmsprop' "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-eval "$config" 'model.hidden=[17]'
says "parameter 'deep.1.W' is [156, 17], in the checkpoint [156, 16]"
expect 3 tnet-eval "$config" data.test=~
says "neither data.test nor data.valid is set"
expect 3 tnet-eval "$config" --fetch nothing
says "no node 'nothing' in the graph"
expect 3 tnet-eval "$config" 'eval.slices=[C99]'
says "no slot 'C99'"
for word in checkpoint.every=-5min eval.every=1e12s checkpoint.delta_every=-1s; do
    expect 3 tnet-train "$config" "$word"
    grep -qF "not like 1epoch, 5000steps, 15min or never" "$dir/err" || fail "$(cat "$dir/err")"
done

# 4: data
expect 4 tnet-train "$config" checkpoint.resume=never data.train="$dir/absent.tsv"
says "cannot find '$dir/absent.tsv'"
expect 4 tnet-eval "$config" --data "$dir/absent.tsv"
says "cannot find '$dir/absent.tsv'"
expect 4 tnet-eval "$config" --data /dev/null --predictions "$dir/none.tsv"
says "'/dev/null' holds no records"
[ ! -e "$dir/none.tsv" ] || fail "predictions of nothing"
# .. also where a name cannot be that of a file
ln -s loop "$dir/loop"
for path in "$dir/$long" "$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long/$long" \
    "$dir/loop" "$dir/clicks.tsv/x"; do
    expect 4 tnet-train "$config" checkpoint.resume=never data.train="$path"
    expect 4 tnet-eval "$config" --data "$path"
done
cp "$dir/clicks.tsv" "$dir/secret.tsv"
chmod 000 "$dir/secret.tsv"
if [ "$(id -u)" -ne 0 ]; then
    expect 4 tnet-train "$config" run.dir="$dir/run4" data.train="$dir/secret.tsv"
    says "cannot open '$dir/secret.tsv': Permission denied"
fi

# 4: no record is good, or too many of few are bad, whatever is allowed
yes 'no record' | head -n 50 >"$dir/bad.tsv"
head -n 49 "$dir/clicks.tsv" >"$dir/one.tsv"
echo 'no record' >>"$dir/one.tsv"
# bad WORD.. : the program and its words, FILE is what it reads
bad() {
    while read -r code file most words; do
        # shellcheck disable=SC2046 # one file is one word
        expect "$code" $(echo "$@" | sed "s,FILE,$dir/$file.tsv,") "data.bad_records_max=$most"
        grep -qF -- "error: $words" "$dir/err" || [ -z "$words" ] || fail "no '$words' in: $(cat "$dir/err")"
    done <<END
4 bad 1000 no record is good: all 50 are bad
4 one 1% 1 of 50 records are bad, more than data.bad_records_max (1%)
0 one 2%
END
}
bad tnet-train "$config" run.dir="$dir/run5" data.train=FILE
bad tnet-train "$config" run.dir="$dir/run6" data.valid=FILE
bad tnet-eval "$config" --data FILE
bad tnet-data convert --from FILE format=criteo to.format=csv --to "$dir/out.csv"
expect 3 tnet-train "$config" data.negative_sampling=0
grep -qF "'negative_sampling' is 0, not within 1e-09 .. 1" "$dir/err" || fail "$(cat "$dir/err")"

# 5: checkpoints
expect 5 tnet-train "$config" run.dir="$dir/fresh" --resume
says "no checkpoint to go on from in '$dir/fresh'"
expect 5 tnet-eval "$config" run.dir="$dir/absent"
says "no checkpoint or run directory '$dir/absent'"
expect 5 tnet-eval "$config" --checkpoint "$dir/fresh"
says "no checkpoint in '$dir/fresh'"
expect 5 tnet-eval "$config" --checkpoint "$config"
says "'$config' is a file, not a checkpoint or run directory"
for from in rows dense; do
    expect 5 tnet-train "$config" run.dir="$dir/fresh" "checkpoint.from={$from: $dir/absent}"
    says "checkpoint.from.$from: there is no file '$dir/absent'"
done
expect 0 tnet-export "$config" --to "$dir/export"
export=$(cat "$dir/out")
for file in dense.safetensors model.json dict.tnd EXPORT.json; do
    mv "$export/$file" "$dir/away"
    expect 5 tnet-score "$export" --data "$dir/clicks.tsv"
    says "'$file' is missing"
    mv "$dir/away" "$export/$file"
done
cp -r "$dir/run" "$dir/broken"
sparse=$(echo "$dir"/broken/ckpt-1/sparse-*)
head -c 1000 /dev/zero | dd of="$sparse" bs=1 seek=2000 conv=notrunc 2>"$dir/null"
expect 5 tnet-eval "$config" --checkpoint "$dir/broken/ckpt-1"
says "$sparse"
expect 5 tnet-train "$config" run.dir="$dir/broken"
says "no checkpoint in '$dir/broken' is whole"
# 8: one that cannot be read now may be whole; 0: one that is damaged gives way to the one before.
# Only the run whose folder it is renames anything.
expect 0 tnet-train "$config" run.dir="$dir/two" train.epochs=2 checkpoint.every=1epoch
mv "$dir/two/ckpt-2/MANIFEST" "$dir/manifest"
mkdir "$dir/two/ckpt-2/MANIFEST"
for program in "tnet-train train.epochs=3 checkpoint.keep=1" "tnet-eval --json" "tnet-export --to $dir/two.export"; do
    # shellcheck disable=SC2086
    expect 8 ${program%% *} "$config" run.dir="$dir/two" ${program#* }
    says "cannot read '$dir/two/ckpt-2/MANIFEST'"
    grep -q 'hint: nothing was removed; start again when it can be read' "$dir/err" || fail "no hint: $(cat "$dir/err")"
done
rmdir "$dir/two/ckpt-2/MANIFEST"
head -c 100 "$dir/manifest" >"$dir/two/ckpt-2/MANIFEST"
for program in "tnet-eval --json" "tnet-export --to $dir/two.export" "tnet-train train.epochs=3"; do
    [ -d "$dir/two/ckpt-2" ] || fail "ckpt-2 is gone"
    # shellcheck disable=SC2086
    expect 0 ${program%% *} "$config" run.dir="$dir/two" ${program#* }
    grep -q "ckpt-2 is damaged, the one before is tried: .*'$dir/two/ckpt-2/MANIFEST'" "$dir/err" ||
        fail "no word of damage: $(cat "$dir/err")"
done
[ -d "$dir/two/ckpt-2.damaged" ] || fail "not set aside"
[ ! -e "$dir/two/ckpt-2" ] || fail "copied aside"
cp -r "$dir/run" "$dir/whole"
rm "$dir/run/ckpt-1/MANIFEST"
expect 5 tnet-eval "$config"
mv "$dir/run" "$dir/gone"

# 7: memory
if sanitized; then
    echo "exit_codes: code 7 not tried under a sanitizer" >&2
else
    expect 7 sh -c "ulimit -v 4000000 && exec tnet-train $config 'model.hidden=[60000, 60000]'"
    says "out of memory"
    # what only loads a checkpoint needs no memory for training
    small="ulimit -v 1200000 && OPENBLAS_NUM_THREADS=1 exec"
    expect 7 sh -c "$small tnet-train $config --plan train.batch=1M"
    expect 0 sh -c "$small tnet-eval $config --data $dir/clicks.tsv --checkpoint $dir/whole/ckpt-1 train.batch=1M"
    expect 0 sh -c "$small tnet-export $config --checkpoint $dir/whole/ckpt-1 --to $dir/exported train.batch=1M"
    # little FROM TO TEXT WORDS..: 7 with one sentence, whatever finds no room in so many MB, at least once this text
    little() {
        from=$1 to=$2 text=$3
        shift 3
        : >"$dir/all"
        for mb in $(seq "$from" "$to"); do
            got=0
            rm -rf "$dir/little"
            # shellcheck disable=SC2016
            sh -c 'ulimit -v "$0" && exec "$@"' "${mb}000" "$@" >"$dir/out" 2>"$dir/err" || got=$?
            case $got in
            7) says "" ;;
            0 | 127) ;; # enough; not even enough for the C library
            *) fail "exit code $got in $mb MB, expected 7, of: $*: $(tail -n 5 "$dir/err")" ;;
            esac
            cat "$dir/err" >>"$dir/all"
        done
        grep -q "error: $text" "$dir/all" || fail "no '$text' in: $(cat "$dir/all")"
    }
    little 44 60 "cannot start thread '.*': out of memory: [0-9]* kB for its stack" tnet-train "$config" run.dir="$dir/little"
    little 8 16 "peers need ZeroMQ, which cannot be loaded for want of memory: " tnet-keygen "$dir/little" rank-0
    little 12 24 "data behind a URI need libcurl, which cannot be loaded for want of memory: " \
        tnet-train "$config" run.dir="$dir/little" data.train=http://127.0.0.1:1/a.tsv
    # .. and libzmq, which would abort
    for mb in 55 65; do
        expect 7 sh -c "ulimit -v ${mb}000 && exec tnet-train $config --peers 2 run.dir=$dir/few"
        ! grep -qE 'backtrace|thread.cpp' "$dir/err" || fail "libzmq aborts: $(cat "$dir/err")"
    done
fi

# 7: as many threads as are allowed
chmod 755 "$dir"
mkdir -m 777 "$dir/nobody"
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
if sanitized || [ "$(id -u)" -ne 0 ] || ! $nobody test -x "$bin/tnet-train" 2>"$dir/null"; then
    echo "exit_codes: a limit of threads not tried, which takes root, programs that all may read, and no sanitizer" >&2
else
    # shellcheck disable=SC2086
    expect 7 $nobody prlimit --nproc=1 "$bin/tnet-train" "$config" run.dir="$dir/nobody/run"
    says "the limit of threads is reached"
fi

# 8: a file that may not grow, a disk that is full, results that nobody takes
expect 8 sh -c "ulimit -f 40 && exec tnet-train $config run.dir=$dir/small"
says "File too large"
[ ! -e "$dir/small/ckpt-1" ] || fail "half a checkpoint"
if [ "$(id -u)" -eq 0 ] && mkdir "$dir/disk" && mount -t tmpfs -o size=1m none "$dir/disk" 2>"$dir/null"; then
    full=0
    tnet-train "$config" run.dir="$dir/disk/run" >"$dir/out" 2>"$dir/err" || full=$?
    cp "$dir/err" "$dir/late"
    large=0
    tnet-train "$config" run.dir="$dir/disk/large" 'model.hidden=[400, 400]' >"$dir/out" 2>"$dir/err" || large=$?
    cp "$dir/disk/large/summary.json" "$dir/large.json"
    umount "$dir/disk"
    [ "$large" -eq 8 ] || fail "exit code $large on a small disk, expected 8: $(cat "$dir/err")"
    says "no room for any checkpoint in '$dir/disk/large'"
    grep -q '"steps":0,' "$dir/large.json" || fail "found out late: $(cat "$dir/large.json")"
    mv "$dir/late" "$dir/err"
    [ "$full" -eq 8 ] || fail "exit code $full on a full disk, expected 8: $(cat "$dir/err")"
    says "checkpoint not saved"
fi
# .. and what is known to be too large is told before it is written
if [ "$(id -u)" -eq 0 ] && mkdir "$dir/little" && mount -t tmpfs -o size=200k none "$dir/little" 2>"$dir/null"; then
    for words in "tnet-data gen --format csv rows=1G --to $dir/little/x.csv" \
        "tnet-export $config --checkpoint $dir/whole/ckpt-1 --to $dir/little"; do
        full=0
        # shellcheck disable=SC2086
        $words >"$dir/out" 2>"$dir/err" || full=$?
        grep -q "no room for '$dir/little/" "$dir/err" || full=0
        [ "$full" -eq 8 ] || { umount "$dir/little"; fail "not told at the start: $(cat "$dir/err")"; }
    done
    umount "$dir/little"
fi
expect 0 tnet-train "$config"
expect 8 sh -c "exec tnet-eval $config >/dev/full"
says "cannot write to stdout"
# .. but whoever reads a pipe may stop when it has seen enough, and hears nothing of it
mkfifo "$dir/unread"
for words in "tnet-train --help-all" "tnet-eval $config" "tnet-data check --help"; do
    exec 4<>"$dir/unread"
    exec 5>"$dir/unread" 4>&-
    got=0
    $words >&5 2>"$dir/err" || got=$?
    exec 5>&-
    if [ "$got" -ne 8 ] || grep -q error "$dir/err"; then fail "exit code $got of $words: $(cat "$dir/err")"; fi
done
expect 8 tnet-eval "$config" --report "$dir/absent/r.html"
says "$dir/absent"

# 9: diverged
rule='{type: sgd, lr: 1e6}'
expect 9 tnet-train "$config" run.dir="$dir/wild" train.epochs=50 train.optimizer="$rule" train.sparse="$rule"
says "is not finite at step"
grep -q '"status":"failed","exit_code":9' "$dir/wild/summary.json" || fail "summary.json does not say so"

# .. and where: vectors begin on both sides of 0
for wild in 'root, activation: deep, function: sqrt' 'ln, activation: deep, function: log' 'ratio, div: [deep, zero]'; do
    layers="[{name: zero, constant: 0}, {name: $wild}, {name: z, dense: [${wild%%,*}, zero], units: 1}]"
    expect 9 tnet-train "$config" run.dir="$dir/domain" --fresh model="{type: graph, inputs: {deep: {embed: all}}, layers: $layers, output: z}"
    says "first in node '${wild%%,*}'"
done

# 3: what the output does not follow from would never be trained
dead() { expect 3 tnet-train "$config" run.dir="$dir/dead" model="{type: graph, inputs: {deep: {embed: all}, $1}, layers: [$2], output: z}"; }
dead 'more: {embed: all}' '{name: z, dense: deep, units: 1}'
grep -qF "input 'more' does not lead to the output 'z'" "$dir/err" || fail "$(cat "$dir/err")"
dead 'wide: {embed: all, dim: 1}' '{name: a, dense: [deep, wide], units: 4}, {name: b, dense: a, units: 4}, {name: z, dense: a, units: 1}'
grep -qF "layer 'b' does not lead to the output 'z'" "$dir/err" || fail "$(cat "$dir/err")"
! grep -qF "'a'" "$dir/err" || fail "a layer that is needed: $(cat "$dir/err")"

# 3, with the place: a fault in a block is told where the block is written, one in its use there
cat >"$dir/block.yaml" <<END
include: [$config]
model:
  type: graph
  inputs: {deep: {embed: all}}
  blocks:
    p:
      args: [x]
      layers: [{name: s, sum: y}]
      output: s
  layers:
    - {name: z, block: p, x: deep}
  output: z
END
expect 3 tnet-train "$dir/block.yaml" run.dir="$dir/block"
grep -qF "$dir/block.yaml:8:31: error: block 'p' has no argument or layer 'y' above this one" "$dir/err" || fail "$(cat "$dir/err")"
expect 3 tnet-train "$dir/block.yaml" run.dir="$dir/block" model.layers='[{name: z, block: p}]'
grep -qF "block 'p' needs its argument 'x'" "$dir/err" || fail "$(cat "$dir/err")"

# 75: stopped, can go on; 5: in use meanwhile
tnet-train "$config" run.dir="$dir/long" train.epochs=100000 checkpoint.every=never >"$dir/long.out" 2>"$dir/long.err" &
pid=$!
children="$children $pid"
wait_for "$dir/long/OWNER" "$pid"
expect 5 tnet-train "$config" run.dir="$dir/long" train.epochs=100000
says "run directory '$dir/long' is in use by pid $pid"
kill -USR1 "$pid" # saves, and goes on
wait_for "$dir/long/ckpt-1" "$pid"
saves=1
step=0
until [ "$step" -gt 16 ]; do # an epoch is over, which a loaded machine may take its time for
    saves=$((saves + 1))
    kill -USR1 "$pid"
    wait_for "$dir/long/ckpt-$saves" "$pid"
    step=$(grep -o '"step":[0-9]*' "$dir/long/ckpt-$saves/MANIFEST" | head -n 1 | cut -d: -f2)
done
kill -TERM "$pid"
got=0
wait "$pid" || got=$?
cp "$dir/long.err" "$dir/err"
[ "$got" -eq 75 ] || fail "exit code $got after SIGTERM, expected 75: $(cat "$dir/err")"
says "stopped by a signal at step"
grep -q '^hint: ' "$dir/err" || fail "no hint how to go on"
grep -q "^saved $dir/long/ckpt-1: " "$dir/err" || fail "no word of the save that was asked for"
grep -q '"status":"stopped","exit_code":75' "$dir/long/summary.json" || fail "summary.json does not say so"
expect 3 tnet-train "$config" run.dir="$dir/long" train.epochs=1 --resume
says "1 option differs: train.epochs; nothing trained"
expect 0 tnet-train "$config" run.dir="$dir/long" train.epochs=100000 train.max_time=10ms --resume

# 75: an evaluation that is stopped leaves no half of a file
mkfifo "$dir/endless"
(while cat "$dir/clicks.tsv"; do :; done) >"$dir/endless" 2>"$dir/null" &
children="$children $!"
tnet-eval "$config" --data - --predictions "$dir/half.tsv" <"$dir/endless" >"$dir/out" 2>"$dir/err" &
pid=$!
children="$children $pid"
tries=0
until ls "$dir"/half.tsv.*.tmp >"$dir/null" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || fail "no prediction is written"
    sleep 0.05
done
kill -TERM "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 75 ] || fail "exit code $got of a stopped evaluation, expected 75: $(cat "$dir/err")"
says "stopped by a signal while evaluating"
for left in "$dir"/half.tsv*; do
    [ ! -e "$left" ] || fail "left behind: $left"
done

# 75: while the program waits for data that do not come
mkfifo "$dir/never"
sleep 1000 >"$dir/never" &
children="$children $!"
tnet-train "$config" run.dir="$dir/wait" data.train=- <"$dir/never" >"$dir/out" 2>"$dir/err" &
pid=$!
children="$children $pid"
wait_for "$dir/wait/OWNER" "$pid"
kill -TERM "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 75 ] || fail "exit code $got of a run without data, expected 75: $(cat "$dir/err")"
says "stopped by a signal at step 0; saved as '$dir/wait/ckpt-1'"

# 75: an evaluation of an export that waits for data
export_dir=$(tnet-export -q "$config" --to "$dir/waits")
tnet-eval "$config" --export "$export_dir" --data - <"$dir/never" >"$dir/out" 2>"$dir/err" &
pid=$!
children="$children $pid"
tries=0
until grep -q dict.tnd "/proc/$pid/maps" 2>"$dir/null"; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || fail "the export is not opened: $(cat "$dir/err")"
    sleep 0.05
done
kill -TERM "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 75 ] || fail "exit code $got of an evaluation without data, expected 75: $(cat "$dir/err")"
says "stopped by a signal while evaluating"

# 130: the second SIGINT, while the checkpoint that the first one asked for takes its time
TNET_FAIL=ckpt.before_manifest:sleep=60000 tnet-train "$config" run.dir="$dir/slow" train.epochs=100000 \
    checkpoint.every=never >"$dir/out" 2>"$dir/err" &
pid=$!
children="$children $pid"
wait_for "$dir/slow/OWNER" "$pid"
kill -INT "$pid"
tries=0
until ls "$dir"/slow/ckpt-1.*.tmp/metrics.safetensors >"$dir/null" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || fail "no checkpoint is written"
    sleep 0.05
done
kill -INT "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 130 ] || fail "exit code $got after two SIGINTs, expected 130"
