#!/bin/sh
# remote.sh - data behind URIs: a model learned from a server that cuts, stalls, refuses and lies has the bits of one
# learned from the file, or the run ends with a sentence; no secret is in anything that is printed or kept.
. "$(dirname "$0")/kit"
export TNET_FAST=300 # pauses and deadlines of transfers
cd "$dir"
mkdir files
for fault in cut stall slow busy flood change sneak noranges chunked nolength notag wrong loop hop expire denied shift whole kerberos; do
    ln -s . "files/!$fault"
done
ln -s . files/b
ln -s . files/signed
clicks files/a.tsv 5000 0
clicks files/b.tsv 2000 20000
gzip -k files/b.tsv
mkdir -p files/day/20261101 files/day/20261102
clicks files/day/20261101/part-0 1000 40000
clicks files/day/20261101/part-1 1000 41000
clicks files/day/20261102/part-0 1000 42000
rm files/day/*/*.truth.json files/day/*/*.yaml

store

cat >c.yaml <<END
data: {format: criteo, shuffle: 500, part_bytes: 200KiB, secrets: secrets}
embedding: {dim: 2}
model: {type: deepfm, hidden: [8]}
train: {batch: 100, epochs: 2, threads: 2}
log: {progress: false}
END

# learned RUN WORDS..
learned() {

    run=$1
    shift
    expect 0 tnet-train c.yaml run.dir="$dir/$run" "$@"
}

# parts are dealt and shuffled as those of the file
learned local "data.train=[files/a.tsv, files/b.tsv.gz]" data.valid=files/b.tsv
for where in "$web" "$web/!cut" "$web/!busy" "$web/!stall" "$web/!hop" "s3://b" "s3://signed/!cut" "$hdfs" "$hdfs/!cut"; do
    name_of=$(echo "$where" | tr -c 'a-z0-9\n' _)
    learned "$name_of" "data.train=['$where/a.tsv', '$where/b.tsv.gz']" "data.valid=$where/b.tsv"
    same_model local "$name_of"
done
grep -q "\"uri\":\"$web/a.tsv\",\"bytes\":\"[0-9]*\",\"version\":\"[0-9a-f]\{16\}\"" "$(echo "$web" | tr -c 'a-z0-9\n' _)/ckpt-1/sources.jsonl" ||
    fail "no version of an object in the checkpoint"

# without ranges, or without versions, an object is one part
learned whole data.train=files/a.tsv data.part_bytes=1GiB
for fault in noranges chunked notag; do
    learned "$fault" "data.train=$web/!$fault/a.tsv"
    same_model whole "$fault"
done

# peers, patterns, folders, the tools
export TNET_FAST=1 # peers have deadlines, too
learned peers "data.train=files/[ab].tsv" --peers 2
learned peers_s3 "data.train=s3://b/[ab].tsv" --peers 2
export TNET_FAST=300
same_model peers peers_s3
expect 0 tnet-data convert --from "s3://b/[ab].tsv" --to remote.tsv format=criteo to.format=criteo data.secrets=secrets
expect 0 tnet-data convert --from "files/[ab].tsv" --to local.tsv format=criteo to.format=criteo
cmp local.tsv remote.tsv || fail "convert wrote other rows"
expect 0 tnet-eval c.yaml run.dir="$dir/local" data.train=files/a.tsv --json --data files/b.tsv
sed 's/files//' out >want
expect 0 tnet-eval c.yaml run.dir="$dir/local" data.train=files/a.tsv --json --data "$web/b.tsv"
grep -o '"auc":[^,]*' want >auc
[ -s auc ] || fail "no figures: $(cat want)"
grep -qF "$(head -n 1 auc)" out || fail "an evaluation gave other figures: $(cat out)"

# days, which are there when their files are, and complete when a file says so
expect 0 tnet-train c.yaml run.dir="$dir/days" 'data.train=s3://b/day/{day:%Y%m%d}/' data.days=2026-11-01..2026-11-02 train.epochs=1
expect 0 tnet-train c.yaml run.dir="$dir/days_local" 'data.train=files/day/{day:%Y%m%d}/' data.days=2026-11-01..2026-11-02 train.epochs=1
newest() { echo "$1/$(cut -d' ' -f1 "$1/LATEST")"; }
weights() { for file in "$(newest "$1")"/sparse-* "$(newest "$1")"/dense-*; do tail -c +65 "$file"; done | cksum; }
[ "$(weights days)" = "$(weights days_local)" ] || fail "days behind a URI taught something else"
expect 4 tnet-train c.yaml run.dir="$dir/late" 'data.train=s3://b/day/{day:%Y%m%d}/part-*' data.days=2026-11-03 train.epochs=1
grep -q 'no object' err || fail "a day that is missing: $(cat err)"
expect 4 tnet-train c.yaml run.dir="$dir/late" 'data.train=s3://b/day/{day:%Y%m%d}/part-*' data.days=2026-11-01 data.done=_SUCCESS train.epochs=1
grep -q '_SUCCESS' err || fail "a day that is not complete: $(cat err)"
: >files/day/20261101/_SUCCESS
expect 0 tnet-train c.yaml run.dir="$dir/done" 'data.train=s3://b/day/{day:%Y%m%d}/part-*' data.days=2026-11-01 data.done=_SUCCESS train.epochs=1

# what ends a run: one sentence, its code
# ends CODE TEXT URI
ends() {
    expect "$1" tnet-train c.yaml run.dir="$dir/ends" --fresh "data.train=$3"
    says "$2"
    rm -rf ends
}
ends 4 'changed while being read' "$web/!change/a.tsv"
ends 4 'changed while being read' "$web/!sneak/a.tsv"
ends 4 'changed while being read' "s3://b/!change/a.tsv"
ends 4 'changed while being read' "webhdfs://127.0.0.1:$port/!change/a.tsv"
ends 4 'changed while being read' "$web/!wrong/a.tsv"
ends 4 'does not say how long the answer is' "$web/!nolength/a.tsv"
ends 4 'more often than is followed' "$web/!loop/a.tsv"
ends 4 'the server answers 404' "$web/absent.tsv"
ends 4 'the server answers 403 (AccessDenied)' "s3://b/!denied/a.tsv"
ends 4 'the server wants Kerberos (401)' "webhdfs://127.0.0.1:$port/!kerberos/a.tsv"
ends 8 'bytes where 262144 were asked for' "webhdfs://127.0.0.1:$port/!whole/a.tsv"
ends 8 '8 times without progress' "$web/!flood/a.tsv"
says 'the server asks for a pause of 1 s'
ends 8 '8 times without progress' "http://127.0.0.1:1/a.tsv"
ends 4 'has no lists of names' "$web/*.tsv"
ends 4 'a user or a password in a URI' "http://me:hidden-password@127.0.0.1:$port/a.tsv"
ends 4 'a signature or a token in a URI' "$web/a.tsv?sig=hidden-signature"
ends 4 'this build knows no store of ftp://' "ftp://h/a.tsv"
TNET_FAIL=library.curl:error ends 3 'data behind a URI need libcurl, which cannot be loaded' "$web/a.tsv"
chmod 644 secrets
ends 3 'may be read by others' "$web/a.tsv"
chmod 600 secrets
mv secrets known
printf '[prod]\nregion = eu\n' >secrets
chmod 600 secrets
ends 3 'says nothing that is known in its section [default]' "$web/a.tsv"
printf 'webhdfs_kerberos = on\n' >secrets
ends 3 "webhdfs_kerberos is 'on', and must be true or false" "$web/a.tsv"
mv known secrets
keys wrong
ends 4 'the server answers 403 (ExpiredToken)' "s3://signed/!expire/a.tsv"

# a token that the store takes to the end
keys new
learned renewed "data.train=[s3://signed/!expire/a.tsv, s3://signed/b.tsv.gz]" "data.valid=$web/b.tsv"
same_model local renewed

# a header that names no host goes to one alone, also where lists differ; with its host to that one
expect 3 tnet-train c.yaml run.dir="$dir/ends" "data.train=$web/a.tsv" "data.valid=http://localhost:$port/b.tsv"
says 'http_header of data.secrets names no host'
expect 3 tnet-eval c.yaml run.dir="$dir/local" "data.train=$web/a.tsv" --data "http://localhost:$port/b.tsv"
says 'http_header of data.secrets names no host'
sed -i "s/^http_header/& 127.0.0.1:$port/" secrets
learned hosts "data.train=[$web/a.tsv, http://localhost:$port/b.tsv.gz]" "data.valid=http://localhost:$port/b.tsv"
same_model local hosts
keys new

# an object that is another one in the next run is noticed as a file is
learned again "data.train=$web/day/20261102/part-0" train.epochs=1
clicks files/day/20261102/part-0 1000 50000
expect 4 tnet-train c.yaml run.dir="$dir/again" "data.train=$web/day/20261102/part-0" train.epochs=2
says 'the training data have changed'
learned again "data.train=$web/day/20261102/part-0" train.epochs=2 data.changed=accept

# a stop ends a run that waits for a server
TNET_FAST=1 tnet-train c.yaml run.dir="$dir/stopped" "data.train=[files/b.tsv, $web/!stall/!cut/a.tsv]" >out 2>err &
tnet=$!
children="$children $tnet"
wait_for "$dir/stopped/metrics.jsonl" $tnet
kill -TERM $tnet 2>null || true
got=0
wait $tnet || got=$?
[ $got -eq 75 ] || [ $got -eq 0 ] || fail "exit code $got after a stop: $(cat err)"

# nothing that was kept or said shows a secret
if grep -rlE "hidden-|$secret" --exclude=secrets --exclude-dir=files . >leaks; then
    fail "a secret is in: $(cat leaks)"
fi
