"""serve_check.py - tritonclient against tnet-serve: ADDRESS ROWS SCORES, the last as tnet-score prints them."""
import sys

import numpy
import tritonclient.http
from tritonclient.utils import InferenceServerException

address, rows, scores = sys.argv[1:]
names, *lines = open(rows).read().split()
names = names.split(",")
table = numpy.array([line.split(",") for line in lines])
want = numpy.array(open(scores).read().split(), dtype=numpy.float32)
client = tritonclient.http.InferenceServerClient(address)
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("ads")
described = client.get_model_metadata("ads")
assert [i["name"] for i in described["inputs"]] == ["s0", "s1", "s2"] and described["outputs"][0]["name"] == "pctr", described
assert client.get_model_repository_index()[0]["name"] == "ads"


def ask(kind, binary):
    inputs = []
    for i, name in enumerate(names):
        if name == "label":
            continue
        values = table[:, i].astype(object) if kind == "BYTES" else table[:, i].astype(numpy.int64).reshape(-1, 1)
        inputs.append(tritonclient.http.InferInput(name, values.shape, kind))
        inputs[-1].set_data_from_numpy(values, binary_data=binary)
    output = tritonclient.http.InferRequestedOutput("pctr", binary_data=binary)
    return client.infer("ads", inputs, outputs=[output], request_id="7")


for kind in "INT64", "BYTES":
    for binary in True, False:
        answer = ask(kind, binary)
        have = answer.as_numpy("pctr").astype(numpy.float32)
        assert (have == want).all(), (kind, binary, have[:5], want[:5])
        assert answer.get_response()["id"] == "7"
        assert answer.get_response()["model_version"] == described["versions"][0]
try:
    client.infer("none", [])
    sys.exit("a model that is not there answers")
except InferenceServerException as e:
    assert "there is no model 'none'" in str(e), e
