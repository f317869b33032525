#!/bin/sh
# new_user.sh - S3: what goes wrong on the first day: every message names the file, the place in it and
# the fault, and the exit code says whose fault it is.
. "$(dirname "$0")/kit"
cd "$dir"
tnet-data gen -q preset=plain slots=3 ids=50 rows=200 multi=1 --to rows.csv --format csv >null
for format in tsv libffm tfrecord; do
    tnet-data convert -q rows.csv.yaml to.format=$format --to rows.$format --config-to rows.$format.yaml >null
done
awk 'NR % 2 { print "1 3:1 5:0.5" } NR % 2 == 0 { print "0 4:1 5:2" }' rows.csv >rows.libsvm
echo "data: {format: libsvm, train: rows.libsvm}" >rows.libsvm.yaml
awk 'BEGIN { srand(7); for (i = 0; i < 3000; i++) printf "%c", 1 + int(255 * rand()) }' >garbage

# wrong CODE TEXT WORDS..: fails with CODE and this text
wrong() {
    code=$1
    text=$2
    shift 2
    expect "$code" "$@"
    grep -qF -- "$text" err || fail "no '$text' of '$*' in: $(cat err)"
    if grep -qE 'assertion|core dumped|Segmentation|AddressSanitizer' err; then
        fail "$*: $(cat err)"
    fi
    [ ! -s out ] || fail "$* failed but says on stdout: $(cat out)"
}

# --- the data ---
for format in csv tsv libffm libsvm tfrecord; do
    yaml=rows.$format.yaml
    expect 0 tnet-train -q $yaml run.dir=good-$format
    wrong 4 "cannot find 'absent.x'" tnet-train $yaml data.train=absent.x
    wrong 4 "no file matches 'absent-*.x'" tnet-train $yaml "data.train=absent-*.x"
    mkdir -p nothing
    wrong 4 "no files in folder 'nothing'" tnet-train $yaml data.train=nothing
    for data in valid test; do # before anything is learned
        wrong 4 "cannot find 'absent.x'" tnet-train $yaml data.$data=absent.x run.name=absent-$data
        grep -q '"steps":0,' "runs/absent-$data/summary.json" || fail "an epoch is learned before data.$data is missed"
    done
    : >empty
    wrong 4 "holds no records: 'empty'" tnet-train $yaml data.train=empty run.dir=run-empty
    wrong 4 "'empty' holds no records" tnet-eval $yaml --data empty --checkpoint good-$format
    wrong 4 "garbage:" tnet-train $yaml data.train=garbage
    expect 4 tnet-data check $yaml --from garbage
    grep -q "garbage:" out err || fail "check does not name the file: $(cat out err)"
    gzip -c rows.$format | head -c 60 >cut.gz
    wrong 4 "cut.gz:@60: error: truncated gzip stream" tnet-train $yaml data.train=cut.gz
done
for format in csv tsv libffm libsvm; do
    sed '5s/^[01]/7/' rows.$format >seven
    wrong 4 "seven:5:1: error: expected a label, found \"7\"" tnet-train rows.$format.yaml data.train=seven
    gzip -c seven >seven.gz
    wrong 4 "seven.gz:5:1: error: expected a label" tnet-train rows.$format.yaml data.train=seven.gz
    wrong 4 "binary data in a text format" tnet-train rows.$format.yaml data.train=rows.tfrecord
    # one bad record may be let pass, and is counted
    expect 0 tnet-train rows.$format.yaml data.train=seven data.bad_records_max=1 run.dir=seven-$format
    grep -q '"bad":{"total":1,' seven-$format/summary.json || fail "the bad record is not in summary.json"
    wrong 4 "seven:5:1" tnet-train rows.$format.yaml data.train=seven data.bad_records_max=0
done
head -c 700 rows.tfrecord >short
wrong 4 "error: truncated record" tnet-train rows.tfrecord.yaml data.train=short
wrong 4 "short:@" tnet-train rows.tfrecord.yaml data.train=short
sed '3s/,/,,,/' rows.csv >wide
wrong 4 "wide:3:" tnet-train rows.csv.yaml data.train=wide
sed '4s/ 0:[0-9]*:/ 0:x:/' rows.libffm >word
wrong 4 "word:4:" tnet-train rows.libffm.yaml data.train=word
wrong 4 "word:1:1: error: there is no column 'label'" tnet-train rows.csv.yaml data.train=word

# --- the configuration ---
wrong 2 "tnet-train CONFIG" tnet-train
wrong 3 "cannot open 'absent.yaml'" tnet-train absent.yaml
wrong 3 "Is a directory" tnet-train nothing
wrong 3 "rows.csv:1:1: error: a configuration must be a map of sections" tnet-train rows.csv
wrong 3 "garbage:1:" tnet-train garbage
wrong 3 "empty" tnet-train empty
cat >many.yaml <<END
data: {format: cvs, train: rows.csv}
slots: [s0]
model: {type: deepfm, hiden: [8]}
train: {epochs: x, batch: -3, epochs: 4}
END
wrong 3 "many.yaml:4:31: error: " tnet-train many.yaml
sed -i 's/, epochs: 4//' many.yaml
wrong 3 "many.yaml:1:16: error: unknown format 'cvs' (did you mean 'csv'?)" tnet-train many.yaml
grep -qF "many.yaml:3:23: error: unknown key 'hiden' (did you mean 'hidden'?)" err || fail "$(cat err)"
grep -qF "many.yaml:4:17: error: 'epochs' is not a number: 'x'" err || fail "$(cat err)"
grep -qF "many.yaml:4:27: error: 'batch' is -3, not within 1 .." err || fail "$(cat err)"
grep -qF "4 errors in the configuration" err || fail "$(cat err)"
printf 'data:\n\tformat: csv\n' >tab.yaml
wrong 3 "tab.yaml:2:1: error: not YAML" tnet-train tab.yaml
printf 'include: [tab.yaml]\n' >include.yaml
wrong 3 "tab.yaml:2:1: error: not YAML" tnet-train include.yaml
wrong 3 "nothing to learn from: data.train is not set" tnet-train rows.csv.yaml data.train=~
wrong 4 "there is no column 'nosuch'" tnet-train rows.csv.yaml 'slots=[s0, nosuch]'
wrong 3 "unknown key 'epochs'" tnet-train rows.csv.yaml epochs=3
wrong 3 "'deepfmm'" tnet-train rows.csv.yaml model=deepfmm
wrong 3 "unknown key 'sep' (did you mean 'data.delimiter'?)" tnet-train rows.csv.yaml data.sep=,
wrong 3 "hint: a list is written [400, 200]" tnet-train rows.csv.yaml model='{type: fm, hidden: "4,2"}' model.type=deepfm
wrong 8 "there is no folder 'nodir' to write into" tnet-data infer rows.csv --to nodir/x.yaml
mkdir beside
cp rows.csv beside/own.csv
printf "data: {format: csv, train: own.csv}\nslots: [s0]\nmodel: lr\n" >beside/own.yaml
wrong 4 "hint: 'beside/own.csv' is there: paths are taken from where you stand" tnet-train beside/own.yaml
wrong 4 "hint: 'beside/o*.csv' is there: paths are" tnet-train beside/own.yaml data.train='o*.csv'
{ printf '\377\376'; cat rows.csv; } >utf16.csv
wrong 4 "hint: 'iconv -f UTF-16 -t UTF-8 FILE'" tnet-train rows.csv.yaml data.train=utf16.csv
wrong 3 "TNET_TRAIN__EPOCHS" env TNET_TRAIN__EPOCHS=many tnet-train rows.csv.yaml
for variable in TNET_TRAIN_EPOCHS TNET_TRAIN_EPOCH; do
    expect 0 env "$variable=2" TNET_RANDOM=1 TNET_DATA_CENTRE=x tnet-train rows.csv.yaml --print-config
    [ "$(cat err)" = "warning: '$variable' of the environment is no option (did you mean 'TNET_TRAIN__EPOCHS'?)" ] ||
        fail "not one warning: $(cat err)"
done
expect 0 env TNET_PEER_LIST=nohost tnet-train rows.csv.yaml run.name=listed --dry-run
grep -qF "warning: TNET_PEER_LIST names one peer, 'nohost', so this process is alone" err || fail "$(cat err)"
wrong 3 "'run.name' is '../x', and names a folder in 'runs'" tnet-train rows.csv.yaml run.name=../x
wrong 3 "'run.name' is 'a/..', and names a folder in 'runs'" tnet-train rows.csv.yaml run.name=a/..
wrong 3 "'run.name' is '/x', and names a folder in 'runs'" tnet-train rows.csv.yaml run.name=/x
expect 0 tnet-train rows.csv.yaml run.name=a/..b --print-config

wrong 3 "metric 'gauc' needs data.group" tnet-train rows.csv.yaml 'eval.metrics=[gauc]'
wrong 3 "metric 'gauc' needs data.group" tnet-train rows.csv.yaml data.valid=rows.csv train.stop=valid.gauc
wrong 3 "'nonsense' is not valid.<metric>" tnet-train rows.csv.yaml data.valid=rows.csv \
    'train.reduce_on_plateau={factor: 0.5, monitor: nonsense}'
wrong 3 "only one metric is watched" tnet-train rows.csv.yaml data.valid=rows.csv \
    train.stop=valid.auc 'train.reduce_on_plateau={factor: 0.5, monitor: valid.ne}'
wrong 3 "metric 'ndcg' needs data.group" tnet-train rows.csv.yaml data.valid=rows.csv train.stop=valid.ndcg
expect 0 tnet-train -q rows.libsvm.yaml data.valid=rows.libsvm 'eval.metrics=[gauc]' train.epochs=1 # no qid: one group
wrong 2 "'--fetch' names no node" tnet-eval rows.csv.yaml --data rows.csv --fetch ,

# --- the terminal: a line moves only where lines can ---
if command -v script >null; then
    mkfifo rows
    # rows long enough to fill what is read at once, so that each turn of the loop below leads to steps
    awk -v pad="$(printf %02000d 0)" '{ print $0 (NR == 1 ? ",unused" : "," pad) }' rows.csv >long.csv
    for term in xterm dumb; do
        : >typed
        { # rows come until a line of progress is there
            head -n 1 long.csv
            tries=0
            until grep -q 'rows/s' typed || [ $tries -eq 1200 ]; do
                sed 1d long.csv
                tries=$((tries + 1))
                sleep 0.05
            done
        } >rows 2>null &
        children="$children $!"
        expect 0 env TERM=$term script -qefc "cat rows | tnet-train rows.csv.yaml data.train=- run.dir=on-$term log.every=50ms train.batch=50 data.shuffle=0" typed
        grep -q 'rows/s' typed || fail "TERM=$term: no line of progress: $(cat -v typed)"
        moves=0
        grep -qF "$(printf '\033[K')" typed || moves=$?
        case $term:$moves in
        xterm:0 | dumb:1) ;;
        *) fail "TERM=$term: $(cat -v typed)" ;;
        esac
    done
fi

# --- standard input comes once ---
wrong 3 "data.train '-', standard input, can be read once" tnet-train rows.csv.yaml data.train=- train.epochs=2 run.dir=twice

# --- the run directory ---
wrong 3 "hint: --fresh begins anew" tnet-train rows.csv.yaml run.dir=good-csv 'model={type: deepfm, hidden: [3]}'
wrong 8 "cannot make folder 'rows.csv'" tnet-train rows.csv.yaml run.dir=rows.csv
wrong 5 "no checkpoint or run directory 'elsewhere'" tnet-eval rows.csv.yaml --data rows.csv run.dir=elsewhere
mkdir fetch.npz
for output in "--fetch=logit" "--predictions=nothing" "--report=nothing"; do
    expect 8 tnet-eval rows.csv.yaml --data rows.csv run.dir=good-csv "$output"
    says "it is a folder"
    if ls ./*.tmp >null 2>&1; then
        fail "$output leaves $(ls ./*.tmp)"
    fi
done
wrong 3 "hint: '--data PATH' names it" tnet-eval rows.csv.yaml run.dir=good-csv
