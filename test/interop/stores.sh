#!/bin/sh
# stores.sh - servers that others wrote: a run from nginx (http and https) and from moto's S3 learns the model that the
# files on disk make; exports, what is published and predictions arrive at moto as they are made here. A certificate that
# nobody vouches for and a redirect from https to http are refused. A KDC and Apache give and take Kerberos tickets in
# front of a store of ours, whose DataNode refuses them.
#
# moto goes into a virtual environment of its own, build/interop-stores; what is missing is left out, with words.
. "$(dirname "$0")/../e2e/kit"
root=$(pwd)
venv=$root/build/interop-stores
command -v python3 >"$dir/null" || skip "no python3"
cd "$dir"
unset AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN http_proxy https_proxy all_proxy

# ports that nobody uses now
# shellcheck disable=SC2046
set -- $(python3 -c 'import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
print(*[x.getsockname()[1] for x in s])')
http=$1
https=$2
s3=$3
kdc=$4
namenode=$5
mkdir www
expect 0 tnet-data gen -q --to www/a.ffm rows=30000 slots=6 ids=2000 --config-to data.yaml
expect 0 tnet-data gen -q --to www/valid.ffm rows=3000 first_row=30000 slots=6 ids=2000
cat >run.yaml <<END
include: data.yaml
model: {type: deepfm, hidden: [8]}
embedding: {dim: 4}
train: {epochs: 1, batch: 500}
log: {progress: false}
eval: {calibrate: none}
END

# learn NAME FOLDER [WORDS..]: a model from FOLDER's a.ffm and valid.ffm; its id is in NAME.id
learn() {
    of=$1
    from=$2
    shift 2
    expect 0 tnet-train -q run.yaml "run.dir=$of" "data.train=$from/a.ffm" "data.valid=$from/valid.ffm" "$@"
    expect 0 tnet-export -q run.yaml "run.dir=$of" --to "$of.export"
    basename "$(cat out)" >"$of.id"
}
learn disk www

# up PORT: until a server answers
up() {
    python3 - "$1" <<'END' || fail "no server at port $1"
import socket, sys, time
for _ in range(300):
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
        sys.exit(0)
    except OSError:
        time.sleep(.1)
sys.exit(1)
END
}

# ---- nginx ----

try_nginx() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout key.pem -out cert.pem 2>openssl.log || fail "no certificate: $(cat openssl.log)"
    cat >nginx.conf <<END
pid nginx.pid;
error_log nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    server {
        listen 127.0.0.1:$http;
        listen 127.0.0.1:$https ssl;
        ssl_certificate cert.pem;
        ssl_certificate_key key.pem;
        root www;
        location = /hop.ffm { return 302 http://localhost:$http/a.ffm; }
    }
}
END
    chmod 755 . www # its workers may be another user
    nginx -p "$dir" -c nginx.conf -g 'daemon off; master_process off;' 2>nginx.err &
    children="$children $!"
    up "$http"
    learn nginx "http://localhost:$http"
    cmp disk.id nginx.id || fail "another model from nginx"
    echo "stores: from $(nginx -v 2>&1 | sed 's/.*: //') over http the model of the files"
    expect 8 tnet-train -q run.yaml run.dir=bad "data.train=https://localhost:$https/a.ffm"
    says "SSL certificate problem"
    # Where a mount of one's own is allowed, the certificate is made one of those that are known.
    known=/etc/ssl/certs/ca-certificates.crt
    if ! unshare -rm mount --bind cert.pem $known 2>null; then
        echo "stores: no mounts of one's own here, so nothing is read over https"
        return
    fi
    cat >known.sh <<END
mount --bind cert.pem $known && exec "\$@"
END
    expect 0 unshare -rm sh known.sh tnet-train -q run.yaml run.dir=tls "data.train=https://localhost:$https/a.ffm" \
        "data.valid=https://localhost:$https/valid.ffm"
    expect 0 tnet-export -q run.yaml run.dir=tls --to tls.export
    basename "$(cat out)" >tls.id
    cmp disk.id tls.id || fail "another model over https"
    expect 4 unshare -rm sh known.sh tnet-train -q run.yaml run.dir=bad "data.train=https://localhost:$https/hop.ffm"
    says "redirects from https to another protocol"
    echo "stores: over https, too; an unknown certificate and a redirect to http are refused"
}

# ---- S3 ----

# s3 put BUCKET KEY FILE, s3 got BUCKET KEY FILE, s3 make BUCKET: by Amazon's own client
s3() {
    AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY=mine "$venv/bin/python" - "$s3" "$@" <<'END'
import sys
import boto3
port, what, bucket, *rest = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url="http://127.0.0.1:" + port, region_name="us-east-1")
if what == "make":
    s3.create_bucket(Bucket=bucket)
elif what == "put":
    s3.upload_file(rest[1], bucket, rest[0])
else:
    s3.download_file(bucket, rest[0], rest[1])
END
}

# same KEY FILE: what lies in the bucket of models
same() {
    s3 got models "$1" there || fail "no models/$1 in S3"
    cmp there "$2" || fail "models/$1 is not the local file"
}

try_moto() {
    [ -x "$venv/bin/moto_server" ] || {
        echo "stores: installing moto into build/interop-stores"
        { python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q 'moto[server]'; } >pip.log 2>&1 || {
            echo "stores: moto cannot be installed, S3 is not tried: $(tail -n 1 pip.log)"
            return
        }
    }
    "$venv/bin/moto_server" -H 127.0.0.1 -p "$s3" >moto.log 2>&1 &
    children="$children $!"
    up "$s3"
    s3 make logs
    s3 make models
    s3 put logs day=1/a.ffm www/a.ffm
    s3 put logs day=1/valid.ffm www/valid.ffm
    printf 'aws_access_key_id=me\naws_secret_access_key=mine\nendpoint_url=http://127.0.0.1:%s\n' "$s3" >secrets
    chmod 600 secrets
    learn s3 's3://logs/day=1' data.secrets=secrets export.to=s3://models/published export.every=1epoch
    cmp disk.id s3.id || fail "another model from S3"
    expect 0 tnet-eval -q run.yaml run.dir=s3 data.secrets=secrets --data 's3://logs/day=*/v*.ffm' --predictions s3://models/p.tsv
    expect 0 tnet-eval -q run.yaml run.dir=disk --data www/valid.ffm --predictions p.tsv
    same p.tsv p.tsv
    expect 0 tnet-export -q run.yaml run.dir=s3 data.secrets=secrets --to s3://models/exported
    id=$(cat disk.id)
    for to in exported published; do
        for file in "s3.export/$id"/*; do
            same "$to/$id/${file##*/}" "$file"
        done
    done
    s3 got models published/LATEST latest
    grep -q "$id" latest || fail "LATEST is not the published export"
    expect 4 tnet-train -q run.yaml run.dir=bad data.secrets=secrets 'data.train=s3://logs/day=2/'
    says "s3://logs/day=2/"
    # larger than a part: 40 MB of predictions are sent in three
    expect 0 tnet-data gen -q --to big.ffm rows=1000000 slots=6 ids=2000
    expect 0 tnet-eval -q run.yaml run.dir=disk data.secrets=secrets --data big.ffm --predictions s3://models/big.tsv
    expect 0 tnet-eval -q run.yaml run.dir=disk --data big.ffm --predictions big.tsv
    [ "$(wc -c <big.tsv)" -gt 20000000 ] || fail "not in parts"
    same big.tsv big.tsv
    echo "stores: from and to moto's S3 the bytes of the disk, an export and $(wc -c <big.tsv) bytes in parts"
}

# ---- Kerberos ----

# A realm with alice, bob and a service, whose keys are in files; all of it lies in $dir.
make_realm() {
    cat >krb5.conf <<END
[libdefaults]
    default_realm = TNET.TEST
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    rdns = false
[realms]
    TNET.TEST = {
        kdc = 127.0.0.1:$kdc
    }
END
    cat >kdc.conf <<END
[realms]
    TNET.TEST = {
        kdc_listen = 127.0.0.1:$kdc
        kdc_tcp_listen = 127.0.0.1:$kdc
        database_name = $dir/principals
        key_stash_file = $dir/stash
    }
[logging]
    kdc = FILE:$dir/kdc.log
END
    mkdir replays
    chmod 1777 replays
    export KRB5_CONFIG="$dir/krb5.conf" KRB5_KDC_PROFILE="$dir/kdc.conf" KRB5RCACHEDIR="$dir/replays" KRB5CCNAME="FILE:$dir/tickets"
    kdb5_util create -s -P master
    for who in alice bob HTTP/localhost; do
        kadmin.local -q "addprinc -randkey $who"
        kadmin.local -q "ktadd -k ${who%/*}.keytab $who"
    done
}

# Apache asks for a ticket of alice's, and hands on what the store answers: redirects lead to the store itself.
ask_for_tickets() {
    modules=/usr/lib/apache2/modules
    cat >apache.conf <<END
ServerName localhost
Listen 127.0.0.1:$namenode
PidFile $dir/apache.pid
ErrorLog $dir/apache.log
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authn_core_module $modules/mod_authn_core.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule authz_user_module $modules/mod_authz_user.so
LoadModule auth_gssapi_module $modules/mod_auth_gssapi.so
LoadModule proxy_module $modules/mod_proxy.so
LoadModule proxy_http_module $modules/mod_proxy_http.so
User nobody
Group nogroup
ProxyPass / http://127.0.0.1:$port/ nocanon
<Location />
    AuthType GSSAPI
    GssapiCredStore keytab:$dir/HTTP.keytab
    Require user alice@TNET.TEST
</Location>
END
    chmod 755 .
    chmod 644 HTTP.keytab # its workers may be another user
    apache2 -X -d "$dir" -f apache.conf 2>apache.err & # one process
    children="$children $!"
    up "$namenode"
}

# refused SECRETS WORDS: at once and by name, reading and writing
refused() {
    expect 4 tnet-train -q run.yaml run.dir=bad "data.train=$nn/a.ffm" "data.secrets=$1"
    says "$2"
    expect 8 tnet-export -q run.yaml run.dir=kerberos "data.secrets=$1" --to "$nn/refused"
    says "$2"
    [ ! -e files/refused ] || fail "written without a ticket: $1, $2"
}

try_kerberos() {
    [ -x "$bin/tn_store" ] || cmake --build "$bin" --target tn_store >store.log || fail "no tn_store: $(cat store.log)"
    make_realm >realm.log 2>&1
    krb5kdc -n 2>kdc.err &
    children="$children $!"
    up "$kdc"
    mkdir files
    ln -s . 'files/!kerberos' # the store wants to see a ticket, too
    cp www/a.ffm www/valid.ffm files
    store
    ask_for_tickets
    nn="webhdfs://localhost:$namenode/!kerberos"
    echo 'webhdfs_kerberos = true' >ticket
    echo 'webhdfs_user = hdfs' >plain
    chmod 600 ticket plain

    expect 0 kinit -k -t alice.keytab alice
    learn kerberos "$nn" data.secrets=ticket "export.to=$nn/published" export.every=1epoch
    cmp disk.id kerberos.id || fail "another model with Kerberos"
    expect 0 tnet-export -q run.yaml run.dir=kerberos data.secrets=ticket --to "$nn/exported"
    id=$(cat disk.id)
    for to in exported published; do
        for file in "kerberos.export/$id"/*; do
            cmp "files/$to/$id/${file##*/}" "$file" || fail "$to: ${file##*/} is not the local file"
        done
    done
    expect 0 tnet-eval -q run.yaml run.dir=kerberos data.secrets=ticket --data "$nn/v*.ffm"

    refused plain "webhdfs_kerberos = true"
    expect 0 kinit -k -t bob.keytab bob
    refused ticket "the server refuses the Kerberos ticket (401)"
    expect 0 kinit -l 1s -k -t alice.keytab alice
    sleep 2
    refused ticket "there is no ticket: Ticket expired"
    expect 0 kdestroy
    refused ticket "and there is no ticket: "
    echo "stores: with tickets of a KDC, taken by Apache, the model of the files and exports as here; none without a good one"
}

if command -v nginx >null && command -v openssl >null; then
    try_nginx
else
    echo "stores: no nginx or openssl (Debian: nginx-light), http is tried with a server of our own alone"
fi
PATH=$PATH:/usr/sbin
if command -v krb5kdc >null && command -v kadmin.local >null && command -v kinit >null && [ -e /usr/lib/apache2/modules/mod_auth_gssapi.so ]; then
    try_kerberos
else
    echo "stores: no KDC or Apache (Debian: krb5-kdc krb5-admin-server krb5-user libapache2-mod-auth-gssapi), Kerberos is not tried"
fi
try_moto
