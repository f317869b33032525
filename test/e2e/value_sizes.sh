#!/bin/sh
# value_sizes.sh - values (x_j) of many sizes learn what the same values divided by their sizes learn, to the bit where
# sizes are powers of two, and first values 0 or sizes at most 1; of libsvm, libffm and vw, alone and in a group, and in a
# run that goes on.
. "$(dirname "$0")/kit"

# rows FORMAT SEED SIZE..: 3000 rows of three columns of these sizes, each a number from .8 to 1.2 times its size, and a
# category of value 1.
rows() {
    awk -v format="$1" -v seed="$2" -v s1="$3" -v s2="$4" -v s3="$5" 'BEGIN {
        srand(seed); split(s1 " " s2 " " s3, size, " ")
        for (i = 0; i < 3000; i++) {
            c = int(rand() * 8); z = (c % 3 - 1) * 1.5; line = ""
            for (k = 1; k <= 3; k++) {
                x = int(820 + rand() * 384) / 1024; z += (x - 1) * 4 * (k - 2.5)
                if (format == "libsvm") line = line sprintf(" %d:%.17g", k, x * size[k])
                if (format == "libffm") line = line sprintf(" %d:%d:%.17g", k, k, x * size[k])
                if (format == "vw") line = line sprintf(" n%d:%.17g", k, x * size[k])
            }
            y = rand() < 1 / (1 + exp(-z))
            if (format == "libsvm") print y line " " 10 + c ":1"
            if (format == "libffm") print y line " 4:" 10 + c ":1"
            if (format == "vw") print 2 * y - 1 " |f" line " c" c
        }
    }'
}
# learned FORMAT FILE [OPTION..]: its scores of the test rows.
learned() {
    format=$1 file=$2
    shift 2
    expect 0 tnet-train -q "$dir/c.yaml" data.format="$format" data.train="$dir/$file" data.test="$dir/$file" \
        run.dir="$dir/r-$file" "$@"
    expect 0 tnet-eval -q "$dir/r-$file" data.test="$dir/$file" --predictions "$dir/out"
    cut -f 2- "$dir/out" >"$dir/scores-$file" # without places in the file
}
cat >"$dir/c.yaml" <<END
model: {type: fm}
train: {batch: 100, epochs: 2, threads: 1}
data: {shuffle: 0}
log: {progress: false, tensorboard: false}
END
for format in libsvm libffm vw; do
    rows "$format" 7 1 1 1 >"$dir/same"
    for model in lr fm deepfm; do
        large=512
        [ "$model" = lr ] || large=0.001953125
        rows "$format" 7 $large 1 0.0009765625 >"$dir/many"
        rm -rf "$dir"/r-*
        learned "$format" same model=$model
        learned "$format" many model=$model
        cmp "$dir/scores-same" "$dir/scores-many" || fail "$format, $model: values of three sizes have other scores"
        grep -q 'value_sizes:' "$dir"/r-many/ckpt-*/config.yaml || fail "$format: no sizes are chosen"
    done
done
echo "$name: the bits of values of one size"

rm -rf "$dir"/r-*
learned vw same
learned vw many train.epochs=1
learned vw many train.epochs=2 --resume
cmp "$dir/scores-same" "$dir/scores-many" || fail "a run that went on has other scores"
echo "$name: a run that goes on"

rows vw 8 1 1 1 >"$dir/same2"
rows vw 8 0.001953125 1 0.0009765625 >"$dir/many2"
rm -rf "$dir"/r-*
gzip -k "$dir/same" "$dir/many" "$dir/same2" "$dir/many2"
for set in same many; do # shares of compressed files are whole files, however long their lines are
    learned vw $set.gz --peers 2 data.train="[$dir/$set.gz,$dir/${set}2.gz]"
done
cmp "$dir/scores-same.gz" "$dir/scores-many.gz" || fail "two peers have other scores"
echo "$name: two peers"

# first values are those of a size of 16 at most, and of 1 at least
for row in '4 0.01' '16 0.01' '512 0.0003125' '0.5 0.02'; do
    rm -rf "$dir/r" "$dir/export"
    expect 0 tnet-train -q "$dir/c.yaml" data.format=vw data.train="$dir/many" run.dir="$dir/r" embedding.missing=init \
        train.value_sizes="{f: ${row% *}}" train.max_steps=1
    expect 0 tnet-export -q "$dir/r" --to "$dir/export"
    grep -q "\"a\":-${row#* }," "$dir"/export/*/model.json || fail "size ${row% *}: $(sed 's/.*"init"//' "$dir"/export/*/model.json)"
done
rm -rf "$dir/r"
echo "$name: first values"

# refused WORDS OPTION..
refused() {
    words=$1
    shift
    expect 3 tnet-train -q "$dir/c.yaml" data.format=vw data.train="$dir/many" run.dir="$dir/r" "$@"
    grep -qF "$words" "$dir/err" || fail "no '$words' in: $(cat "$dir/err")"
}
refused "there is no slot 'x' that makes keys" 'train.value_sizes={x: 3}'
refused "a size of values is a number from 1e-15 to 1e15, not '0'" 'train.value_sizes={f: 0}'
refused "'three' is neither an index of slot 'f' nor others" 'train.value_sizes={f: {three: 3}}'
refused "train.value_sizes needs 'type: adagrad' with 'l2_mode: touched' in train.sparse" \
    'train.value_sizes={f: 3}' train.sparse=ftrl
refused "'value_sizes' is a map {SLOT: SIZE, ..}" 'train.value_sizes=3'
echo "$name: what is refused"
