#!/bin/sh
# histories.sh - rows/s of DIN over histories of 50 by those of DeepFM 400-400-400 on the same rows, whose lists it pools.
#
#     bench/histories.sh                "P24  ..  median [least most] of three turns of each; limit; met or missed"
#     bench/histories.sh --json         JSON
#
# Vectors of 16, so that a position has 32 columns; attention of 64 units with dice, an MLP of 200-80. Rows per second of processor
# time, on one thread, with rows in memory: other programs of the machine enter less. TNET_BIN, BENCH_DATA, SECONDS_EACH as for bench/row.
set -eu
bin=${TNET_BIN:-build/release}
data=${BENCH_DATA:-data/bench}
each=${SECONDS_EACH:-1}
limit=.5
mkdir -p "$data"
rows=$data/histories.csv
[ -e "$rows" ] || {
    "$bin/tnet-data" gen -q preset=histories model=attention rows=400k --to "$rows.all" >/dev/null
    # lists of 50 and more, which are cut to 50
    awk -F'[,|]' 'NR == 1 || NF >= 4 + 100' "$rows.all" >"$rows.new"
    rm -f "$rows.all" "$rows.all.yaml" "$rows.all.truth.json"
    mv "$rows.new" "$rows"
}
cat >"$data/histories.yaml" <<END
run: {name: histories, dir: $data/histories.run}
data: {format: csv, train: $rows}
slots:
  - {name: user}
  - {name: item}
  - {name: cate}
  - {name: hist_item, list: "|", share: item}
  - {name: hist_cate, list: "|", share: cate}
sequences:
  clicks: {slots: [hist_item, hist_cate], target: [item, cate], max_len: 50}
embedding: {dim: 16}
train: {batch: 1024, threads: 1}
END

# rate WORDS..: rows per second of processor time
rate() {
    "$bin/bench_train" "$data/histories.yaml" "$each" memory "$@" | sed -n 's/.*"cpu_s_per_mrow":\([0-9.]*\).*/\1/p' |
        awk '{ printf "%.0f\n", 1e6 / $1 }'
}
for turn in 1 2 3; do
    din=$(rate model.type=din 'model.hidden=[200, 80]')
    deepfm=$(rate model.type=deepfm 'model.hidden=[400, 400, 400]')
    echo "$turn $din $deepfm"
done | awk -v limit="$limit" -v json="${1:-}" '
    { ratio[NR] = $2 / $3; din[NR] = $2; deepfm[NR] = $3 }
    function sorted(x, i, k, t) { for (i = 2; i <= NR; i++) for (k = i; k > 1 && x[k - 1] > x[k]; k--) { t = x[k]; x[k] = x[k - 1]; x[k - 1] = t } }
    END {
        sorted(ratio); sorted(din); sorted(deepfm)
        m = int((NR + 1) / 2)
        if (json == "--json") printf "{\"row\":\"P24\",\"what\":\"din by deepfm\",\"median\":%.3f,\"least\":%.3f,\"most\":%.3f,\"limit\":%s,\"din\":%d,\"deepfm\":%d}\n", \
            ratio[m], ratio[1], ratio[NR], limit, din[m], deepfm[m]
        else printf "P24  DIN over histories of 50 by DeepFM 400-400-400, rows/s  %.2f [%.2f %.2f] x; limit %s x; %d by %d; %s\n", \
            ratio[m], ratio[1], ratio[NR], limit, din[m], deepfm[m], (ratio[m] >= limit ? "met" : "missed")
        exit (ratio[m] < limit)
    }'
