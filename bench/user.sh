#!/bin/sh
# user.sh - P0: a user's whole run, start and end of the process included, beside the same work by other programs.
#
#     bench/user.sh                            TNet alone: configs/widedeep.yaml as it is, on one core and on all
#     PYTHON=VENV/bin/python TORCH=USER_TORCH_PY bench/user.sh        and PyTorch and TensorFlow, in turns
#
# Raw Criteo text, 1,000,000 rows to learn from and 100,000 to evaluate: read, hash, train one pass, evaluate, save. Rows
# per second are rows learned over seconds of the whole process, median [least most] of TURNS (3); memory is the largest
# of the turns. A turn in which other programs took more than 8 % of a core is repeated, up to three times, and the least
# disturbed one counts. TNet's figure is also put beside bench_train's: the same net and rows, from memory. A run of three
# passes tells what the first, in which the table grows, costs more than the second (target 5 %).
# TORCH is the program of the yardsticks that does this with PyTorch, no part of this repository; TensorFlow's is
# bench/user_tensorflow.py. TNET_BIN is the folder of the release programs; rows are kept in BENCH_DATA (data/bench).
# CORES names other processors than all (taskset's list); ONLY says one or all for the half of the table.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
bin=$(cd "${TNET_BIN:-build/release}" && pwd)
mkdir -p "${BENCH_DATA:=data/bench}"
data=$(cd "$BENCH_DATA" && pwd)
turns=${TURNS:-3}
rows=1000000
all=${CORES:-$(taskset -cp $$ | sed 's/.*: //')}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_rows() { # file first rows
    [ -e "$data/$1" ] || {
        "$bin/tnet-data" gen -q preset=criteo first_row="$2" rows="$3" --to "$data/$1.new" >"$work/log"
        mv "$data/$1.new" "$data/$1"
    }
}
make_rows criteo-train.tsv 0 $rows
make_rows criteo-valid.tsv $rows 100000

# Ticks that all processors worked, and those of this process's children that have ended.
ticks() { awk '/^cpu / {print $2 + $3 + $4 + $7 + $8 + $9}' /proc/stat; }
of_children() { awk '{sub(/.*\) /, ""); print $14 + $15}' "/proc/$$/stat"; }

# turn NAME CORES WORDS..: one run; "NAME rows/s MB others" into $work/tries
turn() {
    name=$1 cores=$2
    shift 2
    : >"$work/tries"
    for _ in 1 2 3; do
        rm -rf "$work/run"
        before=$(ticks) own=$(of_children)
        (cd "$work" && taskset -c "$cores" /usr/bin/time -f '%e %M' -o "$work/time" "$@" >"$work/out" 2>"$work/err") ||
            { tail -n 5 "$work/err" >&2 && exit 1; }
        awk -v n="$name" -v rows=$rows -v busy=$(($(ticks) - before)) -v own=$(($(of_children) - own)) -v hz="$(getconf CLK_TCK)" '
            {others = (busy - own) / hz / $1; print n, rows / $1, $2 / 1024, others < 0 ? 0 : others}' "$work/time" >>"$work/tries"
        tail -n 1 "$work/tries" | awk '{exit $4 > .08}' && break
    done
    sort -k4,4g "$work/tries" | head -n 1 >>"$work/turns"
    sed -n "s/.*\"auc\": *\([0-9.]*\).*/$name \1/p; s/.* auc \([0-9.]*\).*/$name \1/p; s/^auc  *\([0-9.]*\).*/$name \1/p" "$work/out" >>"$work/auc"
}

tnet() { # name cores
    turn "$1" "$2" "$bin/tnet-train" -q "$root/configs/widedeep.yaml" data.train="$data/criteo-train.tsv" \
        data.valid="$data/criteo-valid.tsv" data.test= run.dir="$work/run"
}

torch() { # name cores threads
    turn "$1" "$2" "$PYTHON" "$TORCH" --threads "$3" --train "$data/criteo-train.tsv" --valid "$data/criteo-valid.tsv"
}

tensorflow() { # name cores
    turn "$1" "$2" "$PYTHON" "$root/bench/user_tensorflow.py" "$data/criteo-train.tsv" "$data/criteo-valid.tsv" "$work/tf"
}

memory() { # name cores
    rate=$(cd "$root" && taskset -c "$2" "$bin/bench_train" configs/widedeep.yaml 2 memory data.train="$data/criteo-train.tsv" data.valid= \
        data.test= | sed 's/.*"rows_per_s":\([0-9]*\).*/\1/')
    echo "$1 $rate 0 0" >>"$work/turns"
}

# Rows per second of passes 1 and 2 of three, without the first tenth of each, while reading begins.
passes() { # cores
    rm -rf "$work/run"
    (cd "$work" && taskset -c "$1" "$bin/tnet-train" -q "$root/configs/widedeep.yaml" data.train="$data/criteo-train.tsv" data.valid= \
        data.test= eval.calibrate=none train.epochs=3 checkpoint.every=3epochs log.every=50ms run.dir="$work/run" >"$work/out" 2>&1)
    sed -n 's/^{"t":\([0-9.]*\),"kind":"train".*"samples":\([0-9]*\).*/\1 \2/p' "$work/run/metrics.jsonl" | awk -v rows=$rows '
        {pass = int(($2 - 1) / rows)}
        $2 - pass * rows < rows / 10 {next}
        !(pass in from) {from[pass] = $1; row[pass] = $2}
        {to[pass] = $1; end[pass] = $2}
        END {for (p = 0; p < 2; p++) printf "%.0f ", (end[p] - row[p]) / (to[p] - from[p]); print ""}'
}

measure() { # cores threads
    : >"$work/turns"
    : >"$work/passes"
    : >"$work/auc"
    i=0
    while [ $i -lt "$turns" ]; do
        tnet tnet "$1"
        memory memory "$1"
        passes "$1" >>"$work/passes"
        if [ -n "${PYTHON:-}" ]; then
            [ -z "${TORCH:-}" ] || torch torch "$1" "$2"
            tensorflow tensorflow "$1"
        fi
        i=$((i + 1))
    done
    sort -k1,1 -k2,2g "$work/turns" | awk -v at="P0   $2 core(s)" '
        function tell() {
            median[name] = (n % 2) ? rate[(n + 1) / 2] : (rate[n / 2] + rate[n / 2 + 1]) / 2
            printf "%s %-20s %7.1f [%.1f %.1f] k rows/s", at, name, median[name] / 1e3, rate[1] / 1e3, rate[n] / 1e3
            if (mb) printf "; %.0f MB; others %.0f %%", mb, 100 * others
            print ""
        }
        $1 != name && n {tell(); n = mb = others = 0}
        {name = $1; rate[++n] = $2; if ($3 > mb) mb = $3; if ($4 > others) others = $4}
        END {
            tell()
            printf "%s of the rate from memory: %.2f (target .90)\n", at, median["tnet"] / median["memory"]
            for (name in median) {
                if (name != "tnet" && name != "memory" && median[name] > median[best]) best = name
            }
            if (best != "") printf "%s to the best of the others, %s: %.2f x (target 3)\n", at, best, median["tnet"] / median[best]
        }'
    awk '{print 100 * ($2 / $1 - 1), $1 / 1e3, $2 / 1e3}' "$work/passes" | sort -g | awk -v at="P0   $2 core(s)" '
        {slower[NR] = $1; one[NR] = $2; two[NR] = $3}
        END {m = int((NR + 1) / 2)
            printf "%s first pass %.1f, second %.1f k rows/s; slower %.1f %% [%.1f %.1f] (target 5)\n", at, one[m], two[m], slower[m], slower[1], slower[NR]}'
    sort -u "$work/auc" | sed 's/^/     auc of /'
}

"$bin/bench_rates" machine
[ "${ONLY:-one}" != one ] || measure "$(echo "$all" | sed 's/[-,].*//')" 1
[ "${ONLY:-all}" != all ] || measure "$all" "$(taskset -c "$all" nproc)"
