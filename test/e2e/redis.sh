#!/bin/sh
# redis.sh - a dictionary in a real Redis, by `redis-cli --pipe`: every row of dict.tsv by keys of text and of 8 bytes,
# and readers who stay with the old model where the server refuses some.
. "$(dirname "$0")/kit"
server=$(command -v redis-server || command -v redis-check-rdb) || skip "no redis-server"
cli=$(command -v redis-cli) || skip "no redis-cli"
root=$(pwd)
ln -s "$server" "$dir/redis-server" # the server, where it is called so
clicks "$dir/train.tsv" 3000 0
cd "$dir"
cat >run.yaml <<END
run: {name: redis, dir: run}
data: {format: criteo, train: train.tsv}
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 1, batch: 256, threads: 2}
END
expect 0 tnet-train -q run.yaml

# start: a server on a free port, $port; its process is $pid
start() {
    port=$((20000 + $$ % 20000))
    pid=
    for _ in 1 2 3 4 5 6 7 8 9; do
        port=$((port + 1))
        ./redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no >server.log 2>&1 &
        pid=$!
        children="$children $pid"
        tries=0
        until grep -qi "ready to accept connections" server.log; do
            kill -0 "$pid" 2>null || break
            tries=$((tries + 1))
            [ "$tries" -lt 200 ] || fail "the server does not begin: $(tail -n 3 server.log)"
            sleep 0.05
        done
        ! kill -0 "$pid" 2>null || return 0
    done
    fail "no server: $(tail -n 3 server.log)"
}

ask() {
    "$cli" -p "$port" "$@"
}

# a stream for redis-cli; keys are counted by the server
start
expect 0 tnet-export run.yaml --to piped 'export.dict=[tnd, tsv, resp]'
folder=$(cat out)
grep -q '"name":"dict.resp"' "$folder/EXPORT.json" || fail "dict.resp is not in the index"
rows=$(($(wc -l <"$folder/dict.tsv") - 3))
"$cli" -p "$port" --pipe <"$folder/dict.resp" >pipe.log || fail "redis-cli: $(cat pipe.log)"
grep -q "errors: 0, replies: $((rows + 2))" pipe.log || fail "redis-cli: $(cat pipe.log)"
prefix=tnet:$(basename "$folder" | cut -c 1-8)
[ "$(ask GET tnet:current)" = "$prefix" ] || fail "tnet:current is $(ask GET tnet:current)"
[ "$(ask DBSIZE)" = "$((rows + 2))" ] || fail "$(ask DBSIZE) keys for $rows rows"
ask GET "$prefix:meta" | grep -q '"model_id":"'"$(basename "$folder")"'"' || fail "meta: $(ask GET "$prefix:meta")"

# into another database, twice, with a password
ask CONFIG SET requirepass open >null
for _ in 1 2; do
    REDISCLI_AUTH=open "$cli" -p "$port" -n 5 --pipe <"$folder/dict.resp" >pipe.log 2>&1 || fail "redis-cli: $(cat pipe.log)"
done
[ "$(REDISCLI_AUTH=open ask -n 5 DBSIZE)" = "$((rows + 2))" ] || fail "database 5 has $(ask -n 5 DBSIZE) keys"
REDISCLI_AUTH=open ask CONFIG SET requirepass '' >null

# keys of 8 bytes, from the same dictionary and from one that stores no groups: a service makes them as
# docs/serving.md has it, and reads with the description what dict.tsv says of each row
if command -v python3 >null; then
    expect 0 tnet-export run.yaml --to grouped 'export.dict=[tnd, resp]' export.redis_keys=key8
    ask -n 6 --pipe <"$(cat out)/dict.resp" >pipe.log || fail "redis-cli: $(cat pipe.log)"
    [ "$(ask -n 6 DBSIZE)" = "$((rows + 2))" ] || fail "database 6 has $(ask -n 6 DBSIZE) keys"
    expect 0 tnet-export run.yaml --to bytes 'export.dict=[tnd, resp]' export.redis_keys=key8 export.check_groups=false
    ask -n 7 --pipe <"$(cat out)/dict.resp" >pipe.log || fail "redis-cli: $(cat pipe.log)"
    sed -n '/^    def key8/,/^$/s/^    //p' "$root/docs/serving.md" >recipe.py
    python3 - "$port" "$folder/dict.tsv" <<'END' || fail "rows in Redis are not those of dict.tsv"
import json, socket, struct, sys
exec(open("recipe.py").read())
wire = socket.create_connection(("127.0.0.1", sys.argv[1])).makefile("rwb")
def ask(*words):
    words = [w if isinstance(w, bytes) else w.encode() for w in words]
    wire.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    wire.flush()
    head = wire.readline()
    assert head[:1] in b"+$" and head != b"$-1\r\n", (words, head)
    return wire.read(int(head[1:]) + 2)[:-2] if head[:1] == b"$" else head
lines = [line.split("\t") for line in open(sys.argv[2]).read().splitlines()[2:]]
names, lines = lines[0], lines[1::5]
odd = set()
for database in "0", "6", "7":
    ask("SELECT", database)
    prefix = ask("GET", "tnet:current") + b":"
    meta = json.loads(ask("GET", prefix + b"meta"))
    assert meta.get("keys") == ("key8" if database != "0" else None)
    salt = {g["name"]: int(g["salt"], 16) for g in meta["groups"]}
    for line in lines:
        row = dict(zip(names[1:], line))
        key = key8(salt[row["group"]], int(row["sign"]))
        odd |= set(key) & set(b"\0\r\n")
        if database == "0":
            key = ("%s:%s" % (row["group"], row["sign"])).encode()
        value = ask("GET", prefix + key)
        for s in meta["tables"][value[0]]["segments"]:
            floats = struct.Struct("<%df" % s["dim"])
            want = floats.pack(*map(float, row.pop(meta["segments"][s["segment"]]).split()))
            assert floats.pack(*floats.unpack_from(value, 1 + s["at"])) == want, line
        assert not any(row.get(name) for name in meta["segments"]), line
assert len(lines) > 100 and odd == set(b"\0\r\n"), (len(lines), odd)
END
fi

# no room: redis-cli counts the refusals and fails, and the last command is refused as well
ask -n 5 SET tnet:current before >null
ask CONFIG SET maxmemory 1mb >null
! "$cli" -p "$port" -n 5 --pipe <"$folder/dict.resp" >pipe.log 2>&1 || fail "redis-cli says nothing: $(cat pipe.log)"
grep -q "OOM command not allowed" pipe.log || fail "redis-cli: $(cat pipe.log)"
[ "$(ask -n 5 GET tnet:current)" = before ] || fail "readers were switched to half a model"

# what cannot be, before anything is made
expect 3 tnet-export run.yaml export.to=never 'export.dict=[resp]'
grep -q "which is made of tnd" err || fail "$(cat err)"
expect 3 tnet-export run.yaml --to never export.redis_keys=key8
says "nothing is for Redis"
expect 3 tnet-export run.yaml --to "redis://127.0.0.1/0"
says "redis://"
[ ! -e never ] || fail "a refused export left a folder"
