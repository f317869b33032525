#!/bin/sh
# peers.sh - P6: as many processes as cores, a thread each, beside one process with as many threads; and twice as many.
#
#     bench/peers.sh build/release [TURNS [ROWS]]      3 turns over 1000000 rows unless told: ten minutes on 2 cores
#
# Rows per second of whole runs, start and reading included: median [least most] of the turns, which
# go round, so that what else the machine does meets all.
set -eu
bin=$(cd "${1:?folder of the programs}" && pwd)
turns=${2:-3}
rows=${3:-1000000} # fewer, and the start of the processes shows
cores=$(nproc)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$bin/tnet-data" gen -q preset=criteo rows="$rows" --to "$dir/rows.tsv" >"$dir/log"
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: "$dir/rows.tsv", part_bytes: 4MB}
embedding: {dim: 8}
model: {type: widedeep, hidden: [128, 64, 32]}
train: {batch: 1024}
eval: {every: never}
checkpoint: {every: never, resume: never}
log: {progress: false}
END
"$bin/tnet-train" -q "$dir/c.yaml" run.dir="$dir/warm" >/dev/null 2>&1 # the file is in the page cache

# One run: its name, then what differs.
rate() {
    name=$1
    shift
    rm -rf "$dir/run"
    "$bin/tnet-train" -q "$dir/c.yaml" run.dir="$dir/run" "$@" >/dev/null 2>"$dir/err" || { cat "$dir/err" >&2; exit 1; }
    sed -n 's/.*"samples":"*\([0-9]*\)"*.*/\1/p' "$dir/run/summary.json" | head -n 1 >"$dir/samples"
    sed -n 's/.*"seconds":\([0-9.e+-]*\).*/\1/p' "$dir/run/summary.json" | head -n 1 >"$dir/seconds"
    awk -v n="$name" 'NR == FNR { s = $1; next } { printf "%s %.0f\n", n, s / $1 }' "$dir/samples" "$dir/seconds" >>"$dir/rates"
}

for net in small:128,64,32 big:400,400,400; do
    hidden="model.hidden=[${net#*:}]"
    net=${net%%:*}
    turn=0
    while [ "$turn" -lt "$turns" ]; do
        rate "$net.one" "$hidden" --peers 1 train.threads="$cores"
        for staleness in 0 1 inf; do
            rate "$net.cores.$staleness" "$hidden" --peers "$cores" train.threads=1 cluster.staleness="$staleness"
        done
        rate "$net.twice.1" "$hidden" --peers $((2 * cores)) train.threads=1 cluster.staleness=1
        turn=$((turn + 1))
    done
done

sort -k1,1 -k2,2n "$dir/rates" | awk -v cores="$cores" '
    function tell() {
        middle = value[int((n + 1) / 2)]
        median[name] = middle
        printf "%-14s %8d rows/s [%d %d]", name, middle, value[1], value[n]
    }
    $1 != name && n > 0 { tell(); print ""; n = 0 }
    { name = $1; value[++n] = $2 }
    END {
        tell(); print ""
        printf "P6 on %d cores, staleness 1: big %.2f of one process (asked .90), small %.2f (asked .75)\n", cores,
            median["big.cores.1"] / median["big.one"], median["small.cores.1"] / median["small.one"]
        printf "%d peers to %d: big %.2f, small %.2f (asked .90)\n", 2 * cores, cores,
            median["big.twice.1"] / median["big.cores.1"], median["small.twice.1"] / median["small.cores.1"]
    }'
