#!/bin/sh
# peers_idle.sh - C6: a rank that has nothing left to do waits for another without taking processor time, and both end well.
. "$(dirname "$0")/kit"

for i in 0 1; do
    awk -v i=$i 'BEGIN { for (k = 0; k < 120; k++) print "1 " 2 * k + i ":1" }' >"$dir/$i.svm"
done
cat >"$dir/c.yaml" <<END
data: {format: libsvm, train: [$dir/0.svm, $dir/1.svm], shuffle: 0}
embedding: {dim: 1}
model: {type: lr}
train: {epochs: 1, batch: 4, threads: 1}
cluster: {staleness: inf}
checkpoint: {every: never}
log: {progress: false}
END

# spent PID: its processor time so far, in ticks.
spent() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# Of 30 batches each, rank 1 takes a third of a second for every one, rank 0 no time.
TNET_FAIL=step.1:sleep=330 tnet-train -q "$dir/c.yaml" --peers 2 run.dir="$dir/run" 2>"$dir/err" &
parent=$!
children=$parent
idle=""
tries=0
while [ -z "$idle" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || fail "no rank 0 appears: $(cat "$dir/err")"
    sleep 0.05
    ranks=$(cat "/proc/$parent/task/$parent/children")
    for pid in $ranks; do
        if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx TNET_RANK=0; then idle=$pid; fi
    done
done
sleep 3
before=$(spent "$idle")
sleep 5
used=$(($(spent "$idle") - before))
limit=$((5 * $(getconf CLK_TCK) * 2 / 100))
echo "an idle rank used $used ticks of $((5 * $(getconf CLK_TCK)))"
sanitized || [ "$used" -le "$limit" ] || fail "at most $limit"
wait "$parent" || fail "exit code $?: $(cat "$dir/err")"
grep -q '"samples":"240"' "$dir/run/summary.json" || fail "not all records: $(cat "$dir/run/summary.json")"
