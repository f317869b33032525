#!/bin/sh
# peers_keys.sh - C8: a group over TCP whose ranks have keys learns what one over sockets of this machine learns, and who
# comes with a key of its own making is let in nowhere.
. "$(dirname "$0")/kit"
export TNET_FAST=5

for i in 0 1; do
    clicks "$dir/$i.tsv" 1200 $((i * 1200))
    tnet-keygen "$dir/peers" rank-$i >"$dir/log"
done
tnet-keygen "$dir/other" rank-1 >"$dir/log"
cp "$dir/peers/rank-0.pub" "$dir/other"
cat >"$dir/c.yaml" <<END
data: {format: criteo, train: [$dir/0.tsv, $dir/1.tsv], shuffle: 0}
embedding: {dim: 4}
model: {type: deepfm, hidden: [16], bias_init: -1}
train: {epochs: 1, batch: 60, threads: 1}
log: {progress: false}
END

# start RANK KEYS RUN WORDS..: one rank in the background; its code goes to $dir/code.RANK.
start() {
    rank=$1
    keys=$2
    run=$3
    shift 3
    (
        code=0
        TNET_RANK=$rank TNET_PEER_LIST=127.0.0.1:$port,127.0.0.1:$((port + 1)) tnet-train "$dir/c.yaml" \
            run.dir="$dir/$run" cluster.security="{key: $keys/rank-$rank.key, allow: $keys}" "$@" \
            >"$dir/out.$rank" 2>"$dir/err.$rank" || code=$?
        echo "$code" >"$dir/code.$rank"
    ) &
}

# group RUN KEYS WORDS..: both ranks, rank 1 with those keys; at other ports where these are taken.
group() {
    run=$1
    keys_of_1=$2
    shift 2
    tries=0
    until [ "$tries" -ge 20 ]; do
        port=$((20000 + ($$ + 17 * tries) % 10000))
        start 0 "$dir/peers" "$run" "$@"
        start 1 "$keys_of_1" "$run" "$@"
        wait
        grep -q 'Address already in use' "$dir/err.0" "$dir/err.1" || return 0
        rm -rf "${dir:?}/$run"
        tries=$((tries + 1))
    done
    fail "no free ports"
}

# codes WANTED: of both ranks.
codes() {
    [ "$(cat "$dir/code.0" "$dir/code.1" | tr -d '\n')" = "$1" ] || fail "not $1: $(cat "$dir"/code.? "$dir"/err.?)"
}

expect 0 tnet-train "$dir/c.yaml" --peers 2 run.dir="$dir/near"
group far "$dir/peers"
codes 00
grep -q 'tcp://127.0.0.1' "$dir/err.0" || fail "not over TCP: $(cat "$dir/err.0")"
same_model "$dir/near" "$dir/far"
echo "$name: over CURVE the same bits as over sockets of this machine"

! grep -q 'broke off\|refused' "$dir/err.0" "$dir/err.1" || fail "told of nothing: $(cat "$dir"/err.?)"

group none "$dir/other" cluster.start_timeout=2s
codes 66
grep -q 'the key is not on the list' "$dir/err.0" || fail "rank 0 does not say why: $(cat "$dir/err.0")"
grep -qF "its public half is $(cat "$dir/other/rank-1.pub")" "$dir/err.0" || fail "whose key: $(cat "$dir/err.0")"
grep -q 'error: waited .* connections refused: .*the key is not on the list' "$dir/err.0" || fail "no: $(cat "$dir/err.0")"
grep -q 'error: .*it refused the key of this peer' "$dir/err.1" || fail "rank 1 does not know why: $(cat "$dir/err.1")"
grep -q 'for rank 1' "$dir/err.0" || fail "rank 0 does not say whom it waited for: $(cat "$dir/err.0")"
echo "$name: a key of its own making opens nothing"

# Rank 1 expects another key of rank 0 than that has.
mkdir "$dir/stale"
cp "$dir"/peers/rank-1.* "$dir/stale"
tnet-keygen "$dir/stale" rank-0 >"$dir/log"
group stale "$dir/stale" cluster.start_timeout=2s
codes 66
grep -q 'the last of which .* has another key for this peer' "$dir/err.0" || fail "rank 0: $(cat "$dir/err.0")"
grep -q 'error: .*it hung up on this peer: is its key another' "$dir/err.1" || fail "rank 1: $(cat "$dir/err.1")"
echo "$name: an old key of rank 0 is told as such"
