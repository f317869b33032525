#!/bin/sh
# formats.sh - the same rows in every format that can say them, plain and compressed, on one reader
# thread and on three, train to the same bits and are judged alike.
. "$(dirname "$0")/kit"
expect 0 tnet-data gen -q preset=plain slots=5 ids=100 rows=6000 multi=2 numeric=1 missing=0.1 \
    --to "$dir/rows.csv" --format csv

# train NAME: what $dir/NAME.yaml reads.
train() {
    run=$1
    yaml=$dir/$1.yaml
    shift
    expect 0 tnet-train -q "$yaml" run.dir="$dir/run-$run" model='{type: deepfm, hidden: [8]}' \
        embedding.dim=4 train='{epochs: 2, batch: 100, threads: 2}' data.shuffle=1000 "$@"
}

# add NAME WORDS..: converts the rows, trains on them, compares with the first format.
add() {
    to=$1
    shift
    expect 0 tnet-data convert -q "$dir/rows.csv.yaml" --to "$dir/$to" --config-to "$dir/$to.yaml" "$@"
    train "$to"
    same_model "$dir/run-csv" "$dir/run-$to"
    echo "formats: $to $(wc -c <"$dir/$to") bytes"
}

cp "$dir/rows.csv.yaml" "$dir/csv.yaml"
train csv data.readers=1
for format in tsv libffm libfm tfrecord vw jsonl csv; do
    add "to.$format" to.format="$format"
    add "to.$format.gz" to.format="$format" to.compression=gzip
done
add rows.zz to.format=tfrecord to.compression=zlib
add rows.tsv.zst to.format=tsv
zstd -dqc "$dir/rows.tsv.zst" | cmp - "$dir/to.tsv" || fail "rows.tsv.zst holds other bytes than to.tsv"
for ending in zst lz4; do # written by others, in two frames
    program=zstd
    [ $ending = zst ] || program=lz4
    { head -c 100000 "$dir/to.tsv" | $program -qc && tail -c +100001 "$dir/to.tsv" | $program -qc; } >"$dir/by.tsv.$ending"
    sed "s/to\\.tsv/by.tsv.$ending/" "$dir/to.tsv.yaml" >"$dir/by.tsv.$ending.yaml"
    train "by.tsv.$ending"
    same_model "$dir/run-csv" "$dir/run-by.tsv.$ending"
done
expect 3 tnet-data convert -q "$dir/rows.csv.yaml" to.format=tsv --to "$dir/to.tsv.lz4"
says "lz4 and snappy are read, but not written"
add semicolon.csv to.format=csv "to.delimiter=';'"
[ "$(head -c 2 "$dir/to.tsv.gz" | od -An -tx1 | tr -d ' ')" = 1f8b ] || fail "to.tsv.gz is not gzip"

# back again: the text of the first file, and what readers make of it on other threads
expect 0 tnet-data convert -q "$dir/rows.zz.yaml" to.format=csv --to "$dir/back.csv"
cmp "$dir/rows.csv" "$dir/back.csv" || fail "a round trip changed the rows"
mv "$dir/run-csv" "$dir/run-one"
train csv data.readers=3
same_model "$dir/run-one" "$dir/run-csv"

# two pieces are the whole, in their order
head -n 2501 "$dir/rows.csv" >"$dir/part-0.csv"
{ head -n 1 "$dir/rows.csv" && tail -n +2502 "$dir/rows.csv"; } >"$dir/part-1.csv"
mv "$dir/run-csv" "$dir/run-two"
train csv data.shuffle=0 model.bias_init=-1 # else a prior of what is read first
mv "$dir/run-csv" "$dir/run-as-read"
train csv data.shuffle=0 model.bias_init=-1 data.train="$dir/part-*.csv"
same_model "$dir/run-as-read" "$dir/run-csv"

# one model judges all of them alike
judge() {
    expect 0 tnet-eval "$dir/$1.yaml" --checkpoint "$dir/run-csv" --data "$dir/$1" --json \
        model='{type: deepfm, hidden: [8]}' embedding.dim=4
    sed -E 's/.*"rows":([0-9]+),"loss":([^,]*),.*"auc":([^,]*),.*/\1 \2 \3/' "$dir/out"
}
want=$(judge rows.csv)
for format in to.tsv to.libffm to.libffm.gz to.tfrecord to.vw to.jsonl rows.zz semicolon.csv; do
    have=$(judge $format)
    [ "$want" = "$have" ] || fail "$format is judged '$have', csv '$want'"
done

# the preset of the Avazu set, with nothing said of its columns; back again it is the same file
{
    echo "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21"
    awk 'BEGIN { for (i = 0; i < 500; i++) printf "%d%019d,%d,141021%02d,1005,0,1fbe01f%d,f3845767,28905ebd,ecad2386,7801e8d9,07d7df22,a99f214a,ddd2926e,44956a24,1,2,15706,320,50,1722,0,35,-1,79\n", 1, i, i % 3 == 0, i % 24, i % 7 }'
} >"$dir/avazu.csv"
echo "{data: {format: avazu, train: $dir/avazu.csv}, model: lr, run: {dir: $dir/run-avazu}}" >"$dir/avazu.yaml"
expect 0 tnet-train -q "$dir/avazu.yaml"
expect 0 tnet-data convert -q --from "$dir/avazu.csv" format=avazu to.format=avazu --to "$dir/avazu.back"
cmp "$dir/avazu.csv" "$dir/avazu.back" || fail "rows of the Avazu set changed"
cut -d , -f 1,3- "$dir/avazu.csv" >"$dir/test.csv"
expect 0 tnet-data check --from "$dir/test.csv" format=avazu label=none
expect 4 tnet-data check --from "$dir/test.csv" format=avazu
says "there is no column 'click'"
