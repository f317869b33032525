#!/bin/sh
# datasets.sh - the pages of datasets/ that make files from a download: on small files of that form their
# commands run, split all rows without losing one, and their configurations train and reach the test rows.
. "$(dirname "$0")/kit"
root=$(pwd)
rows=600

# page NAME YAML: what its reader does, in a folder of its own where the download lies.
page() {
    name=$1
    awk '
        /^    / { block = block substr($0, 5) "\n"; next }
        /^<!-- not run: / { skip = 1; next }
        /^$/ { if (block != "") block = block "\n"; next }
        { if (!skip) printf "%s", block; if (block != "") skip = 0; block = "" }
        END { if (!skip) printf "%s", block }' "$root/datasets/$name.md" >commands
    awk '/^```yaml$/ { on = 1; next } /^```/ { on = 0 } on' "$root/datasets/$name.md" >page.yaml
    grep -q . commands || fail "datasets/$name.md has no commands"
    sh -eu commands >out 2>err || fail "datasets/$name.md: $(tail -n 2 err)"
    expect 0 tnet-train -q page.yaml train.epochs=1 train.batch=64 embedding.dim=4 embedding.admission.threshold=0 \
        embedding.admission.filter=exact embedding.memory=256MB run.dir=run
    grep -q '"test":{' run/summary.json || fail "datasets/$name.md: no figures of its test rows"
}
# holds COUNT FILE..: so many rows, and none of the files is empty.
holds() {
    want=$1
    shift
    for file in "$@"; do
        [ -s "$file" ] || fail "$file is empty"
    done
    have=$(cat "$@" | wc -l)
    [ "$have" -eq "$want" ] || fail "$* hold $have rows, not $want"
}
begin() {
    mkdir -p "$dir/$1"
    cd "$dir/$1" || exit 1
}

begin avazu
{
    echo "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,app_category,device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,C18,C19,C20,C21"
    awk -v n=$rows 'BEGIN { for (i = 0; i < n; i++) printf "%d,%d,141021%02d,1005,0,1fbe01f%d,f3845767,28905ebd,ecad2386,7801e8d9,07d7df22,a99f214a,ddd2926e,44956a24,1,2,15706,320,50,1722,0,35,-1,79\n", i + 1000, i % 3 == 0, i % 24, i % 7 }'
} | gzip >train.gz
page avazu
holds $((rows + 3)) data/avazu/train.csv data/avazu/valid.csv data/avazu/test.csv

begin kdd12
awk 'BEGIN { OFS = "\t"; for (i = 0; i < 50; i++) print i, i % 3, i % 6 + 1 }' >userid_profile.txt
awk -v n=$rows 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++) print i % 3, 2, "4298118681424644510", i % 9, i % 5, 1, 1, i, i % 8, i % 7, i % 6, i % 60 }' >training.txt
page kdd12
# clicks of 2 impressions: 0 and 2 make one row, 1 makes two
holds $((rows * 4 / 3)) data/kdd12/train.tsv data/kdd12/valid.tsv data/kdd12/test.tsv
[ "$(cat data/kdd12/*.tsv | awk '{ s += $2 } END { print s }')" -eq $((rows * 2)) ] || fail "kdd12: impressions are lost"
cat data/kdd12/*.tsv | awk -F '\t' 'NF != 14 { exit 1 }' || fail "kdd12: rows have not 14 columns"

begin ipinyou
mkdir -p make-ipinyou-data/all
head='click\tweekday\thour\tbidid\ttimestamp\tlogtype\tipinyouid\tuseragent\tIP\tregion\tcity\tadexchange\tdomain\turl\turlid\tslotid\tslotwidth\tslotheight\tslotvisibility\tslotformat\tslotprice\tcreative\tbidprice\tpayprice\tkeypage\tadvertiser\tusertag'
for part in train test; do
    # shellcheck disable=SC2059
    {
        printf "$head\n"
        awk -v n=$rows 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++) print i % 4 == 0, i % 7, "0" i % 10, "b" i, "20130606000104008", 1, "u", "windows_ie", "1.2." i % 9 ".*", 276, 282, 2, "d" i % 5, "url", "null", "s" i % 6, 300, 250, 2, 1, i % 130, "c", 277, 86, "null", 3358, i % 2 ? "10006,10110" : "" }'
    } >make-ipinyou-data/all/$part.log.txt
done
page ipinyou
holds $((rows + 2)) data/ipinyou/train.tsv data/ipinyou/valid.tsv

begin aliccp
for part in train test; do
    awk 'BEGIN { for (i = 0; i < 20; i++) printf "c%d,3,101\002%d\0031.0\001109_14\00277\0032.5\001109_14\00278\0031.5\n", i, i }' >common_features_$part.csv
    awk -v n=$rows 'BEGIN { for (i = 0; i < n; i++) printf "%d,%d,%d,c%d,2,205\002%d\0031.0\001508\0029\0030.5\n", i, i % 4 == 0, i % 5 == 0, i % 20, i % 50 }' >sample_skeleton_$part.csv
done
page aliccp
holds $((rows * 17 / 20)) data/aliccp/train.vw data/aliccp/valid.vw # bought but not clicked: 3 of 20
holds $((rows * 17 / 20)) data/aliccp/test.vw
grep -q "^1 '0 .*|109_14 77:2.5 78:1.5" data/aliccp/test.vw || fail "aliccp: $(head -n 1 data/aliccp/test.vw)"

begin criteo1tb
for day in 0 10 22 23; do
    expect 0 tnet-data gen -q preset=criteo rows=$rows seed=$((day + 1)) --to day_$day.gz --compression gzip
done
page criteo1tb
gzip -d data/criteo1tb/test.tsv.gz data/criteo1tb/valid.tsv.gz
holds $rows "data/criteo1tb/test.tsv" "data/criteo1tb/valid.tsv"
echo "datasets: five pages made their files"
