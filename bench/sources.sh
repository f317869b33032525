#!/bin/sh
# sources.sh - training from plain text, from the same text compressed, and from the same file behind http, s3 and webhdfs
# on loopback, in turns: rows a second beside plain text, a turn at a time. Asked: .zst as fast as plain text with a core to
# spare (one thread trains), remote at least 90 %.
#
#     bench/sources.sh build/gcc [ROWS [TURNS]]      a folder with tests: its tn_store is the server
#
# Compressed are those for which a program is installed: gzip, zstd, lz4, at the program's own level.
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
places=$dir/a.tsv
for program in gzip zstd lz4; do
    command -v $program >"$dir/log" || continue
    $program -c "$dir/a.tsv" >"$dir/$program.tsv"
    places="$places $dir/$program.tsv"
done
mkfifo "$dir/held"
exec 9<>"$dir/held"
"$bin/tn_store" "$dir" <"$dir/held" >"$dir/ports" 9<&- &
server=$!
until [ -s "$dir/ports" ]; do sleep 0.05; done
read -r port _ <"$dir/ports"
ln -s . "$dir/bucket"
places="$places http://127.0.0.1:$port/a.tsv s3://bucket/a.tsv webhdfs://127.0.0.1:$port/a.tsv"
cat >"$dir/secrets" <<END
[default]
endpoint_url = http://127.0.0.1:$port
webhdfs_user = hdfs
aws_access_key_id = AKID
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
END
chmod 600 "$dir/secrets"
cat >"$dir/lr.yaml" <<END
data: {format: criteo, secrets: $dir/secrets}
model: lr
log: {progress: false}
END
cat >"$dir/deepfm.yaml" <<END
data: {format: criteo, secrets: $dir/secrets}
embedding: {dim: 8}
model: {type: deepfm, hidden: [64, 32]}
log: {progress: false}
END
# rate PLACE CONFIG WORDS..: rows a second and peak memory in bytes of one epoch
rate() {
    place=$1
    config=$2
    shift 2
    "$bin/tnet-train" "$dir/$config.yaml" run.dir="$dir/run" --fresh data.train="$place" "$@" >"$dir/out" 2>"$dir/err" || {
        cat "$dir/err" >&2
        exit 1
    }
    sed -n 's/.*"rows_per_s":\([0-9]*\).*"peak_rss_bytes":"\([0-9]*\)".*/\1 \2/p' "$dir/run/summary.json"
    rm -rf "$dir/run"
}
# compare CONFIG WORDS..: every place in each turn, the first is what the others are measured by
compare() {
    : >"$dir/rates"
    for turn in $(seq "$turns"); do
        for place in $places; do
            found=$(rate "$place" "$@")
            echo "$turn ${place#"$dir/"} $found" >>"$dir/rates"
        done
    done
    echo "$*"
    for place in $places; do
        awk -v place="${place#"$dir/"}" '
            $2 == "a.tsv" { plain[$1] = $3 }
            $2 == place { print $3 / plain[$1], $3, $4 }' "$dir/rates" | sort -n | awk -v place="${place#"$dir/"}" '
            { ratio[NR] = $1; sum[NR] = $2; most = $3 > most ? $3 : most }
            END {
                m = int((NR + 1) / 2)
                printf "  %-32s %7d rows/s  %3.0f %% of plain text [%.0f %.0f]  %4.0f MB at most\n", place, sum[m],
                    100 * ratio[m], 100 * ratio[1], 100 * ratio[NR], most / 1e6
            }'
    done
}
for config in lr deepfm; do
    compare $config
    compare $config train.threads=1
done
