"""serve.py - the client of serve.sh: one part for each word of the command line."""
import http.client
import json
import os
import signal
import socket
import struct
import sys
import threading
import time


def fail(text):
    sys.exit("serve.py: " + text)


def need(condition, text):
    if not condition:
        fail(text)


def ask(port, path, body=None, headers=None, method=None):
    """One request on a connection of its own: code, body, headers."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
    r = c.getresponse()
    answer = r.status, r.read(), r.headers
    c.close()
    return answer


def raw(port, data, wait=5.0):
    """All that comes back for these bytes until the connection ends, or nothing comes for a while."""
    s = socket.create_connection(("127.0.0.1", port), timeout=wait)
    got = b""
    try:
        s.sendall(data)
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError:  # nothing comes any more, or the server has closed before it read all
        pass
    s.close()
    return got


def post(path, body, more=b""):
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (path, len(body), more) + body


def scores(port, *formats):
    """Served scores are those of tnet-score, digit by digit."""
    for f in formats:
        want = open("scores." + f).read()
        rows = open("rows." + f, "rb").read()
        code, body, headers = ask(port, "/score?model=" + f, rows)
        need(code == 200, "%s: %d %s" % (f, code, body))
        need(body.decode() == want, "%s: other scores than tnet-score's" % f)
        version = json.loads(ask(port, "/v1/models/" + f)[1])["model_version_status"][0]["version"]
        need(headers["Tnet-Model-Version"] == version, "%s: another version" % f)
    want = open("scores.csv").read().split()
    rows = [json.loads(line) for line in open("rows.jsonl")]
    columns = {k: [r[k] for r in rows] for k in rows[0]}
    answers = [
        ask(port, "/v1/models/csv:predict", json.dumps({"instances": rows}, indent=1))[1],
        ask(port, "/v1/models/csv:predict", json.dumps({"inputs": columns}))[1],
        ask(port, "/invocations?model=csv", json.dumps({"dataframe_records": rows}), {"Content-Type": "application/json"})[1],
        ask(port, "/invocations?model=csv", json.dumps({"dataframe_split": {"columns": list(rows[0]), "data": [list(r.values()) for r in rows]}}),
            {"Content-Type": "application/json"})[1],
    ]
    for a in answers:
        a = json.loads(a, parse_float=str)
        need(a.get("predictions", a.get("outputs")) == want, "JSON has other scores than tnet-score's")
    lines = ask(port, "/invocations?model=csv", open("rows.csv", "rb").read(), {"Content-Type": "text/csv"})[1]
    need(lines.decode().split() == want, "text/csv has other scores")
    unlabelled = "s0,s1,s2\n" + "".join("%(s0)s,%(s1)s,%(s2)s\n" % r for r in rows)
    need(ask(port, "/score?model=csv", unlabelled)[1].decode().split() == want, "rows without a label have other scores")
    tensors = [{"name": k, "shape": [len(rows)], "datatype": "INT64", "data": columns[k]} for k in columns]
    a = json.loads(ask(port, "/v2/models/csv/infer", json.dumps({"id": "7", "inputs": tensors}))[1], parse_float=str)
    need(a["outputs"][0]["data"] == want and a["id"] == "7", "tensors have other scores")
    packed = b""
    for t in tensors:
        data = struct.pack("<%dq" % len(rows), *t.pop("data"))
        t["parameters"] = {"binary_data_size": len(data)}
        packed += data
    head = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": True}}).encode()
    code, body, headers = ask(port, "/v2/models/csv/infer", head + packed, {"Inference-Header-Content-Length": str(len(head))})
    size = int(headers["Inference-Header-Content-Length"])
    values = struct.unpack("<%df" % len(rows), body[size:])
    need(["%.9g" % v for v in values] == want, "binary tensors have other scores")
    examples = {"context": {"s0": rows[0]["s0"]}, "examples": [{"s1": r["s1"], "s2": r["s2"]} for r in rows[:50]]}
    whole = [dict(r, s0=rows[0]["s0"]) for r in rows[:50]]
    shared = json.loads(ask(port, "/v1/models/csv:regress", json.dumps(examples))[1])["results"]
    alone = json.loads(ask(port, "/v1/models/csv:predict", json.dumps({"instances": whole}))[1])["predictions"]
    need(max(abs(x - y) for x, y in zip(shared, alone)) < 1e-6, "a context has other scores than whole rows")


def tasks(port):
    """Each task has a score, by its name."""
    want = [line.split() for line in open("scores.tasks")]
    rows = [dict(zip(("click", "buy", "user", "item"), line.split(","))) for line in open("rows.tasks").read().split("\n")[1:-1]]
    lines = ask(port, "/score?model=tasks", open("rows.tasks", "rb").read())[1].decode()
    need(lines == open("scores.tasks").read(), "other scores of tasks than tnet-score's")
    body = json.dumps({"instances": [{"user": r["user"], "item": r["item"]} for r in rows]})
    a = json.loads(ask(port, "/v1/models/tasks:predict", body)[1], parse_float=str)["predictions"]
    need([[p["click"], p["buy"]] for p in a] == want, "JSON has other scores of tasks")
    body = json.dumps({"signature_name": "buy", "context": {"user": rows[0]["user"]}, "examples": [{"item": rows[0]["item"]}]})
    a = json.loads(ask(port, "/v1/models/tasks:regress", body)[1])["results"]
    need(abs(a[0] - float(want[0][1])) < 1e-6, "a signature names no task")
    tensors = [{"name": k, "shape": [1], "datatype": "BYTES", "data": [rows[0][k]]} for k in ("user", "item")]
    a = json.loads(ask(port, "/v2/models/tasks/infer", json.dumps({"inputs": tensors, "outputs": [{"name": "buy"}]}))[1], parse_float=str)
    need([(o["name"], o["data"]) for o in a["outputs"]] == [("buy", [want[0][1]])], "an output is no task: %r" % a)
    outputs = json.loads(ask(port, "/v2/models/tasks")[1])["outputs"]
    need([o["name"] for o in outputs] == ["click", "buy"], "the tasks are not described")


def clients(port):
    """Pipelining, slow clients, half bodies, chunks: each gets its answer, and nobody else is harmed."""
    body = b'{"instances":[{"s0":2}]}'
    two = raw(port, post(b"/v1/models/csv:predict", body) + post(b"/v1/models/csv:predict", body, b"Connection: close\r\n"))
    need(two.count(b"HTTP/1.1 200 OK") == 2, "two requests at once: %r" % two)
    chunked = b"POST /v1/models/csv:predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    for i in range(len(body)):
        chunked += b"1\r\n" + body[i:i + 1] + b"\r\n"
    need(b" 200 OK" in raw(port, chunked + b"0\r\n\r\n"), "chunks are not read")
    for cut in (5, 60, 120):  # within the line, the head, the body
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(post(b"/v1/models/csv:predict", body)[:cut])
        s.close()
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    for byte in post(b"/v1/models/csv:predict", body, b"Connection: close\r\n"):
        s.sendall(bytes([byte]))
        time.sleep(0.002)
    need(b" 200 OK" in s.recv(4096), "a slow client is not answered")
    need(b" 400 " in raw(port, b"GET / HTTP/1.1\r\nno header\r\n\r\n"), "a header that is none is not refused")
    need(b" 200 " not in raw(port, b"nonsense\r\n\r\n"), "a request that is none is answered")
    expect = b"Expect: 100-continue\r\nConnection: close\r\n"
    need(b" 200 OK" in raw(port, post(b"/v1/models/csv:predict", body, expect)), "100-continue is not answered")
    need(ask(port, "/ready")[0] == 200, "not ready")
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(20):  # one connection
        c.request("POST", "/v1/models/csv:predict", body)
        r = c.getresponse()
        need(r.status == 200 and r.read(), "a connection is not kept")
    code, body, headers = ask(port, "/metrics")
    need(b'tnet_requests_total{path="predict",code="200"}' in body, "no metrics: %r" % body)
    need(headers["Content-Type"].startswith("text/plain; version=0.0.4"), "metrics of another type")


def swaps(port, *versions):
    """LATEST changes under load: no request fails, and each answer is of the version that it names."""
    rows = open("rows.jsonl").read().splitlines()[:20]
    want = {v: open(f).read().split()[:20] for v, f in zip(versions, ("scores.csv", "scores.other"))}
    need(want[versions[0]] != want[versions[1]], "both versions have the same scores")
    body = '{"instances":[' + ",".join(rows) + "]}"
    stop = threading.Event()
    wrong = []
    seen = [set(), set(), set()]

    def client(mine):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not stop.is_set():
            try:
                c.request("POST", "/v1/models/csv:predict", body)
                r = c.getresponse()
                a = json.loads(r.read(), parse_float=str)
                version = a["model_version"]
                if r.status != 200 or a["predictions"] != want[version] or r.headers["Tnet-Model-Version"] != version:
                    wrong.append(str(a)[:200])
                mine.add(version)
            except Exception as e:  # whatever it is, a request has failed
                wrong.append(repr(e))
                return

    threads = [threading.Thread(target=client, args=(mine,)) for mine in seen]
    for t in threads:
        t.start()
    for i in range(20):
        with open("export.csv/LATEST.new", "w") as f:
            f.write(versions[(i + 1) % 2] + "\n")
        os.rename("export.csv/LATEST.new", "export.csv/LATEST")
        deadline = time.time() + 20
        while json.loads(ask(port, "/v1/models/csv")[1])["model_version_status"][0]["version"] != versions[(i + 1) % 2]:
            need(time.time() < deadline, "version %s is not published" % versions[(i + 1) % 2])
            time.sleep(0.01)
    stop.set()
    for t in threads:
        t.join()
    need(not wrong, "%d requests failed: %s" % (len(wrong), wrong[:3]))
    need(all(len(mine) == 2 for mine in seen), "the load has not seen both versions")
    need(b'tnet_model_swaps_total{model="csv",result="done"} 20' in ask(port, "/metrics")[1], "20 swaps are not counted")


def shift(port, version, log, says):
    """A version that is judged by the last requests, and stays out."""
    before = json.loads(ask(port, "/v1/models/ads")[1])["model_version_status"][0]["version"]
    need(version != before, "the version is served already")
    need(ask(port, "/score", open("rows.csv", "rb").read())[0] == 200, "rows are not scored")
    with open("export.csv/LATEST.new", "w") as f:
        f.write(version)
    os.rename("export.csv/LATEST.new", "export.csv/LATEST")
    deadline = time.time() + 20
    while b'swaps_total{model="ads",result="failed"} 1' not in ask(port, "/metrics")[1]:
        need(time.time() < deadline, "the version is not judged: " + open(log).read())
        time.sleep(0.02)
    need(says in open(log).read(), "the log has no '%s': %s" % (says, open(log).read()))
    code, _, headers = ask(port, "/score", open("rows.csv", "rb").read())
    need(code == 200 and headers["Tnet-Model-Version"] == before, "another version serves")


def drains(port, pid):
    """A request that has begun before SIGTERM is answered after it."""
    body = b'{"instances":[{"s0":2}]}'
    data = post(b"/v1/models/csv:predict", body)
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    s.sendall(data[:-4])
    deadline = time.time() + 10
    while ask(port, "/ready")[0] != 200:
        need(time.time() < deadline, "not ready")
    time.sleep(0.2)
    os.kill(int(pid), signal.SIGTERM)
    while ask(port, "/ready")[0] != 503:
        need(time.time() < deadline, "ready after SIGTERM")
        time.sleep(0.02)
    s.sendall(data[-4:])
    answer = s.recv(4096)
    need(b" 200 OK" in answer and b"Connection: close" in answer, "a request in flight is cut: %r" % answer)


def limits(port):
    """Over a limit: the code, one sentence, and no part of an answer."""
    def refused(answer, code, says):
        need(answer.startswith(b"HTTP/1.1 %d " % code), "not %d: %r" % (code, answer))
        body = answer.split(b"\r\n\r\n", 1)[1]
        need(says in json.loads(body)["error"], "not '%s': %r" % (says, body))

    path = b"/v1/models/ads:predict"
    close = b"Connection: close\r\n"
    refused(raw(port, post(path, b" " * 3000, close)), 413, "a body of more than 2000 bytes")
    chunk = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" % path
    refused(raw(port, chunk + b"bb8\r\n" + b" " * 3000 + b"\r\n0\r\n\r\n"), 413, "a body of more than 2000 bytes")
    refused(raw(port, post(path, b'{"instances":[{},{},{},{},{},{}]}', close)), 413, "more than 5 rows")
    refused(raw(port, post(path, b"{}", b"Content-Encoding: gzip\r\n" + close)), 415, "Content-Encoding")
    refused(raw(port, b"GET /no HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 404, "there is no path '/no'")
    refused(raw(port, b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path), 405, "takes POST")
    head = raw(port, b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 40000 + b"\r\n\r\n", 3)
    need(b" 431 " in head.split(b"\r\n")[0] or head == b"", "a long head is read: %r" % head)

    begun = socket.create_connection(("127.0.0.1", port), timeout=20)
    begun.sendall(post(path, b"{}")[:-1])
    time.sleep(0.1)
    refused(raw(port, post(path, b"{}", close)), 429, "more than 1 requests at once")
    need(ask(port, "/health")[0] == 200, "health is not asked for any more")
    late = begun.recv(4096)
    refused(late, 408, "the request took too long")
    need(begun.recv(4096) == b"", "a late connection is kept")

    dribble = socket.create_connection(("127.0.0.1", port), timeout=20)
    dribble.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\n" % path)
    began = time.time()
    try:
        while time.time() - began < 10:
            dribble.sendall(b"X: y\r\n")
            time.sleep(0.05)
        fail("a head may dribble for ever")
    except OSError:
        pass
    need(time.time() - began < 5, "a head may dribble for long")
    metrics = ask(port, "/metrics")[1]
    for why, least in ((b"body", 2), (b"queue", 1), (b"time", 2)):
        n = int(metrics.split(b'tnet_rejected_total{why="%s"} ' % why)[1].split(b"\n")[0])
        need(n >= least, "%s: %d rejections" % (why, n))
    idle = socket.create_connection(("127.0.0.1", port), timeout=20)
    began = time.time()
    need(idle.recv(1) == b"", "an idle connection gets bytes")
    need(time.time() - began < 10, "an idle connection is kept")


def unix(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(path)
    s.sendall(post(b"/v1/models/ads:predict", b'{"instances":[{"s0":2}]}', b"Connection: close\r\n"))
    need(b'"predictions":[0.' in s.recv(4096), "no answer at the Unix socket")


def vertex(port):
    a = json.loads(ask(port, "/vertex", '{"instances":[{"s0":2}]}', {"Content-Type": "application/json"})[1])
    need(len(a["predictions"]) == 1, "no prediction at the route of the platform")


parts = {"scores": scores, "tasks": tasks, "clients": clients, "swaps": swaps, "shift": shift, "drains": drains, "limits": limits, "unix": unix, "vertex": vertex}
where = sys.argv[2]
parts[sys.argv[1]](where if sys.argv[1] == "unix" else int(where), *sys.argv[3:])
