#!/bin/sh
# readers.sh - the readers of examples/ find every vector of a dictionary: each kind of values, of several
# groups and segments, by each language that is installed.
. "$(dirname "$0")/../e2e/kit"
root=$(cd "$(dirname "$0")/../.." && pwd)
clicks "$dir/train.tsv" 2000 0
cd "$dir"
cat >run.yaml <<END
run: {name: readers, dir: run}
data: {format: criteo, train: train.tsv, valid: train.tsv}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 10}
train: {epochs: 1, batch: 256, threads: 2}
END
expect 0 tnet-train -q run.yaml

readers=
command -v python3 >null && readers="$readers python"
command -v go >null && GOCACHE=$dir/go go build -o tnd-go "$root/examples/go/tnd.go" && readers="$readers go"
command -v javac >null && javac -d . "$root/examples/java/Tnd.java" && readers="$readers java"
[ -n "$readers" ] || skip "neither python3, go nor java"

# read LANGUAGE FILE GROUP SIGN
read_row() {
    case $1 in
    python) python3 "$root/examples/python/tnd.py" "$2" "$3" "$4" ;;
    go) ./tnd-go "$2" "$3" "$4" ;;
    java) java -cp . Tnd "$2" "$3" "$4" ;;
    esac
}

# Values of few bits are within a step of the floats: 1/256 of each of bf16, of the largest by int8 and int4.
for kind in f32:1e-7 bf16:4e-3 fp16:5e-4 int8:4e-3 int4:7.2e-2 1bit:1; do
    values=${kind%%:*}
    expect 0 tnet-export -q run.yaml --to "$values" "export.values=$values" 'export.dict=[tnd, tsv]' export.loss_max=1
    folder=$(cat out)
    awk 'NR > 3 && NR % 997 == 4' "$folder/dict.tsv" >rows
    [ "$(wc -l <rows)" -ge 10 ] || fail "only $(wc -l <rows) rows"
    for language in $readers; do
        while IFS='	' read -r group sign _ _ _ wide deep; do
            read_row "$language" "$folder/dict.tnd" "$group" "$sign" >got || fail "$language: no row of $group $sign"
            [ -z "$wide" ] || echo "wide $wide" >want
            [ -z "$deep" ] || echo "deep $deep" >>want
            sort got >sorted
            sort want | paste -d ' ' - sorted | awk -v within="${kind#*:}" '
                {
                    if (NF % 2 != 0 || $1 != $(NF / 2 + 1)) exit bad = 1
                    most = 0
                    for (i = 2; i <= NF / 2; i++) { size = $i < 0 ? -$i : $i; most = size > most ? size : most }
                    for (i = 2; i <= NF / 2; i++) {
                        d = $i - $(i + NF / 2)
                        if ((d < 0 ? -d : d) > within * most + 1e-12) bad = 1
                    }
                }
                END { exit bad }' || fail "$language, $values, $group $sign: $(cat got), not $(cat want)"
        done <rows
        ! read_row "$language" "$folder/dict.tnd" C1 1234567890123456789 >null 2>&1 || fail "$language finds a row that is not there"
        head -c 1000 "$folder/dict.tnd" >short.tnd
        ! read_row "$language" short.tnd C1 1 >null 2>&1 || fail "$language reads half a file"
    done
done
echo "readers:$readers agree"
