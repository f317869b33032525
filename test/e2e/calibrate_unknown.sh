#!/bin/sh
# calibrate_unknown.sh - rows with ids that training has not seen: their probabilities after training,
# evaluation and export, in one process and two.
. "$(dirname "$0")/kit"
cd "$dir"
# part FILE ROWS FIRST SHARE: generated clicks, so many percent of the ids new. Half of the clicks go
# where two or more are, as those of new things do that nobody knows yet.
part() {
    tnet-data gen -q slots=6 ids=50 zipf=0 rate=.3 rows="$2" first_row="$3" --to "$1" --config-to gen.yaml >null
    awk -v share="$4" '
        BEGIN { srand(7) }
        {
            new = 0
            for (i = 2; i <= NF; i++)
                if (rand() * 100 < share) {
                    split($i, part, ":")
                    $i = part[1] ":" 1000000 + NR * 8 + i ":1"
                    new++
                }
            if (new > 1 && rand() < .5) $1 = 0
            print
            print new >"'"$1"'.new"
        }' "$1" >some
    mv some "$1"
}
part train.txt 20000 0 0
part valid.txt 8000 20000 25
part test.txt 4000 30000 40
split -n l/4 valid.txt valid-    # so that two processes share them
split -n l/4 test.txt test-
cat >run.yaml <<END
run: {name: unknown, dir: run}
data: {format: libffm, train: train.txt, valid: "valid-a?", test: test.txt}
slots:
  - {name: s0, type: id, field: 0}
  - {name: s1, type: id, field: 1}
  - {name: s2, type: id, field: 2}
  - {name: s3, type: id, field: 3}
  - {name: s4, type: id, field: 4}
  - {name: s5, type: id, field: 5}
model: {type: widedeep, hidden: [16, 8]}
embedding: {dim: 4}
train: {batch: 256, threads: 2, epochs: 1}
eval: {calibrate: platt}
END
# copc SCORES FROM TO: clicks over predicted clicks of rows with so many new ids.
copc() {
    awk -F '\t' -v from="$2" -v to="$3" '
        NR == FNR { new[NR] = $1; next }
        FNR > 1 && new[FNR - 1] >= from && new[FNR - 1] <= to { clicks += $2; sum += $5 }
        END { printf "%.3f\n", clicks / sum }' test.txt.new "$1"
}
# within NUMBER LEAST MOST
within() {
    awk -v x="$1" -v least="$2" -v most="$3" 'BEGIN { exit !(x >= least && x <= most) }'
}
same() {
    cmp "$1" "$2" || fail "$3"
}

expect 0 tnet-train run.yaml eval.predictions=trained.tsv
grep -qE "calibrated by platt on 8000 rows of valid: p = sigmoid\(.* z [-+] .* - 0\..* m\), m slots of keys not met" err ||
    fail "no number for unknown slots: $(cat err)"
grep -qE '"calibration":\{"kind":"platt","a":[0-9.]*,"b":[-0-9.]*,"c":-0\.[0-9]*\}' run/calibration.json ||
    fail "$(cat run/calibration.json)"

# both kinds of rows have as many clicks as are predicted; a map without it mends neither
expect 0 tnet-eval -q run.yaml eval.calibrate=none eval.predictions=raw.tsv
[ "$(wc -l <test.txt.new)" -eq 4000 ] || fail "$(wc test.txt.new)"
few=$(copc trained.tsv 0 1)
many=$(copc trained.tsv 3 6)
within "$(copc raw.tsv 3 6)" 0 .75 || fail "the data show nothing: $(copc raw.tsv 3 6)"
within "$few" .85 1.2 || fail "copc of rows with few new ids: $few"
within "$many" .8 1.25 || fail "copc of rows with many new ids: $many, raw $(copc raw.tsv 3 6)"

# a, b and c of the file, and the ids that are known to be new, say what every score is
line=$(sed 's/.*"a":\([^,]*\),"b":\([^,]*\),"c":\([^}]*\)}.*/\1 \2 \3/' run/calibration.json)
awk -F '\t' -v line="$line" '
    BEGIN { split(line, map, " ") }
    FILENAME == "test.txt.new" { new[FNR] = $1; next }
    FILENAME == "raw.tsv" { raw[FNR] = $4; next }
    FNR > 1 {
        off = $4 - (map[1] * raw[FNR] + map[2] + map[3] * new[FNR - 1])
        if (off * off > 1e-10) { print FNR, $4, raw[FNR], new[FNR - 1]; exit 1 }
    }' test.txt.new raw.tsv trained.tsv >differ || fail "not sigmoid(a z + b + c m): $(cat differ)"

# who evaluates and who serves gives the same scores, and two processes do
for peers in 1 2; do
    expect 0 tnet-eval -q run.yaml eval.predictions=seen.tsv --peers $peers
    same trained.tsv seen.tsv "tnet-eval --peers $peers"
    expect 0 tnet-eval -q run.yaml --data 'test-a?' --json eval.predictions=seen.tsv --peers $peers
    cat seen.tsv seen.1.tsv seen.2.tsv seen.3.tsv >all-$peers.tsv
    sed 's/.*"logloss":/"logloss":/; s/,"slices":.*//' out >figures-$peers
done
same all-1.tsv all-2.tsv "two processes that share the files predict something else"
same figures-1 figures-2 "two processes that share the files judge something else"
expect 0 tnet-eval -q run.yaml eval.predictions=seen.tsv
expect 0 tnet-eval -q run.yaml --calibrate platt --calibration-out fitted.json
same fitted.json run/calibration.json "a run and tnet-eval fit something else"
expect 0 tnet-eval -q run.yaml --calibrate platt --calibration-out fitted.json --peers 2
same fitted.json run/calibration.json "two processes fit something else"
expect 0 tnet-train -q run.yaml run.dir=pair --peers 2 eval.predictions=trained.tsv
expect 0 tnet-eval -q run.yaml run.dir=pair --calibrate platt --calibration-out fitted.json
same fitted.json pair/calibration.json "two processes train and fit something else"
expect 0 tnet-eval -q run.yaml run.dir=pair eval.predictions=pair.tsv
same trained.tsv pair.tsv "two processes predict something else"
expect 0 tnet-export -q run.yaml --to export
export=$(cat out)
tnet-score "$export" <test.txt >served.tsv || fail "tnet-score"
[ "$(copc served.tsv 0 1) $(copc served.tsv 3 6)" = "$few $many" ] ||
    fail "served: $(copc served.tsv 0 1) $(copc served.tsv 3 6), evaluated: $few $many"
expect 0 tnet-eval -q run.yaml --export "$export" eval.predictions=exported.tsv
paste seen.tsv served.tsv exported.tsv | awk -F '\t' '
    NR > 1 {
        d = $5 - $10; e = $5 - $15
        if ($1 != $6 || $1 != $11 || d * d > 1e-12 || e * e > 1e-12) { print; exit 1 }
    }' >differ || fail "tnet-eval, tnet-score, and tnet-eval --export: $(cat differ)"

# without new ids in data.valid the map is what it always was
part valid.txt 8000 20000 0
expect 0 tnet-train -q run.yaml run.dir=known data.valid=valid.txt eval.calibrate=platt
grep -q '"c":' known/calibration.json && fail "$(cat known/calibration.json)"
exit 0
