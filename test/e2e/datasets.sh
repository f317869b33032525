#!/bin/sh
# datasets.sh - the make.sh of every public set: on small files of the form of its download it splits all rows without
# losing one, twice the same bytes, and its configuration trains and reaches the test rows. What is not the published
# file is refused, nothing is written over a file, and a download that is cut leaves nothing.
. "$(dirname "$0")/kit"
root=$(pwd)
rows=600
export CHECKSUMS=off

begin() {
    set_name=$1
    mkdir -p "$dir/$1"
    cd "$dir/$1" || exit 1
}
# made FILE..: make.sh makes its files of these, and the same bytes again; its configuration trains on them.
made() {
    make=$root/datasets/$set_name/make.sh
    expect 0 "$make" "$@"
    mv data first
    expect 0 "$make" "$@"
    diff -r first data >"$dir/out" || fail "$set_name: other bytes the second time"
    rm -r first
    expect 1 "$make" "$@"
    grep -q "is there already, and nothing is written over it" "$dir/err" || fail "$set_name: $(cat "$dir/err")"
    [ "$(find data -name '.*' | wc -l)" -eq 0 ] || fail "$set_name: leaves $(find data -name '.*')"
    config=$root/datasets/$set_name/config.yaml
    [ ! -e "$config" ] || trained "$config"
}
# trained CONFIG: with figures of its test rows.
trained() {
    expect 0 tnet-train -q "$1" train.epochs=1 train.batch=64 embedding.dim=4 embedding.admission.threshold=0 \
        embedding.admission.filter=exact embedding.memory=256MB run.dir=run
    grep -q '"test":{' run/summary.json || fail "$set_name: no figures of its test rows"
    rm -r run
}
# holds COUNT FILE..: so many rows, and none of the files is empty.
holds() {
    want=$1
    shift
    for file in "$@"; do
        [ -s "$file" ] || fail "$file is empty"
    done
    have=$(gzip -cdf "$@" | wc -l)
    [ "$have" -eq "$want" ] || fail "$* hold $have rows, not $want"
}

begin adult
awk -v n=$rows 'BEGIN { for (i = 0; i < n; i++) printf "%d, Private, 77516, HS-grad, 9, Divorced, Sales, Wife, Black, Female, 0, 0, 40, Cuba, %s50K\n", 17 + i % 50, i % 3 ? "<=" : ">"; print "" }' >adult.data
{
    echo '|1x3 Cross validator'
    sed 's/50K$/50K./' adult.data
} >adult.test
made adult.data adult.test
holds $((2 * rows + 2)) data/adult/train.csv.gz data/adult/test.csv.gz
trained "$root/configs/adult.yaml"

begin frappe
awk -v n=$rows 'BEGIN {
    printf "label,user,item,daytime,weekday,isweekend,homework,cost,weather,country,city\r\n"
    for (i = 0; i < n; i++) printf "%d,%d,%d,5041,5046,5053,5055,5058,5060,5073,5183\r\n", i % 3 == 0, i % 9, 1000 + i % 50 }' >train.csv
cp train.csv valid.csv
cp train.csv test.csv
made train.csv valid.csv test.csv
holds $((3 * rows + 3)) data/frappe/train.csv.gz data/frappe/valid.csv.gz data/frappe/test.csv.gz
trained "$root/configs/frappe/deepfm.yaml"

begin criteo
expect 0 tnet-data gen -q preset=criteo rows=$rows --to train.txt
made train.txt
cat data/criteo/train.tsv data/criteo/valid.tsv data/criteo/test.tsv | cmp - train.txt || fail "criteo: not in the order of time"
holds $((rows / 10)) data/criteo/test.tsv

begin movielens
awk -v n=$rows 'BEGIN { for (i = 0; i < n; i++) printf "%d::%d::%d::978300760\n", i % 20, i % 37, 1 + i % 5 }' >ratings.dat
made ratings.dat
holds $rows data/movielens/train.tsv data/movielens/valid.tsv data/movielens/test.tsv
sed 's/::/\t/g' ratings.dat | sort >sorted
sort data/movielens/*.tsv | cmp - sorted || fail "movielens: other ratings than before"

begin avazu
{
    echo "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21"
    awk -v n=$rows 'BEGIN { for (i = 0; i < n; i++) printf "%d,%d,141021%02d,1005,0,1fbe01f%d,f3845767,28905ebd,ecad2386,7801e8d9,07d7df22,a99f214a,ddd2926e,44956a24,1,2,15706,320,50,1722,0,35,-1,79\n", i + 1000, i % 3 == 0, i % 24, i % 7 }'
} | gzip >train.gz
made train.gz
holds $((rows + 3)) data/avazu/train.csv data/avazu/valid.csv data/avazu/test.csv
awk -v n="$(wc -l <data/avazu/train.csv)" -v rows=$rows 'BEGIN { exit !(n > .75 * rows && n < .85 * rows) }' || fail "avazu: train.csv has not 8 tenths"
rm -r data
head -c 2000 train.gz >cut.gz
expect 1 "$root/datasets/avazu/make.sh" cut.gz
[ -z "$(ls -A data/avazu)" ] || fail "avazu: a download that is cut leaves $(ls -A data/avazu)"

begin kdd12
awk 'BEGIN { OFS = "\t"; for (i = 0; i < 50; i++) print i, i % 3, i % 6 + 1 }' >userid_profile.txt
awk -v n=$rows 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++) print i % 3, 2, "4298118681424644510", i % 9, i % 5, 1, 1, i, i % 8, i % 7, i % 6, i % 60 }' >training.txt
made training.txt userid_profile.txt
# clicks of 2 impressions: 0 and 2 make one row, 1 makes two
holds $((rows * 4 / 3)) data/kdd12/train.tsv data/kdd12/valid.tsv data/kdd12/test.tsv
[ "$(cat data/kdd12/*.tsv | awk '{ s += $2 } END { print s }')" -eq $((rows * 2)) ] || fail "kdd12: impressions are lost"
cat data/kdd12/*.tsv | awk -F '\t' 'NF != 14 { exit 1 }' || fail "kdd12: rows have not 14 columns"

begin ipinyou
head='click\tweekday\thour\tbidid\ttimestamp\tlogtype\tipinyouid\tuseragent\tIP\tregion\tcity\tadexchange\tdomain\turl\turlid\tslotid\tslotwidth\tslotheight\tslotvisibility\tslotformat\tslotprice\tcreative\tbidprice\tpayprice\tkeypage\tadvertiser\tusertag'
for part in train test; do
    # shellcheck disable=SC2059
    {
        printf "$head\n"
        awk -v n=$rows 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++) print i % 4 == 0, i % 7, "0" i % 10, "b" i, "20130606000104008", 1, "u", "windows_ie", "1.2." i % 9 ".*", 276, 282, 2, "d" i % 5, "url", "null", "s" i % 6, 300, 250, 2, 1, i % 130, "c", 277, 86, "null", 3358, i % 2 ? "10006,10110" : "" }'
    } >$part.log.txt
done
made train.log.txt test.log.txt
holds $((rows + 2)) data/ipinyou/train.tsv data/ipinyou/valid.tsv
cmp data/ipinyou/test.tsv test.log.txt

begin aliccp
for part in train test; do
    awk 'BEGIN { for (i = 0; i < 20; i++) printf "c%d,3,101\002%d\0031.0\001109_14\00277\0032.5\001109_14\00278\0031.5\n", i, i }' >common_$part.csv
    awk -v n=$rows 'BEGIN { for (i = 0; i < n; i++) printf "%d,%d,%d,c%d,2,205\002%d\0031.0\001508\0029\0030.5\n", i, i % 4 == 0, i % 5 == 0, i % 20, i % 50 }' >skeleton_$part.csv
done
made skeleton_train.csv common_train.csv skeleton_test.csv common_test.csv
holds $((rows * 17 / 20)) data/aliccp/train.vw data/aliccp/valid.vw # bought but not clicked: 3 of 20
holds $((rows * 17 / 20)) data/aliccp/test.vw
[ "$(head -n 1 data/aliccp/test.vw)" = "1 '0 |205 0:1.0 |508 9:0.5 |101 0:1.0 |109_14 77:2.5 78:1.5" ] || fail "aliccp: $(head -n 1 data/aliccp/test.vw)"

begin criteo1tb
mkdir days
for day in 0 10 22 23; do
    expect 0 tnet-data gen -q preset=criteo rows=$rows seed=$((day + 1)) --to days/day_$day.gz --compression gzip
done
made days
holds $rows data/criteo1tb/test.tsv.gz data/criteo1tb/valid.tsv.gz
gzip -dc data/criteo1tb/test.tsv.gz data/criteo1tb/valid.tsv.gz >both
gzip -dc days/day_23.gz | cmp - both || fail "criteo1tb: the halves are not the last day"
[ "$(find -L data/criteo1tb -name 'day_*.gz' | wc -l)" -eq 3 ] || fail "criteo1tb: not three days to train on"

# A wrong count of files, one that is not there, one that is not the published one.
rm -r data
expect 2 "$root/datasets/adult/make.sh"
grep -q "^usage: .*make.sh adult.data adult.test" "$dir/err" || fail "$(cat "$dir/err")"
expect 1 "$root/datasets/adult/make.sh" absent absent
grep -q "cannot read 'absent'" "$dir/err" || fail "$(cat "$dir/err")"
cd "$dir/adult"
rm -r data
expect 1 env CHECKSUMS=on "$root/datasets/adult/make.sh" adult.data adult.test
grep -q "'adult.data' is not the published file: its sha256sum is" "$dir/err" || fail "$(cat "$dir/err")"
[ ! -e data ] || fail "adult: files of something else"
echo "datasets: nine sets made their files"
