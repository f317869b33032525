#!/bin/sh
# groups.sh - C7: groups on one machine, none of which may fail, lose a peer or learn anything else.
#
#     bench/groups.sh build/release [GROUPS [PEERS]]      many at once: 50 groups of 2 unless told
#     bench/groups.sh build/release 1 16                  one of 16 processes: starts, trains, ends
#     bench/groups.sh build/release late [SECONDS]        one of 4, whose ranks start 20 s apart unless told, the
#                                                         last first: within cluster.start_timeout, 120 s
set -eu
bin=$(cd "${1:?folder of the programs}" && pwd)
groups=${2:-50}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for part in 0 1 2 3; do
    "$bin/tnet-data" gen -q preset=criteo rows=3000 first_row=$((part * 3000)) --to "$dir/$part.tsv" >"$dir/log"
done
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: "$dir/[0-3].tsv", valid: $dir/0.tsv, shuffle: 0}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16]}
train: {batch: 100}
log: {progress: false}
END
if [ "$groups" = late ]; then
    apart=${3:-20}
    begun=$(date +%s)
    pids=""
    for rank in 3 2 1 0; do
        [ "$rank" = 3 ] || sleep "$apart"
        TNET_RANK=$rank TNET_PEERS=4 "$bin/tnet-train" "$dir/c.yaml" run.dir="$dir/run" >"$dir/out$rank" 2>"$dir/err$rank" &
        pids="$pids $!"
    done
    bad=0
    for pid in $pids; do
        wait "$pid" || bad=$((bad + 1))
    done
    [ "$bad" -eq 0 ] || tail -n 3 "$dir"/err? >&2
    grep -h 'waiting for' "$dir/err3" | sort | uniq -c
    echo "4 ranks that start $apart s apart: $(($(date +%s) - begun)) s in all, $bad at fault (asked: 0)"
    [ "$bad" -eq 0 ]
    exit
fi
peers=${3:-2}
begun=$(date +%s.%N)
for i in $(seq "$groups"); do
    (
        code=0
        "$bin/tnet-train" "$dir/c.yaml" --peers "$peers" run.dir="$dir/run$i" >"$dir/out$i" 2>"$dir/err$i" || code=$?
        echo "$code" >"$dir/code$i"
    ) &
done
wait
ended=$(date +%s.%N)
bad=0
for i in $(seq "$groups"); do
    [ "$(cat "$dir/code$i")" = 0 ] && cmp -s "$dir/out1" "$dir/out$i" && ! grep -q silent "$dir/err$i" && continue
    bad=$((bad + 1))
    echo "groups: group $i: code $(cat "$dir/code$i"): $(tail -n 2 "$dir/err$i")" >&2
done
awk -v n="$groups" -v p="$peers" -v s="$begun" -v e="$ended" -v c="$(nproc)" -v bad="$bad" \
    'BEGIN { printf "%d groups of %d peers at once on %d cores: %.1f s, %d at fault (asked: 0)\n", n, p, c, e - s, bad }'
[ "$bad" -eq 0 ]
