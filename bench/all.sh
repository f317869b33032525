#!/bin/sh
# Prints every benchmark beside its limit, one JSON line each. TNET_BIN is the folder of the programs,
# SECONDS_EACH (default 5) how long a net is trained. Nothing is gated: machines differ.
set -e
bin=${TNET_BIN:-build/release}
each=${SECONDS_EACH:-5}
data=data/bench/train.ffm
cores=$(nproc)
say() { printf '\n# %s\n' "$*"; }

say "machine: $cores cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
if [ ! -e "$data" ]; then
    mkdir -p data/bench
    "$bin/tnet-data" gen preset=plain slots=39 ids=25000 rows=200000 --to "$data" >/dev/null
fi
config=data/bench/speed.yaml
cat >"$config" <<END
data: {format: libffm, train: $data, shuffle: 0}
slots: [$(seq 0 38 | sed 's/.*/{name: s&, field: &}/' | paste -sd ,)]
model: {type: widedeep, hidden: [400, 400, 400]}
train:
  optimizer: {type: adam, lr: 1e-3}
  sparse: {type: adagrad, rowwise: true, lr: 0.05}
END

train() { # threads model dim hidden batch mode
    "$bin/bench_train" "$config" "$each" "$6" train.threads="$1" model.type="$2" \
        embedding.dim="$3" model.hidden="$4" train.batch="$5"
}
big='[400, 400, 400]'
small='[128, 64, 32]'
say "P3: one core, big and small net (data in memory, then from the file)"
for mode in memory file; do
    train 1 widedeep 8 "$big" 1024 $mode
    train 1 widedeep 8 "$small" 1024 $mode
done
say "P1: big nets, all cores"
for model in widedeep deepfm dcn dcnv2; do
    train "$cores" $model 8 "$big" 1024 memory
done
train "$cores" widedeep 16 "$big" 1024 memory
train "$cores" widedeep 8 "$big" 4096 memory
say "P2: small nets, all cores"
for model in widedeep deepfm dcn dcnv2; do
    train "$cores" $model 8 "$small" 1024 memory
done
say "P8: the table"
"$bin/bench_table"
say "P10: reading"
"$bin/bench_parse"
say "P12: metrics"
"$bin/bench_metrics"
say "P15: start"
"$bin/bench_start" "$bin/tnet-train" "$config" run.dir=data/bench/run
for p in tnet-train tnet-eval tnet-export tnet-score tnet-data; do
    cp "$bin/$p" data/bench/stripped && strip data/bench/stripped
    printf '{"bench":"P15","program":"%s","stripped_bytes":%s,"limit":5000000}\n' "$p" \
        "$(stat -c %s data/bench/stripped)"
done
