#!/bin/sh
# infer.sh - tnet-data infer writes a configuration that trains as it is, for every format; check and stat need none.
. "$(dirname "$0")/kit"
cd "$dir"

# has TEXT: the last configuration has this line.
has() {
    grep -qF -- "$1" "$dir/i.yaml" || fail "no '$1' in: $(cat "$dir/i.yaml")"
}

# learns WORDS..: what infer writes for them is the same twice, and tnet-train takes it.
learns() {
    rm -f i.yaml
    expect 0 tnet-data infer "$@" --to i.yaml
    expect 0 tnet-data infer "$@" --threads 1
    cmp -s out i.yaml || fail "infer $*: not the same twice"
    expect 0 tnet-train -q i.yaml run.dir="run.$made" checkpoint.every=never log.progress=false train.epochs=1
    made=$((made + 1))
}
made=0

for format in csv tsv tfrecord libffm libsvm; do
    expect 0 tnet-data gen --to "a.$format" --format "$format" rows=2000 slots=3 ids=300 multi=1 numeric=1
done
expect 0 tnet-data convert a.csv.yaml to.format=jsonl --to a.jsonl

# By their first bytes alone, whatever they are called.
for format in csv tfrecord libffm libsvm jsonl; do
    cp "a.$format" data
    learns data
    has "format: $format"
done
learns a.csv
has 'run: {name: a}  # training leaves all in this folder of runs'
has 'label: label'
has '{name: s0, type: id}'
has '{name: s2, type: id, list: "|"}'
has '{name: x0, type: float}'
learns a.tfrecord
has '{name: s2, type: id}'
has '{name: x0, type: float}'

# Without a header columns are numbered, and nothing is called label.
expect 4 tnet-data infer a.tsv
says "no column of two values is called label"
grep -qF "'label=NAME' names it" err || fail "no hint"
grep -qF "of two values: 'c1'" err || fail "no candidates"
learns a.tsv label=c1
has 'columns: [c1, c2, c3, c4, c5]'
printf '0\t5\t5\n1\t5\t6\n1\t6\t5\n' >same.tsv # equal fields are columns each
learns same.tsv label=c1
has 'columns: [c1, c2, c3]'
gzip -c a.csv >a.csv.gz
learns a.csv.gz

# Words, blanks, quotes, gaps, ids of rows, and what says nothing.
awk 'BEGIN {
    print "age, workclass, hash, \"hours, per week\", price, row, same, user_id, empty, income"
    for (i = 0; i < 3000; i++)
        printf "%d, %s, %08x, %s, %.2f, r%d, x, %d, , %s\n", 20 + i % 40, i % 7 ? "Private" : "",
            4000000000 - i % 50 * 7919, i % 3 ? "\"40, or so\"" : "20", i % 1009 / 7 + .5, i, i % 2000, i % 4 ? "<=50K" : ">50K"
}' >adult.csv
expect 4 tnet-data infer adult.csv
grep -qF "'income'" err || fail "income is no candidate"
learns adult.csv label=income
has 'trim: true'
has 'label: {column: income, values: {">50K": 1, "<=50K": 0}}'
has 'record_id: row'
has "# left out: 'row' has another value in every row"
has "# left out: 'same' has one value in all rows"
has "# left out: 'empty' has no values"
has '{name: age, type: id}'
has '{name: workclass, type: str}  # 1 different, 85.7% filled'
has '{name: hash, type: hex}'
has '{name: c4_hours__per_week, column: "hours, per week", type: str}'
has '{name: price, type: float}'
has '{name: user_id, type: id}'
! grep -qF 'name: income' i.yaml || fail "the label is a slot"

# One that looks like a label is not enough where there are two; neither is a name without two values.
printf 'y,Click,u\n0,1,3\n1,0,4\n1,1,5\n' >two.csv
expect 4 tnet-data infer two.csv
says "more than one column may be the label"
grep -qF "'y', 'Click'" err || fail "no candidates"
printf 'y,Click,u\n0,1,3\n1,2,4\n1,3,5\n' >one.csv
learns one.csv
has 'label: y'

# What cannot be told is asked for; what is read is not written over.
echo hello >t
expect 4 tnet-data infer t
says "the format of 't' cannot be told by its first bytes"
cp a.csv own.csv
expect 2 tnet-data infer own.csv --to own.csv
cmp -s a.csv own.csv || fail "the data was written over"
expect 2 tnet-data infer a.csv 'slots=[{name: s0}]'
expect 4 tnet-data infer -

# check and stat without slots, and without a configuration.
expect 0 tnet-data stat --from adult.csv
grep -qF "no slots are listed: all 10 columns of 'adult.csv' (csv) are read, without a label" err || fail "not said"
grep -qF 'workclass (str): 85.70% filled, 1 different' out || fail "no workclass in: $(cat out)"
expect 0 tnet-data check --from a.tfrecord
printf 'data: {format: csv, train: a.csv, label: label}\n' >c.yaml
expect 0 tnet-data stat c.yaml
grep -q '^clicks [1-9]' out || fail "the label that is named is not read"
echo 1,2 >>own.csv
expect 4 tnet-data check --from own.csv
grep -qF 'own.csv:2002:4: error: too few fields' out || fail "the fault is not shown: $(cat out)"

# clicks FORMAT WORDS..: 600 rows of awk's printf, with the row i, y of two values and a backslash b.
clicks() {
    awk -v format="$1" "BEGIN { b = sprintf(\"%c\", 92); for (i = 0; i < 600; i++) { y = i % 3 == 0; printf(format \"\n\", $2) } }"
}

# What dataframes, Hive and R write: ids as floats, words for missing values, an index without a name.
{ echo click,user,item_id,price,n; clicks '%d,%s,%d.0,%s,%s' \
    'y, i % 9 ? i % 1500 ".0" : "", i * 7919 % 500, i % 11 ? i + .5 : i % 2 ? "NA" : b "N", i % 7 ? i % 5 : "NaN"'; } >frame.csv
learns frame.csv
has '{name: user, type: id}'
has '{name: item_id, type: id}'
has '{name: price, type: float}  # 545 different, 90.8% filled'
has '{name: n, type: id}  # 5 different, 85.7% filled'
has 'null: ["", NA, \N]'
{ echo ,click,site; clicks '%d,%d,s%d' 'i, y, i % 7'; } >index.csv
learns index.csv
has 'left out: column 1 has no name'
has '{name: site, type: str}'
{ echo user,2019,2020,click; clicks '%d,%f,%f,%d' 'i % 50, i / 7, i / 9, y'; } >years.csv
learns years.csv
has '{name: 2019, type: float}'
{ echo click,a,a,b; clicks '%d,%d,%d,%d' 'y, i, i, i % 4'; } >twice.csv
learns twice.csv
has "left out: column 2 'a' stands twice in the header"
expect 4 tnet-data infer twice.csv label=a
says "column 'a', which 'label' names, stands twice in the header"
{ echo 0,1,2; clicks '%d,%d,%d' 'y, i % 9, i % 5'; } >counted.csv
learns counted.csv label=0
has 'name: 2, type: id'

{ echo click,age,n; clicks '%d,"%s","%d"' 'y, i % 9 ? i % 40 : "NA", i % 5'; } >quoted.csv # in quotes it is a word
learns quoted.csv
has '{name: age, type: str}'
has '{name: n, type: id}'
{ echo first,click; clicks '%d,%d' 'i % 50, y'; } | sed 's/^first/7/' >number.csv # a word above numbers that is called so
learns number.csv
has 'header: true'

# Labels: any two values, many numbers, and what is none.
{ echo user,clicked; clicks '%d,%s' 'i % 50, y ? "no" : "yes"'; } >yes.csv
learns yes.csv
has 'label: {column: clicked, values: {yes: 1, no: 0}}  # yes is 1'
for format in libsvm libffm; do
    clicks "%d $([ $format = libffm ] && echo 0:)%d:1 $([ $format = libffm ] && echo 1:)%d:1" '1 + y, i % 50 + 1, 60 + i % 7' >two
    learns two
    has "format: $format"
    has 'label: {values: {2: 1, 1: 0}}'
done
clicks '%d |u u%d |s s%d' '2 * y - 1, i % 50, i % 7' >vw
learns vw
has 'format: vw'
{ echo user,rating; clicks '%d,%d' 'i % 50, 1 + i % 5'; } >rating.csv
learns rating.csv label=rating
has 'label: {column: rating, threshold: 3}'
learns rating.csv label=rating loss=mse
has 'label: rating'
has 'loss: mse'
expect 4 tnet-data infer rating.csv label=target
says "there is no column 'target', which 'label' names"
grep -qF 'the columns are user, rating' err || fail "no columns: $(cat err)"
{ echo user,label; clicks '%d,%s' 'i % 50, i % 3 ? i % 3 > 1 ? "a" : "b" : "c"'; } >three.csv
expect 4 tnet-data infer three.csv
says "has more than two values, and not all are numbers"
{ echo user,click; clicks '%d,0' 'i % 50'; } >none.csv
expect 4 tnet-data infer none.csv
says "all labels of the first 600 rows ('click') are 0"
expect 0 tnet-data infer none.csv label=click

# What separates fields is seen; so are a mark of UTF-8 and CRLF.
for mark in ';' '|' '\t'; do
    { echo click,u,x; clicks '%d,%d,%f' 'y, i % 50, i / 7'; } | tr , "$mark" >marks
    learns marks
    has '{name: x, type: float}'
done
{ printf '\357\273\277click,u\r\n'; clicks '%d,%d\r' 'y, i % 50'; } >bom.csv
learns bom.csv
has 'label: click'
expect 0 tnet-data stat --from bom.csv
grep -qF 'u (str): 100.00% filled, 50 different' out || fail "stat does not see the columns: $(cat out)"

# Columns that a format knows are its own; a column more, and they are any others.
expect 0 tnet-data gen --to k.tsv preset=criteo rows=2000
learns k.tsv
has 'format: criteo'
tr '\t' ',' <k.tsv >nk.csv
learns nk.csv
has 'delimiter: ","'
{ awk 'BEGIN { printf "Id,Label"; for (i = 1; i < 14; i++) printf ",I%d", i; for (i = 1; i < 27; i++) printf ",C%d", i; print "" }'
    awk '{ print NR + 100000 "," $0 }' nk.csv; } >kaggle.csv
learns kaggle.csv
has 'label: Label'
has 'record_id: Id'
{ echo id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21
    clicks '%d,%d,1410%d%02d,1005,0,%08x,%08x,%08x,%08x,%08x,%08x,%08x,%08x,%08x,1,0,%d,320,50,%d,0,35,-1,79' \
        'i * 7919 + 1, y, 21 + i % 9, i % 24, i % 9, 7, 7, 7, 7, 7, 7, i, i % 5, 15000 + i, 1700 + i % 9'; } >avazu.csv
learns avazu.csv
has 'format: avazu'
! grep -q '^slots' i.yaml || fail "slots beside those of avazu"
sed 's/hour/date/' avazu.csv >dates.csv
learns dates.csv
has '{name: date, type: int, transform: hour}'
has '{name: date_weekday, column: date, type: int, transform: weekday}'

# Times that do not come again are no slots; ids that were rounded are words, and it is said.
{ echo click,u,ts,at,day,big; clicks '%d,%d,%d,2026-11-%02d 10:00:00,%02d.11.2026,9.%02de+17' \
    'y, i % 50, 1700000000 + i * 61, 1 + i % 30, 1 + i % 30, i % 70'; } >times.csv
learns times.csv
has "left out: 'ts' holds unix seconds"
has "left out: 'at' holds dates"
for column in ts at; do
    has "#   {name: $column, type: int, transform: hour}, or weekday, makes keys that come again"
    sed "s/^slots:/&\n  - {name: $column, type: int, transform: hour}/" i.yaml >slot.yaml
    expect 0 tnet-data check slot.yaml
done
has "left out: 'day' holds dates"
has 'as unix seconds, or as 2026-11-29T23:15:07, it would have an hour'
[ "$(grep -c 'transform: hour' i.yaml)" = 2 ] || fail "a hint that no reader follows"
has '{name: big, type: str}'
has 'has lost digits'

# Whole numbers that come again and again are names, however many they are.
awk 'BEGIN { print "click,c,x"; for (i = 0; i < 40000; i++) printf "%d,%d,%d\n", i % 3 == 0, 15000 + i % 1812, i % 4000 }' >ids.csv
expect 0 tnet-data infer ids.csv --to i.yaml --force
has '{name: c, type: id}'
has '{name: x, type: float}'

# Nothing is printed that check would refuse, and the true cause is said.
{ echo click,u; clicks '%s,%d' 'i == 400 ? "" : y, i % 50'; } >gap.csv
expect 4 tnet-data infer gap.csv
says "gap.csv:402:1: error: the label is missing"
[ ! -s out ] || fail "a configuration that cannot be read: $(cat out)"
expect 0 tnet-data infer gap.csv bad_records_max=1%
{ echo click,u; clicks '%s,%d' 'i % 20 ? y : "", i % 50'; } >gaps.csv
expect 4 tnet-data infer gaps.csv bad_records_max=1%
says "30 of 600"
: >empty
expect 4 tnet-data infer empty
says "'empty' is empty"
echo click,u >head.csv
expect 4 tnet-data infer head.csv
says "'head.csv' has no rows behind its header"
printf '\377\376c\000,\000' >wide16
expect 4 tnet-data infer wide16
says "looks like UTF-16"
printf 'PK\003\004' >zip
expect 4 tnet-data infer zip
says "'zip' is a zip archive"
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "c%d,", i; print "c" }' >wide.csv
expect 4 tnet-data infer wide.csv
says "the first line of 'wide.csv' is longer than 1048576 bytes"
printf 'a\n1\n2\n' >lone.csv
expect 4 tnet-data infer lone.csv format=csv
says "the lines of 'lone.csv' are one column"

# A file that is there stays.
echo mine >kept.yaml
expect 2 tnet-data infer a.csv --to kept.yaml
says "'kept.yaml' is there already"
[ "$(cat kept.yaml)" = mine ] || fail "a configuration was replaced"
expect 0 tnet-data infer a.csv --to kept.yaml --force
grep -q '^data:' kept.yaml || fail "--force did not replace"
