#!/bin/sh
# Makes the small files of datasets/samples/: one per format, the same bytes every time.
#
#     datasets/samples.sh [FOLDER]        default: datasets/samples
#
# TNET_BIN is the folder of the programs.
set -e
bin=${TNET_BIN:-build/release}
to=${1:-datasets/samples}
gen() {
    file=$1
    shift
    "$bin/tnet-data" gen -q --to "$to/$file" --config-to "$to/$file.yaml" "$@"
    rm -f "$to/$file.truth.json"
}

mkdir -p "$to"
gen criteo.tsv preset=criteo rows=350 seed=7
gen criteo-valid.tsv preset=criteo rows=150 seed=7 first_row=350
gen clicks.csv --format csv rows=1500 slots=4 ids=40 multi=1 numeric=1 spread=2
gen clicks.libsvm --format libsvm rows=1500 slots=4 ids=40 spread=2
gen clicks.ffm --format libffm rows=1500 slots=4 ids=40 spread=2
gen movies.tsv --format tsv preset=movies rows=600
gen movies.tfrecord --format tfrecord preset=movies rows=600
