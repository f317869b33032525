#!/usr/bin/env bash
# P9: training rows per second of the linear model, the factorization machine (dim 8) and the field-aware one (k 4) on one
# core, beside xLearn and libffm in turns. What is counted is processor time of whole epochs (a run of one epoch taken off),
# so that reading files and other programs of the machine do not enter.
#
#     bench/classics.sh DATA [TURNS]      DATA holds train.libsvm and train.ffm, the same rows: 39 slots, ids below 1,000,000
#
# BENCH is bench_train (default build/release/bench_train), XLEARN and LIBFFM are their programs; without them a peer is
# skipped. BATCH (default 1024) is TNet's, which trains by its defaults. MODELS (default "lr fm ffm") picks some.
set -euo pipefail
data=$(cd "${1:?usage: bench/classics.sh DATA [TURNS]}" && pwd)
turns=${2:-3}
root=$(cd "$(dirname "$0")/.." && pwd)
bench=${BENCH:-$root/build/release/bench_train}
xlearn=${XLEARN:-$(command -v xlearn_train || true)}
libffm=${LIBFFM:-$(command -v ffm-train || true)}
batch=${BATCH:-1024}
models=${MODELS:-lr fm ffm}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
rows=$(wc -l <"$data/train.libsvm")
export USER=${USER:-bench} # xLearn ends without one
mkdir "$tmp/xlearn" "$tmp/libffm" # each leaves the parsed rows beside its file
ln -s "$data/train.libsvm" "$data/train.ffm" "$tmp/xlearn"
ln -s "$data/train.ffm" "$tmp/libffm"

# cpu_of FOLDER COMMAND..: processor seconds
cpu_of() {
    (
        cd "$tmp/$1"
        shift
        TIMEFORMAT='%U %S'
        { time "$@" >out 2>&1; } 2>&1 || { cat out >&2; exit 1; }
    ) | awk '{ print $1 + $2 }'
}

# xlearn_run FILE MODEL-NUMBER K EPOCHS
xlearn_run() {
    cpu_of xlearn taskset -c 0 "$xlearn" "$1" -m model -s "$2" -k "$3" -p adagrad -nthread 1 -e "$4" --dis-es
}

# libffm_run EPOCHS
libffm_run() {
    cpu_of libffm taskset -c 0 "$libffm" -k 4 -s 1 -t "$1" train.ffm model
}

# rate SECONDS-OF-ONE SECONDS-OF-THREE: rows per second of the two epochs between
rate() {
    awk -v a="$1" -v b="$2" -v n="$rows" 'BEGIN { printf "%.0f\n", 2 * n / (b - a) }'
}

tnet() {
    taskset -c 0 "$bench" "$root/bench/configs/classics.yaml" 3 memory data.train="$data/train.libsvm" model.type="$1" \
        train.batch="$batch" | sed -n 's/.*"cpu_s_per_mrow":\([0-9.]*\).*/\1/p' | awk '{ printf "%.0f\n", 1e6 / $1 }'
}

# turn MODEL: one figure of each into files
turn() {
    case $1 in
    lr) file=train.libsvm number=0 k=8 ;;
    fm) file=train.libsvm number=1 k=8 ;;
    ffm) file=train.ffm number=2 k=4 ;;
    esac
    if [ -n "$xlearn" ]; then
        [ -f "$tmp/xlearn/$file.bin" ] || xlearn_run "$file" "$number" "$k" 1 >/dev/null
        rate "$(xlearn_run "$file" "$number" "$k" 1)" "$(xlearn_run "$file" "$number" "$k" 3)" >>"$tmp/$1.xlearn"
    fi
    if [ -n "$libffm" ] && [ "$1" = ffm ]; then
        [ -f "$tmp/libffm/train.ffm.bin" ] || libffm_run 1 >/dev/null
        rate "$(libffm_run 1)" "$(libffm_run 3)" >>"$tmp/$1.libffm"
    fi
    tnet "$1" >>"$tmp/$1.tnet"
}

# spread FILE: median [least most]
spread() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%d [%d %d]", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

[ -n "$xlearn" ] || echo "skipped: xLearn (no xlearn_train; set XLEARN)"
[ -n "$libffm" ] || echo "skipped: libffm (no ffm-train; set LIBFFM)"
for _ in $(seq "$turns"); do
    for model in $models; do
        turn "$model"
    done
done
for model in $models; do
    case $model in lr) target=1.6 ;; fm) target=2 ;; ffm) target=2.5 ;; esac
    tnet=$(spread "$tmp/$model.tnet")
    best=0
    line="P9 $model: TNet $tnet rows/s"
    for peer in xlearn libffm; do
        [ -f "$tmp/$model.$peer" ] || continue
        figures=$(spread "$tmp/$model.$peer")
        line="$line, $peer $figures"
        [ "${figures%% *}" -le "$best" ] || best=${figures%% *}
    done
    awk -v line="$line" -v a="${tnet%% *}" -v b="$best" -v target="$target" 'BEGIN {
        if (b > 0) printf "%s: ratio %.2f, target %.1f\n", line, a / b, target
        else print line ": nothing to compare with, target", target
    }'
done
