#!/bin/sh
# remote.sh - training from a file and from the same file behind http, on loopback, in turns: rows a second of both.
#
#     bench/remote.sh build/gcc [ROWS [TURNS]]      a folder with tests: its tn_store is the server
set -eu
bin=$(cd "${1:?folder of the programs}" && pwd)
rows=${2:-1000000}
turns=${3:-5}
dir=$(mktemp -d)
unset http_proxy
stop() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
    rm -rf "$dir"
}
trap stop EXIT
"$bin/tnet-data" gen -q preset=criteo rows="$rows" --to "$dir/a.tsv" >"$dir/log"
mkfifo "$dir/held"
exec 9<>"$dir/held"
"$bin/tn_store" "$dir" <"$dir/held" >"$dir/ports" 9<&- &
server=$!
until [ -s "$dir/ports" ]; do sleep 0.05; done
read -r port _ <"$dir/ports"
cat >"$dir/lr.yaml" <<END
data: {format: criteo}
model: lr
log: {progress: false}
END
cat >"$dir/deepfm.yaml" <<END
data: {format: criteo}
embedding: {dim: 8}
model: {type: deepfm, hidden: [64, 32]}
log: {progress: false}
END
# rate CONFIG PATH: rows a second and peak memory in MB of one epoch
rate() {
    "$bin/tnet-train" "$dir/$1.yaml" run.dir="$dir/run" --fresh data.train="$2" >"$dir/out" 2>"$dir/err" || {
        cat "$dir/err" >&2
        exit 1
    }
    sed -n 's/.*"rows_per_s":\([0-9]*\).*"peak_rss_bytes":"\([0-9]*\)".*/\1 \2/p' "$dir/run/summary.json"
    rm -rf "$dir/run"
}
for config in lr deepfm; do
    : >"$dir/file"
    : >"$dir/http"
    for _ in $(seq "$turns"); do
        rate $config "$dir/a.tsv" >>"$dir/file"
        rate $config "http://127.0.0.1:$port/a.tsv" >>"$dir/http"
    done
    for side in file http; do
        sort -n "$dir/$side" | awk -v s=$side -v c=$config '
            { r[NR] = $1; m = $2 > m ? $2 : m }
            END { printf "%s from %s: %d rows/s [%d %d], %.0f MB at most\n", c, s, r[int((NR + 1) / 2)], r[1], r[NR], m / 1e6 }'
    done
done
