#!/bin/sh
# memory.sh - a run comes near the memory of its cgroup: it saves, says so and ends with 7 before the kernel
# ends it with 137, alone and as two processes; with more memory the same command goes on.
. "$(dirname "$0")/kit"
! sanitized || skip "a sanitizer takes memory of its own"
mb=1000000

# A cgroup below the own one, of version 1 or 2.
v1=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
v2=$(sed -n 's/^0:://p' /proc/self/cgroup)
group=
for try in "/sys/fs/cgroup/memory${v1%/}/tnet-test-$$:memory.limit_in_bytes" "/sys/fs/cgroup${v2%/}/tnet-test-$$:memory.max"; do
    file=${try##*:}
    if mkdir "${try%:*}" 2>"$dir/null"; then
        group=${try%:*}
        [ ! -e "$group/$file" ] || break
        rmdir "$group"
        group=
    fi
done
[ -n "$group" ] || skip "cannot make a cgroup with a limit of memory"
leave() {
    finish
    rmdir "$group" 2>/dev/null || true
}
trap leave EXIT

# within MB WORDS..: in a cgroup of so many MB; exit code in $got.
within() {
    echo $(($1 * mb)) >"$group/$file" || skip "cannot limit a cgroup"
    shift
    got=0
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" >"$dir/out" 2>"$dir/err" || got=$?
}

clicks "$dir/a.tsv" 60000 0
clicks "$dir/b.tsv" 60000 60000
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: [$dir/a.tsv, $dir/b.tsv], shuffle: 1000}
embedding: {dim: 64}
model: {type: fm}
train: {epochs: 1, batch: 256, threads: 1, sparse: {type: adam, lr: 1e-3}}
eval: {batch: 256}
log: {progress: false}
END

# full RUN: the run ended by its own word, once, with a checkpoint.
full() {
    [ "$got" -eq 7 ] || fail "exit code $got, expected 7, in $(cat "$group/$file") bytes: $(tail -n 5 "$dir/err")"
    says "full at step "
    grep -q '^hint: ' "$dir/err" || fail "no hint: $(cat "$dir/err")"
    grep -qE '^  C[0-9]+ +[0-9]+ rows' "$dir/err" || fail "no slots: $(cat "$dir/err")"
    [ -s "$dir/$1/LATEST" ] || fail "nothing is saved: $(cat "$dir/err")"
    grep -q '"exit_code":7' "$dir/$1/summary.json" || fail "the summary: $(cat "$dir/$1/summary.json")"
    grep -qE '"sparse_bytes_max":"?[0-9]+"?,"memory":"[0-9.]+ MB: 80 %' "$dir/$1/summary.json" || fail "the summary: $(cat "$dir/$1/summary.json")"
}

# nearly: it was not the table that came to its cap, but the process as a whole that came near its limit before. So a
# group may end, whose messages take more or less.
nearly() { grep -q "memory is nearly full" "$dir/err"; }

# goes_on RUN WORDS..: with the same memory not a step, unless it was the process that had no room; with more memory
# to the end.
goes_on() {
    run=$1
    shift
    before=$(cat "$dir/$run/LATEST")
    nearly && has_room=yes || has_room=no
    within "$little" tnet-train "$dir/c.yaml" run.dir="$dir/$run" "$@"
    full "$run"
    [ "$has_room" = yes ] || [ "$(cat "$dir/$run/LATEST")" = "$before" ] || fail "a step was made without room for it"
    within 4000 tnet-train "$dir/c.yaml" run.dir="$dir/$run" "$@"
    [ "$got" -eq 0 ] || fail "exit code $got with more memory: $(tail -n 5 "$dir/err")"
    grep -q '"resumed_from":' "$dir/$run/metrics.jsonl" || fail "it did not go on"
}

little=250
within "$little" tnet-train "$dir/c.yaml" --dry-run
[ "$got" -eq 0 ] || fail "--dry-run: exit code $got: $(cat "$dir/err")"
grep -q "^rows .*80 % of 2.* MB (cgroup $file)" "$dir/out" || fail "--dry-run does not know the cgroup: $(cat "$dir/out")"
within "$little" tnet-train "$dir/c.yaml" run.dir="$dir/one"
full one
goes_on one
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/whole" embedding.memory=none
ckpt() { echo "$1/$(cut -d' ' -f1 "$1/LATEST")"; }
for part in "$(ckpt "$dir/whole")"/sparse-* "$(ckpt "$dir/whole")"/dense-*; do
    part=$(basename "$part")
    tail -c +65 "$(ckpt "$dir/one")/$part" >"$dir/have"
    tail -c +65 "$(ckpt "$dir/whole")/$part" >"$dir/want"
    cmp "$dir/have" "$dir/want" || fail "$part is not that of a run with memory enough"
done
echo "$name: one process, to the same bits"

# A cap that is more than there is: the process as a whole is looked at.
little=250
within "$little" tnet-train "$dir/c.yaml" run.dir="$dir/near" embedding.memory=100GB
[ "$got" -eq 7 ] || fail "near the limit: exit code $got, expected 7: $(tail -n 5 "$dir/err")"
says "memory is nearly full at step "
[ -s "$dir/near/LATEST" ] || fail "near the limit: nothing is saved: $(cat "$dir/err")"
echo "$name: near the limit of the process"

# Of many new ids rows leave before the process comes near its limit, also where a batch is large.
expect 0 tnet-data gen -q --to "$dir/ids.ffm" rows=100000 slots=20 ids=150000 zipf=0 --config-to "$dir/ids.yaml"
for batch in auto 4096; do
    within 300 tnet-train -q "$dir/ids.yaml" model=fm embedding.dim=16 embedding.on_full=evict train.batch=$batch train.epochs=1 run.dir="$dir/evict-$batch"
    [ "$got" -eq 0 ] || fail "rows do not leave, batch $batch: exit code $got: $(tail -n 5 "$dir/err")"
    grep -q '"evicted":[1-9]' "$dir/evict-$batch/metrics.jsonl" || fail "no row has left"
done
echo "$name: rows leave in time"

little=450
within "$little" tnet-train "$dir/c.yaml" --peers 2 run.dir="$dir/two"
full two
nearly || grep -q "shared by 2" "$dir/err" || fail "not shared: $(cat "$dir/err")"
goes_on two --peers 2
echo "$name: two processes"

# The same of address space. What is left at last is a sentence, whatever cannot be had.
got=0
prlimit --as=300000000 tnet-train "$dir/c.yaml" run.dir="$dir/virtual" >"$dir/out" 2>"$dir/err" || got=$?
[ "$got" -eq 7 ] || fail "ulimit -v: exit code $got, expected 7: $(tail -n 5 "$dir/err")"
says "ulimit -v"
[ -s "$dir/virtual/LATEST" ] || fail "ulimit -v: nothing is saved: $(cat "$dir/err")"
expect 0 tnet-train "$dir/c.yaml" run.dir="$dir/virtual"
got=0
prlimit --as=300000000 tnet-train "$dir/c.yaml" run.dir="$dir/none" embedding.memory=none >"$dir/out" 2>"$dir/err" || got=$?
[ "$got" -eq 7 ] || fail "no cap under ulimit -v: exit code $got, expected 7: $(tail -n 5 "$dir/err")"
grep -q 'out of memory: ' "$dir/err" || fail "no cap under ulimit -v: $(cat "$dir/err")"
echo "$name: ulimit -v"
