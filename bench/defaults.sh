#!/usr/bin/env bash
# What a configuration reaches that names its data and its model, and nothing else: every model on five public sets and on
# two generated ones of known truth, in one pass and until the choices of the run end it (docs/models.md, Defaults).
#
#     bench/defaults.sh DATA FOLDER [SETS [MODELS [MODES [SEEDS]]]]     lists with commas; can be stopped and begun again
#     bench/defaults.sh table FOLDER                                    prints what is there as a table
#
# DATA holds frappe, adult, bank, a9a and ml100k; `datasets/` says where they come from; or it is what bench/unseen.py made.
# FOLDER gets results.jsonl, one line a run, which is not done again, and the generated data. SETS: frappe adult bank a9a ml100k
# criteo1m criteo10m movies1m movies10m, or those made; MODES: one (train.epochs=1) and auto (the default). TNET_BIN holds the
# programs, THREADS are train.threads.
# bench/defaults_reference.py adds what scikit-learn, LightGBM and PyTorch reach on the same files.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${TNET_BIN:-$root/build/release}
real=frappe,adult,bank,a9a,ml100k
generated=criteo1m,movies1m,criteo10m,movies10m

# table FOLDER: test AUC and logloss, mean of the seeds; a row per model, a column per set.
if [ "${1:-}" = table ]; then
    exec python3 "$root/bench/defaults_reference.py" table "${2:?usage: bench/defaults.sh table FOLDER}/results.jsonl"
fi
data=$(cd "${1:?usage: bench/defaults.sh DATA FOLDER [SETS [MODELS [MODES [SEEDS]]]]}" && pwd)
mkdir -p "${2:?a folder for results}"
out=$(cd "$2" && pwd)
sets=${3:-$real,$generated}
models=${4:-lr,fm,ffm,fwfm,widedeep,deepfm,dcn,dcnv2}
modes=${5:-one,auto}
seeds=${6:-1,2,3}
results=$out/results.jsonl
touch "$results"

# made NAME ROWS FIRST key=value..: a generated file, unless it is there.
made() {
    local file=$out/$1 rows=$2 first=$3
    shift 3
    [ -e "$file" ] || "$bin/tnet-data" gen -q --to "$file" --config-to /dev/null rows="$rows" first_row="$first" model=deep "$@"
}

# generate SET: train, valid and test of a set whose name ends in its rows.
generate() {
    local kind=${1%%[0-9]*} rows=${1#"${1%%[0-9]*}"} args=()
    [ "$kind" = movies ] && args=(--format csv)
    made "$1.train" "$rows" 0 preset="$kind" "${args[@]}"
    made "$kind.valid" 100k 100M preset="$kind" "${args[@]}"
    made "$kind.test" 100k 200M preset="$kind" "${args[@]}"
}

# adult has no part for validation: every eighth row of train is one.
split_adult() {
    [ -e "$out/adult.valid.csv.gz" ] && return
    zcat "$data/adult/train.csv.gz" | awk 'NR == 1 || NR % 8 != 0' | gzip >"$out/adult.train.csv.gz"
    zcat "$data/adult/train.csv.gz" | awk 'NR == 1 || NR % 8 == 0' | gzip >"$out/adult.valid.csv.gz"
}

# config_of SET: the file that a user would write.
config_of() {
    local file=$data/$1.yaml
    [ -e "$file" ] || file=$root/bench/configs/defaults/${1%%[0-9]*m}.yaml
    sed -e "s|DATA|$data|g; s|OUT|$out|g; s|SET|$1|g" "$file" >"$out/$1.yaml"
}

# field NAME: a number of tnet-eval --json.
field() {
    sed -n 's/.*"'"$1"'":\([-0-9.e]*\).*/\1/p' "$out/eval.json" | head -n 1
}

# one SET MODEL MODE SEED
one() {
    local key="\"set\":\"$1\",\"model\":\"$2\",\"mode\":\"$3\",\"seed\":$4" args=(model.type="$2" run.seed="$4" run.dir="$out/run")
    grep -qF "$key" "$results" && return
    [ "$3" = one ] && args+=(train.epochs=1)
    [ -n "${THREADS:-}" ] && args+=(train.threads="$THREADS")
    rm -rf "$out/run"
    local began=$EPOCHREALTIME
    "$bin/tnet-train" "$out/$1.yaml" "${args[@]}" 2>"$out/train.log" >"$out/train.txt" || {
        cat "$out/train.log" >&2 # a model that this set has nothing for
        return 0
    }
    local ended=$EPOCHREALTIME
    "$bin/tnet-eval" "$out/$1.yaml" "${args[@]}" --json -q >"$out/eval.json"
    awk -v key="$key" -v values="$(field auc) $(field logloss) $(field copc) $(field ece) $(field epoch)" -v began="$began" \
        -v ended="$ended" 'BEGIN {
            split(values, v, " ")
            printf "{%s,\"auc\":%s,\"logloss\":%s,\"copc\":%s,\"ece\":%s,\"passes\":%s,\"seconds\":%.1f}\n",
                key, v[1], v[2], v[3], v[4], v[5], ended - began
        }' | tee -a "$results"
}

for set in ${sets//,/ }; do
    case $set in
    adult) split_adult ;;
    criteo* | movies*) generate "$set" ;;
    esac
    config_of "$set"
    for seed in ${seeds//,/ }; do
        for mode in ${modes//,/ }; do
            for model in ${models//,/ }; do
                one "$set" "$model" "$mode" "$seed"
            done
        done
    done
done
