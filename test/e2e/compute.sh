#!/bin/sh
# compute.sh - every choice of compute.gemm, bf16 and pin trains or is refused with exit code 3 and a hint.
. "$(dirname "$0")/kit"

# 400 rows whose first slot tells the label three times out of four.
awk 'BEGIN {
    for (i = 0; i < 400; i++) printf "%d %d:1 %d:1\n", (i % 4 < 2) != (i % 16 == 0), 1 + i % 4, 5 + i % 7
}' >"$dir/train.libsvm"
cat >"$dir/run.yaml" <<EOF
data: {format: libsvm, train: $dir/train.libsvm, shuffle: 0}
slots:
  - {name: a, range: [1, 5]}
  - {name: b, range: [5, 12]}
embedding: {dim: 4}
model: {type: widedeep, hidden: [24, 7]}
train: {epochs: 3, batch: 50}
checkpoint: {every: never}
log: {progress: false}
EOF

# trains WORD KEY=VALUE: or says why not
trains() {
    set +e
    "$bin/tnet-train" "$dir/run.yaml" run.dir="$dir/$1" "$2" >"$dir/out" 2>"$dir/err"
    code=$?
    set -e
    case $code in
    0) [ -s "$dir/$1/summary.json" ] || fail "$2: no summary" ;;
    3)
        grep -q "^.*error: '${2%%=*}': " "$dir/err" || fail "$2: refused without its name: $(cat "$dir/err")"
        grep -q "hint: " "$dir/err" || fail "$2: refused without a hint"
        echo "$name: $2 is refused here"
        ;;
    *) fail "$2: exit code $code: $(cat "$dir/err")" ;;
    esac
}

for way in auto own openblas; do
    trains "$way" "compute.gemm=$way"
done
for way in auto openblas; do
    [ -s "$dir/$way/summary.json" ] || fail "compute.gemm=$way is refused, but is everywhere"
done
grep -q openblas "$dir/openblas/summary.json" || fail "the summary does not say openblas"
trains bf16 compute.bf16=true
expect 3 tnet-train "$dir/run.yaml" run.dir="$dir/none" compute.gemm=mkl

# Pinned threads compute the same bits; there must be a processor for each.
trains pinned compute.pin=true
loss_of() { grep -o '"loss":[0-9.e-]*' "$dir/$1/summary.json"; }
[ "$(loss_of pinned)" = "$(loss_of auto)" ] || fail "compute.pin changes the model"
expect 3 tnet-train "$dir/run.yaml" run.dir="$dir/none" compute.pin=true train.threads=1000

# OpenBLAS is loaded where it is used: without it, who asks is told, and others do not notice.
library=$(ldconfig -p | sed -n 's/^[^/]*libopenblas\.so\.0 .*=> //p' | head -n 1)
: >"$dir/empty"
without() {
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$dir/empty" "$(readlink -f "$library")" "$@"
}
if [ -z "$library" ] || ! without true 2>"$dir/null"; then
    echo "$name: not tried without OpenBLAS, which takes root" >&2
else
    expect 3 without "$bin/tnet-train" "$dir/run.yaml" run.dir="$dir/none" compute.gemm=openblas
    grep -q "openblas.* cannot be loaded: .*hint: install libopenblas0-pthread" "$dir/err" || fail "$(cat "$dir/err")"
    if [ -s "$dir/own/summary.json" ]; then
        expect 0 without "$bin/tnet-train" "$dir/run.yaml" run.dir="$dir/none"
    fi
fi
