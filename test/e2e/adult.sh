#!/bin/sh
# adult.sh - logistic regression on the census income set reaches what datasets/adult/README.md says: .866 with numbers in
# buckets, .842 with numbers as numbers and ten passes.
. "$(dirname "$0")/kit"
data=data/adult
[ -e "$data" ] || data=../shared/data/adult # data sets beside the checkout
for file in train test; do
    [ -r "$data/$file.csv.gz" ] || skip "no data/adult/$file.csv.gz; datasets/adult/README.md says where it comes from"
done

# accuracy CONFIG LEAST MOST
accuracy() {
    expect 0 tnet-train -q "configs/$1.yaml" run.dir="$dir/$1" checkpoint.every=never log.progress=false \
        data.train="$data/train.csv.gz" data.test="$data/test.csv.gz"
    got=$(awk '$1 == "accuracy" { print $2 }' "$dir/out")
    echo "$name: $1 accuracy $got"
    awk -v got="$got" -v least="$2" -v most="$3" 'BEGIN { exit !(got != "" && got >= least && got <= most) }' ||
        fail "$1: accuracy '$got' is not within $2 .. $3"
}

accuracy adult .86 .875
accuracy adult-numeric .839 .845
