#!/bin/sh
# groups.sh - C7: many groups at once on one machine, none of which may fail, lose a peer or learn anything else.
#
#     bench/groups.sh build/release [GROUPS [PEERS]]      50 groups of 2 unless told
set -eu
bin=$(cd "${1:?folder of the programs}" && pwd)
groups=${2:-50}
peers=${3:-2}
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
    'BEGIN { printf "%d groups of %d peers at once on %d cores: %.1f s, %d at fault (limit 0)\n", n, p, c, e - s, bad }'
[ "$bad" -eq 0 ]
