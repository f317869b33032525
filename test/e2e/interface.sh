#!/bin/sh
# interface.sh - one way to run: what a program in C (examples/c/train.c) gets from tnet_train.h is what tnet-train and tnet-export
# make of the same configuration, file by file, and what is refused is refused by the same code and sentence.
. "$(dirname "$0")/kit"
[ -z "${TNET_SANITIZE:-}" ] || exit 77 # a library with sanitizers wants a program that has them, too
root=$(pwd)
[ -f "$bin/libtnet-train.so" ] || skip "no libtnet-train.so in $bin"
cc -std=c99 -I"$root/src/api" -I"$root/src/serve" "$root/examples/c/train.c" -L"$bin" -ltnet-train -Wl,-rpath,"$bin" -o "$dir/train"

for day in 1 2 3; do
    awk -v seed="$day" 'BEGIN { srand(seed); print "label,u,p"
        for (i = 0; i < 1500; i++) { u = int(rand() * 50); printf "%d,u%d,%d.5\n", rand() < u / 60, u, rand() * 13 } }' >"$dir/d-2026-11-0$day.csv"
done
cat >"$dir/files.yaml" <<'EOF'
data: {format: csv, train: d-2026-11-01.csv, valid: d-2026-11-02.csv, test: d-2026-11-03.csv}
slots: [{name: u, type: str}, {name: p, type: float}]
model: {type: deepfm, hidden: [8], dropout: 0.1}
train: {epochs: 3, batch: 100}
checkpoint: {every: 20steps}
eval: {every: 15steps, calibrate: platt, predictions: scores.tsv}
export: {dict: [tnd, tsv]}
run: {dir: run}
EOF
sed -e 's/d-2026-11-01.csv/"d-{day:%F}.csv"/; s/d-2026-11-02.csv/next/; s/, test: .*}/, days: 2026-11-01..2026-11-03}/; /^eval:/d; /^checkpoint:/d; /^train:/d' "$dir/files.yaml" >"$dir/days.yaml"

# plain FILE: what a run logs, without times and places in memory, in the order of its text: what is saved beside training ends when it does
plain() {
    sed -E 's/("kind":"table"),"step":[0-9]+,"epoch":[0-9]+,"samples":[0-9]+/\1/; s/"(t|started|seconds|stall_ms|rows_per_s|measured|predicted|rss_bytes|peak_rss_bytes|sparse_bytes_max|memory|compute_ms|read)":("[^"]*"|[^,}]*)//g' "$1" | sort
}

# same A B: the folders hold the same model, in the same checkpoints and exports, and the same log
same() {
    for file in metrics.jsonl summary.json; do
        plain "$1/run/$file" >"$dir/a"
        plain "$2/run/$file" >"$dir/b"
        cmp -s "$dir/a" "$dir/b" || fail "$3: other $file: $(diff "$dir/a" "$dir/b" | head -n 4 | cut -c1-600)"
    done
    diff -r -x metrics.jsonl -x summary.json -x OWNER -x tb "$1" "$2" >"$dir/diff" || fail "$3: $(head -n 4 "$dir/diff")"
    [ -n "$(find "$1" -name MANIFEST)" ] || fail "$3: no checkpoint"
    [ -n "$(find "$1" -name dict.tnd)" ] || fail "$3: no export"
}

program() { tnet-train -q "$1.yaml" && tnet-export -q "$1.yaml" --to ex; }
interface() { "$dir/train" "$1.yaml" ex; }
for kind in files days; do
    for by in program interface; do
        mkdir -p "$dir/$kind-$by"
        cp "$dir"/*.csv "$dir/$kind.yaml" "$dir/$kind-$by"
        (cd "$dir/$kind-$by" && $by $kind) >"$dir/out" 2>"$dir/err" || fail "$kind by the $by: $(tail -n 3 "$dir/err")"
    done
    same "$dir/$kind-program" "$dir/$kind-interface" "$kind"
done
[ -s "$dir/files-interface/scores.tsv" ] || fail "no predictions"

# Either goes on with what the other has begun.
sed -i 's/epochs: 3/epochs: 4/' "$dir/files-program/files.yaml" "$dir/files-interface/files.yaml"
rm -r "$dir/files-program/ex" "$dir/files-interface/ex"
(cd "$dir/files-program" && interface files) >"$dir/out" 2>"$dir/err" || fail "going on: $(tail -n 3 "$dir/err")"
(cd "$dir/files-interface" && program files) >"$dir/out" 2>"$dir/err" || fail "going on: $(tail -n 3 "$dir/err")"
same "$dir/files-program" "$dir/files-interface" "gone on"

# Refused by the same code and sentence. refused CODE PART OVERRIDE..
cd "$dir/files-program"
refused() {
    want=$1 part=$2
    shift 2
    expect "$want" tnet-train -q files.yaml run.dir=other "$@"
    sed -n '/error: /,$p' "$dir/err" | sed 's/^tnet-train: //' >"$dir/a"
    expect "$want" "$dir/train" files.yaml ex run.dir=other "$@"
    sed -n '/error: /,$p' "$dir/err" | sed 's/^train: //' >"$dir/b"
    cmp -s "$dir/a" "$dir/b" || fail "$*: tnet-train says '$(cat "$dir/a")', the library '$(cat "$dir/b")'"
    grep -qF -- "$part" "$dir/a" || fail "$*: no '$part' in $(cat "$dir/a")"
}
refused 2 "d-2026-11-01.csv" eval.predictions=d-2026-11-01.csv
refused 4 "nowhere.csv" data.train=nowhere.csv
refused 3 "data.train is not set" 'data.train=~' 'slots=[u]' train.batch=100
refused 5 "checkpoint" checkpoint.resume=must
mkdir -p conf
cp files.yaml conf/c.yaml
cp d-2026-11-01.csv conf/beside.csv
expect 4 tnet-train -q conf/c.yaml run.dir=other data.train=beside.csv
grep '^hint: ' "$dir/err" >"$dir/a" || fail "no hint by tnet-train"
expect 4 "$dir/train" conf/c.yaml ex run.dir=other data.train=beside.csv
grep '^hint: ' "$dir/err" >"$dir/b" || fail "no hint by the library: $(cat "$dir/err")"
cmp -s "$dir/a" "$dir/b" || fail "another hint: $(cat "$dir/err")"
grep -qF "'conf/beside.csv' is there" "$dir/b" || fail "no hint of the file beside the configuration: $(cat "$dir/err")"
