#!/bin/sh
# predicted.sh - what --plan predicts of a step beside what a run measures.
#
#     bench/predicted.sh FOLDER [TURNS [ROWS]]
#
# Trains LR, FM, Wide & Deep big and small, and DCN v2 on generated Criteo rows, with one and two threads and batches of
# 128 and 1024 rows. A turn is a plan and a run right behind it, so that both meet the same neighbours on the machine;
# a line has the medians of TURNS (3) of both in ms and of their ratio, and of the ratio of what the run predicts
# itself from its first steps (summary.json, step_ms). TNET_BIN names the folder of the programs. FOLDER keeps the rows for the next time.
set -eu
folder=${1:?folder for rows and runs}
turns=${2:-3}
rows=${3:-200000}
bin=${TNET_BIN:-build/gcc}
mkdir -p "$folder"
data=$folder/rows-$rows.tsv
[ -e "$data" ] || "$bin/tnet-data" gen -q preset=criteo rows="$rows" --to "$data"
cat >"$folder/net.yaml" <<END
run: {dir: $folder/run}
data: {format: criteo, train: $data}
embedding: {dim: 8}
train: {epochs: 2}
checkpoint: {resume: never, every: never}
log: {progress: false}
END

median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# turn WORD..: a plan and a run of some two seconds; prints both, in ms
turn() {
    predicted=$("$bin/tnet-train" "$folder/net.yaml" "$@" --plan | sed -n 's/^expected step: \([0-9.]*\) ms.*/\1/p')
    steps=$(awk -v p="$predicted" 'BEGIN {n = int(2000 / p); print n < 40 ? 40 : n}')
    rm -rf "$folder/run"
    "$bin/tnet-train" "$folder/net.yaml" "$@" train.max_steps="$steps" >"$folder/out" 2>&1 || { cat "$folder/out" >&2 && exit 1; }
    echo "$predicted $(sed -n 's/.*"step_ms":{"predicted":\([^,]*\),"measured":\([^}]*\)}.*/\2 \1/p' "$folder/run/summary.json")"
}

printf '%-14s %7s %6s %12s %12s %7s %7s\n' net threads batch predicted measured ratio itself
while read -r net model; do
    for threads in 1 2; do
        for batch in 128 1024; do
            : >"$folder/turns"
            i=0
            while [ $i -lt "$turns" ]; do
                turn "model=$model" train.threads=$threads train.batch=$batch >>"$folder/turns"
                i=$((i + 1))
            done
            printf '%-14s %7d %6d %12.3f %12.3f %7.2f %7.2f\n' "$net" $threads $batch \
                "$(cut -d' ' -f1 "$folder/turns" | median)" "$(cut -d' ' -f2 "$folder/turns" | median)" \
                "$(awk '{print $1 / $2}' "$folder/turns" | median)" "$(awk '{print $3 / $2}' "$folder/turns" | median)"
        done
    done
done <<END
lr {type: lr}
fm {type: fm}
widedeep-small {type: widedeep, hidden: [128, 64, 32]}
widedeep-big {type: widedeep, hidden: [400, 400, 400]}
dcnv2 {type: dcnv2}
END
