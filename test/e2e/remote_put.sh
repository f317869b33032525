#!/bin/sh
# remote_put.sh - exports, published deltas and predictions that go to S3 and HDFS: what lies there is byte for byte
# what is written to a disk, also by a store that cuts, stalls and loses answers; what fails leaves nothing half there.
. "$(dirname "$0")/kit"
export TNET_FAST=50 # pauses and deadlines of transfers
export TMPDIR="$dir/tmp"
cd "$dir"
mkdir -p files/.parts tmp
for link in !cut !mute !stall !full !denied !hang !flood b signed; do ln -s . "files/$link"; done
clicks train.tsv 2000 0
clicks test.tsv 300 3000
clicks more.tsv 200 4000

store
cat >c.yaml <<'END'
data: {format: criteo, train: train.tsv, secrets: secrets}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 1, batch: 50, threads: 1, sparse: sgd}
checkpoint: {keep: 100}
log: {progress: false}
export: {dict: [tnd, tsv]}
END

# clean: no hidden file, no part of an upload, no unfinished file of ours
clean() {
    [ -z "$(find files/.parts tmp -type f; find files -name '.*.tmp')" ] ||
        fail "left behind: $(find files tmp -name '.*' -o -type f)"
}

# ---- an export ----
expect 0 tnet-train c.yaml run.dir=run
expect 0 tnet-export c.yaml run.dir=run --to local
id=$(basename "$(cat out)")
for to in s3://b/one "s3://signed/!cut/two" gs://signed/three/ "$hdfs/four" "$hdfs/!cut/five" "$hdfs/!mute/six" "s3://b/!mute/seven"; do
    expect 0 tnet-export c.yaml run.dir=run --to "$to"
    [ "$(cat out)" = "${to%/}/$id" ] || fail "it is said to be in $(cat out)"
    folder=$(basename "$to")
    diff -r local "files/$folder" >differs || fail "$to holds something else: $(cat differs)"
    expect 0 tnet-export c.yaml run.dir=run "export.to=$to" --json
    grep -q '"existed":true' out || fail "sent once more: $(cat out)"
    rm -r "files/$folder"
done
clean
expect 0 env TNET_FAST=1 tnet-export c.yaml run.dir=run --to s3://b/one --peers 2
diff -r local files/one >differs || fail "two processes send something else: $(cat differs)"

if grep -q secrets "local/$id/model.json"; then fail "the export says where the secrets are"; fi

# another one by that name stays as it is; a delta is made of what was sent
echo >>"files/one/$id/EXPORT.json"
expect 5 tnet-export c.yaml run.dir=run --to s3://b/one
says "'s3://b/one/$id' is there already and not the same"
expect 0 tnet-train c.yaml run.dir=run train.epochs=2
for to in s3://b/two "$hdfs/three"; do
    expect 0 tnet-export c.yaml run.dir=run train.epochs=2 --to "$to" --delta-from "$id"
done
top=$(basename "$(cat out)")
expect 0 tnet-export c.yaml run.dir=run train.epochs=2 --to local --delta-from "$id"
rm -rf "local/$id"
for folder in two three; do
    diff -r local "files/$folder" >differs || fail "another delta: $(cat differs)"
done

# where the copies are gone, what a delta stands on is fetched: a full one, and a delta with the one below
expect 0 tnet-train c.yaml run.dir=run train.epochs=3
cp -r run/upload kept
for base in "$id" "$top"; do
    for to in s3://b/two "s3://signed/!cut/two" "$hdfs/three"; do
        folder=$(basename "$to")
        cp -r "kept/$id" "files/$folder"
        expect 0 tnet-export c.yaml run.dir=run train.epochs=3 --to "$to" --delta-from "$base"
        newest=$(basename "$(cat out)")
        mv "files/$folder/$newest" near
        rm -r run/upload
        expect 0 tnet-export c.yaml run.dir=run train.epochs=3 --to "$to" --delta-from "$base"
        diff -r near "files/$folder/$newest" >differs || fail "another delta of a base that was fetched: $(cat differs)"
        rm -r near "files/$folder/$newest" "run/upload/$newest"
        diff -r "kept/$base" "run/upload/$base" >differs || fail "another base: $(cat differs)"
    done
done
# what is not there, or not what was sent
gone=0123456789abcdef0123456789abcdef
expect 5 tnet-export c.yaml run.dir=run train.epochs=3 --to s3://b/two --delta-from $gone
says "the base of the delta is neither in 'run/upload/$gone' nor in the store: 's3://b/two/$gone/EXPORT.json'"
begun=$(date +%s)
expect 5 env TNET_FAST=1 tnet-export c.yaml run.dir=run train.epochs=3 --to s3://b/two --delta-from $gone --peers 2
[ $(($(date +%s) - begun)) -lt 15 ] || fail "the other process waits for one that has failed"
# damaged FILE TEXT: with a byte more, or of another id
damaged() {
    rm -r run/upload
    cp "files/two/$id/$1" good
    printf ' ' >>"files/two/$id/$1"
    expect 5 tnet-export c.yaml run.dir=run train.epochs=3 --to s3://b/two --delta-from "$top"
    says "$2"
    [ -z "$(find run/upload -name "$id*")" ] || fail "what is damaged is kept: $(find run/upload)"
    mv good "files/two/$id/$1"
}
damaged dict.tnd "'s3://b/two/$id/dict.tnd' is damaged: its size or crc is not that of EXPORT.json"
damaged EXPORT.json EXPORT.json
mv "files/two/$id" "files/two/$gone"
rm -r run/upload
expect 5 tnet-export c.yaml run.dir=run train.epochs=3 --to s3://b/two --delta-from $gone
says "'s3://b/two/$gone/EXPORT.json' is of another model"
rm -r files/one files/two files/three local kept
clean
echo "remote_put: exports"

# ---- what a run publishes ----
# published RUN TO WORDS..
published() {
    run=$1
    to=$2
    shift 2
    expect 0 tnet-train c.yaml run.dir="$run" export.to="$to" export.every=10steps "$@"
}
published one one-to
[ "$(find one-to -name EXPORT.json | wc -l)" -eq 4 ] || fail "not 4 exports: $(ls one-to)"
latest=$(cat one-to/LATEST)
n=0
for to in s3://signed/pub "s3://signed/!cut/pub" "$hdfs/pub" "$hdfs/!mute/pub" "$hdfs/!stall/pub"; do
    n=$((n + 1))
    published "pub$n" "$to"
    grep -q "^published '$to/$latest'" err || fail "not told: $(cat err)"
    diff -r one-to files/pub >differs || fail "$to holds something else: $(cat differs)"
    published "pub$n" "$to"
    if grep -q '^published' err; then fail "published once more: $(cat err)"; fi
    rm -r files/pub
done
clean
export TNET_FAST=1 # peers have deadlines, too
published peers_local peers-to --peers 2
published peers "s3://b/pub" --peers 2
export TNET_FAST=50
diff -r peers-to files/pub >differs || fail "two processes publish something else: $(cat differs)"
rm -r files/pub
# an export of all rows makes the copies before it superfluous
published full s3://b/pub export.dict=tsv
[ "$(find full/upload -name EXPORT.json | wc -l)" -eq 1 ] || fail "copies stay: $(ls full/upload)"
[ "$(find files/pub -name EXPORT.json | wc -l)" -eq 4 ] || fail "not 4 exports: $(ls files/pub)"
rm -r files/pub
# a run that goes on without its copies, or with a damaged one, fetches what its deltas stand on
published near near-to
cp -r near-to near-1
published near near-to train.epochs=2
for to in s3://b/pub "$hdfs/pub"; do
    for harm in gone damaged; do
        published far "$to"
        diff -r near-1 files/pub >differs || fail "$to holds something else: $(cat differs)"
        case $harm in
        gone) rm -r far/upload ;;
        damaged)
            dict=far/upload/$(cat files/pub/LATEST)/dict.tnd
            printf damage | dd of="$dict" bs=1 seek=$(($(wc -c <"$dict") / 2)) conv=notrunc 2>null
            ;;
        esac
        published far "$to" train.epochs=2
        diff -r near-to files/pub >differs || fail "a run whose copies are $harm publishes something else: $(cat differs)"
        if [ $harm = damaged ]; then grep -q "^warning: 'far/upload/.*' is damaged, and fetched again" err || fail "not told: $(cat err)"; fi
        [ "$(grep -c '; changes since ' err)" -ge 4 ] || fail "no deltas: $(cat err)"
        rm -r far files/pub
    done
done
# .. and begins a new chain where the store has not got it either, or only damaged
for harm in gone damaged; do
    published far s3://b/pub
    base=$(sed -n "s,^published 's3://b/pub/\(.*\)' of ckpt-2: .*,\1,p" err)
    rm -r "far/upload/$base"
    if [ $harm = gone ]; then
        rm -r "files/pub/$base"
        why="the base of the delta is neither in 'far/upload/$base' nor in the store: "
    else
        echo >>"files/pub/$base/dict.tnd"
        why="'s3://b/pub/$base/dict.tnd' is damaged"
    fi
    published far s3://b/pub train.epochs=2
    grep -q "^published '.*: .* rows, .*; all rows, $why" err || fail "not told: $(cat err)"
    [ "$(grep -c '; changes since ' err)" -ge 3 ] || fail "no deltas behind it: $(cat err)"
    rm -r far files/pub
done
clean
echo "remote_put: publishing"

# a store without room, or that refuses, ends the run, or is told; the same command sends what it owes
expect 8 tnet-train c.yaml run.dir=owes export.every=10steps "export.to=s3://b/!full/pub"
says "ckpt-1 is not exported: 's3://b/!full/pub/"
says 'the server answers 507 (XMinioStorageFull)'
expect 8 tnet-train c.yaml run.dir=denied export.every=10steps "export.to=$hdfs/!denied/pub"
says 'the server answers 403'
[ -z "$(find files -name EXPORT.json -o -name LATEST)" ] || fail "something is there: $(find files -name EXPORT.json -o -name LATEST)"
published owes s3://b/pub
diff -r one-to files/pub >differs || fail "after a refusal something else is there: $(cat differs)"
rm -r files/pub
expect 8 tnet-train c.yaml run.dir=warned export.every=10steps checkpoint.on_error=warn "export.to=s3://b/!full/pub"
[ "$(grep -c '^warning: ckpt-[0-9]* is not exported: ' err)" -eq 2 ] || fail "not two warnings: $(cat err)"
clean

# stopped, or killed, while a file is on its way: it is not there, and the same run goes on with it
for where in s3://b/ "$hdfs/"; do
    for signal in TERM KILL; do
        TNET_FAST=1 tnet-train c.yaml run.dir=stopped export.every=10steps "export.to=$where!hang/pub" >out 2>err &
        tnet=$!
        children="$children $tnet"
        wait_for stopped/upload $tnet
        tries=0
        until [ -n "$(find stopped/upload -name EXPORT.json)" ]; do
            tries=$((tries + 1))
            [ $tries -lt 1200 ] || fail "nothing is exported: $(cat err)"
            sleep 0.05
        done
        sleep 0.5
        kill -s $signal $tnet
        got=0
        { wait $tnet || got=$?; } 2>null
        case $signal$got in TERM75 | KILL137) ;; *) fail "exit code $got after $signal: $(cat err)" ;; esac
        [ -z "$(find files -name EXPORT.json -o -name LATEST)" ] || fail "$signal: half there: $(find files/pub)"
        if [ $signal = TERM ]; then clean; fi
        published stopped "${where}pub"
        diff -r -x '.*.tmp' one-to files/pub >differs || fail "after $signal something else is there: $(cat differs)"
        if [ "$signal$where" = KILLs3://b/ ]; then grep -q "it was made before, and is sent now" err || fail "not told: $(cat err)"; fi
        rm -rf stopped files/pub files/.parts/*
    done
done
echo "remote_put: stops"

# ---- predictions ----
expect 0 tnet-eval c.yaml run.dir=run train.epochs=2 --data test.tsv --data more.tsv --predictions scores.tsv
mkdir files/scores
for to in s3://signed "s3://b/!cut" "$hdfs" "$hdfs/!mute"; do
    expect 0 tnet-eval c.yaml run.dir=run train.epochs=2 --data test.tsv --data more.tsv --predictions "$to/scores/scores.tsv"
    cmp scores.tsv files/scores/scores.tsv || fail "$to holds other scores"
    cmp scores.1.tsv files/scores/scores.1.tsv || fail "$to holds other scores of the second file"
    rm files/scores/*
done
expect 0 tnet-train c.yaml run.dir=tested data.test=test.tsv eval.predictions=s3://b/scores/t.tsv
expect 0 tnet-train c.yaml run.dir=tested_local data.test=test.tsv eval.predictions=t.tsv
cmp t.tsv files/scores/t.tsv || fail "a run writes other scores"
expect 8 tnet-eval c.yaml run.dir=run train.epochs=2 --data test.tsv --predictions "$hdfs/!full/scores/x.tsv"
says 'the server answers 403 (DSQuotaExceededException)'
[ ! -e files/scores/x.tsv ] || fail "half a file is there"
# no room where they are made
expect 8 sh -c 'ulimit -f 2; exec "$@"' sh tnet-eval c.yaml run.dir=run train.epochs=2 --data test.tsv --predictions s3://b/scores/x.tsv
says "cannot write '$dir/tmp/tnet-"
[ ! -e files/scores/x.tsv ] || fail "half a file is there"
clean
echo "remote_put: predictions"

# ---- what is refused, before anything is learned ----
# refused TEXT WORDS..
refused() {
    text=$1
    shift
    expect 3 tnet-train c.yaml "$@"
    grep -qF -- "$text" err || fail "no '$text' in: $(cat err)"
}
refused "'run.dir' is 's3://b/run', and checkpoints are written to disks only" run.dir=s3://b/run
refused "'run.dir' is '$hdfs/run', and checkpoints" "run.dir=$hdfs/run"
refused "nothing is written to https://" run.dir=bad export.to=https://h/a
refused "nothing is written to abfs://" run.dir=bad export.to=abfs://c@a.dfs.core.windows.net/x
refused "this build knows no store of ftp://" run.dir=bad export.to=ftp://h/a
refused "names no bucket" run.dir=bad export.to=s3:///a
refused "is a pattern" run.dir=bad 'export.to=s3://b/a*'
refused "names no file" run.dir=bad eval.predictions=s3://b
refused "nothing is written to http://" run.dir=bad eval.predictions=http://h/a
for option in train valid test; do
    expect 4 tnet-train c.yaml run.dir=bad "data.$option=ftp://h/a.tsv"
    says "this build knows no store of ftp://"
    expect 4 tnet-train c.yaml run.dir=bad "data.$option=s3:///a.tsv"
    says "names no bucket"
done
expect 3 tnet-export c.yaml run.dir=run train.epochs=2 --to http://h/a
says "nothing is written to http://"
expect 3 tnet-eval c.yaml run.dir=run train.epochs=2 --data test.tsv --predictions abfs://c@a.dfs.core.windows.net/x
says "nothing is written to abfs://"
chmod 644 secrets
for words in "export.to=s3://b/pub export.every=10steps" "data.test=test.tsv eval.predictions=s3://b/x"; do
    # shellcheck disable=SC2086
    expect 3 tnet-train c.yaml run.dir=bad $words
    says 'may be read by others'
done
[ -z "$(find bad -name 'ckpt-*' 2>null)" ] || fail "something was learned: $(ls bad)"
[ ! -e s3: ] || fail "a folder s3: was made"

# nothing that was kept or said shows a secret
if grep -rlE "hidden-|$secret" --exclude=secrets --exclude-dir=files . >leaks; then
    fail "a secret is in: $(cat leaks)"
fi
