#!/bin/sh
# lifecycle.sh - what it costs that rows leave: memory at a cap under ever new ids, rate beside a run whose rows stay.
#
#     bench/lifecycle.sh FOLDER [ROWS [TURNS]]      FOLDER: of the release programs; ROWS: of the run for memory
#
# Memory: a log of ten days in which all ids of eight slots are new every day (`tnet-data gen drift=1 zipf=0`, as many ids
# as values, of which 63 % are drawn) goes through a pipe into a run that may take 200 MB of rows (`on_full: evict`). The
# 20 M rows it takes unless told have 1e8 distinct ids. VmRSS is read every EVERY seconds (2); what counts is how far it moves in the
# last half of the run, when the table has long been full. Asked: 2 % of the cap. A short run: ROWS 2000000, 1e7 ids,
# which fill the cap about four times.
# Rate: rows per processor second of whole runs over the same ten days, TURNS (5) in turn, median [least most]: rows stay and
# counts do not decay; counts decay; rows expire after a day without being seen; rows leave a table that may take half of what it
# took when they stayed; keys wait for their third occurrence, counted exactly, or in a filter of 10M keys. Each day ends with its sweep and is saved. `few`: a Zipf log with a tenth of its ids new each day, as
# teams have them, asked: at most 3 % below the run whose rows stay; `many`: nearly every id is new, the worst case. RATE_ROWS (1000000)
# are in the ten files, which are kept in BENCH_DATA (data/bench). KINDS: which of memory, few, many (all).
# Percentages are of the run whose rows stay in the same turn: median and quartiles.
# LIMITS: neighbours slow a processor second, too, so a rate is no figure, a ratio within one turn is. Runs of less than
# some 500,000 rows are mostly start and end.
set -eu
bin=$(cd "${1:?folder of the programs}" && pwd)
rows=${2:-20000000}
turns=${3:-5}
mkdir -p "${BENCH_DATA:=data/bench}"
data=$(cd "$BENCH_DATA" && pwd)
rate_rows=${RATE_ROWS:-1000000}
kinds=${KINDS:-memory few many}
work=$(mktemp -d)
pid=""
finish() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
{
    echo 'data: {format: libffm, shuffle: 0}'
    echo 'slots:'
    for s in 0 1 2 3 4 5 6 7; do
        echo "  - {name: s$s, type: id, field: $s}"
    done
    echo 'embedding: {dim: 8}'
    echo 'model: {type: deepfm, hidden: [16]}'
    echo 'train: {batch: 1024}'
    echo 'log: {progress: false}'
} >"$work/c.yaml"

count_left() { # rows there, and those that left: of the last sweep, of all
    awk '/"kind":"sweep"/ {
            match($0, /"rows":[0-9]*/); rows = substr($0, RSTART + 7, RLENGTH - 7)
            match($0, /"expired":[0-9]*/); expired += substr($0, RSTART + 10, RLENGTH - 10)
            match($0, /"evicted":[0-9]*/); evicted += substr($0, RSTART + 10, RLENGTH - 10)
        } END {printf "rows %d, expired %d, evicted %d\n", rows, expired, evicted}' "$work/run/metrics.jsonl"
}

# ---- memory ----

measure_memory() {
    day=$((rows / 10))
    mkfifo "$work/pipe"
    "$bin/tnet-data" gen -q --to - rows=$((day * 10)) day_rows="$day" drift=1 zipf=0 slots=8 ids="$day" >"$work/pipe" 2>"$work/gen" &
    "$bin/tnet-train" -q "$work/c.yaml" data.train=- run.dir="$work/run" embedding.memory=200MB embedding.on_full=evict \
        <"$work/pipe" >"$work/out" 2>"$work/err" &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        awk '/^VmRSS/ {print $2}' "/proc/$pid/status" 2>/dev/null || true
        sleep "${EVERY:-2}"
    done >"$work/rss"
    code=0
    wait "$pid" || code=$?
    pid=""
    [ "$code" -eq 0 ] || { tail -n 5 "$work/err" >&2 && exit 1; }
    awk -v rows="$rows" '
        $1 > 0 {rss[++n] = $1 / 1000}
        END {
            least = most = rss[int(n / 2) + 1]
            for (i = int(n / 2) + 1; i < n; i++) { # the last one is of the end, when all is saved
                least = rss[i] < least ? rss[i] : least
                most = rss[i] > most ? rss[i] : most
            }
            printf "memory: %d rows, %d samples; RSS of the last half %.1f to %.1f MB, moves by %.2f %% of 200 MB (asked: 2)\n", \
                rows, n, least, most, (most - least) / 2
        }' "$work/rss"
    echo "memory: $(count_left)"
}

# ---- rate ----

timed() { # name word=value..: rows per processor second of a whole run
    name=$1
    shift
    rm -rf "$work/run"
    /usr/bin/time -f '%U %S' -o "$work/time" "$bin/tnet-train" -q "$work/c.yaml" "data.train=$file" \
        data.days=2026-11-01..2026-11-10 run.dir="$work/run" "$@" >"$work/out" 2>"$work/err" ||
        { tail -n 5 "$work/err" >&2 && exit 1; }
    awk -v n="$name" -v rows="$rate_rows" '{print n, rows / ($1 + $2)}' "$work/time" >>"$work/turns"
    count_left >"$work/left.$name"
}

measure_rate() { # kind word=value..
    kind=$1
    shift
    file="$data/drift-$kind-$rate_rows-{day:%Y%m%d}.ffm"
    [ -e "$data/drift-$kind-$rate_rows-20261110.ffm" ] ||
        "$bin/tnet-data" gen -q --to "$file" slots=8 rows="$rate_rows" days=10 ids=$((rate_rows / 10)) "$@" >"$work/gen"
    : >"$work/turns"
    for _ in $(seq "$turns"); do
        timed stay embedding.decay=1
        bytes=$(grep '"kind":"table"' "$work/run/metrics.jsonl" | tail -n 1 | grep -o '"bytes":[0-9]*' | head -n 1 | cut -d: -f2)
        timed decay embedding.decay=.98
        timed expire embedding.decay=.98 embedding.expiry.ttl_days=1
        timed evict embedding.decay=.98 embedding.memory=$((bytes / 2000))kB embedding.on_full=evict
        timed wait embedding.decay=.98 embedding.admission.threshold=3
        timed bloom embedding.decay=.98 'embedding.admission={threshold: 3, filter: {type: bloom, keys: 10M}}'
    done
    for name in stay decay expire evict wait bloom; do
        awk -v kind="$kind" -v name="$name" -v left="$(cat "$work/left.$name")" '
            function sort(x, n, i, j, t) {
                for (i = 2; i <= n; i++)
                    for (j = i; j > 1 && x[j] < x[j - 1]; j--) {
                        t = x[j]; x[j] = x[j - 1]; x[j - 1] = t
                    }
            }
            $1 == "stay" {stay = $2}
            $1 == name {rate[++n] = $2; ratio[n] = 100 * ($2 / stay - 1)}
            END {
                sort(rate, n)
                sort(ratio, n)
                printf "%s new, %s: %.0f [%.0f %.0f] rows/s", kind, name, rate[int((n + 1) / 2)], rate[1], rate[n]
                if (name != "stay")
                    printf ", %+.1f [%+.1f %+.1f] %% (asked: -3)", ratio[int((n + 1) / 2)], ratio[int((n + 3) / 4)], ratio[int((3 * n + 3) / 4)]
                print "; " left
            }' "$work/turns"
    done
}

for kind in $kinds; do
    case $kind in
    memory) measure_memory ;;
    few) measure_rate few drift=.1 ;;
    many) measure_rate many drift=1 zipf=0 ;;
    *) echo "KINDS: '$kind' is none of memory, few, many" >&2 && exit 2 ;;
    esac
done
