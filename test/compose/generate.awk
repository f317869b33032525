# generate.awk - one valid configuration over all features, drawn by a seed and an index.
#
#     awk -v seed=7 -v place=12 -v out=FOLDER -f generate.awk
#
# writes into FOLDER
#     c.yaml        the configuration, with paths that are relative to FOLDER
#     source.yaml   the columns of rows.csv that it takes, for tnet-data convert
#     plan          shell variables: what data to make, how to disturb the run, which judges may look at it
#
# What does not go together is left out here, each pair beside the sentence by which the program refuses it.

function below(n) {
    state = state * 16807 % 2147483647
    return int(state / 7) % n
}
function chance(percent) { return below(100) < percent }
function pick(text, words, n) {
    n = split(text, words, " ")
    return words[1 + below(n)]
}
function put(section, text) { sections[section] = sections[section] (sections[section] == "" ? "" : ", ") text }
function plan(name, value) { printf "%s='%s'\n", name, value >(out "/plan") }
function some(percent, section, text) { if (chance(percent)) put(section, text) }

# ---- the data ----
function draw_data() {
    format = pick("csv csv csv tsv jsonl tfrecord vw libsvm libffm criteo")
    named = format ~ /^(csv|tsv|jsonl|tfrecord|vw)$/
    columns = format ~ /^(csv|tsv|jsonl|tfrecord)$/
    days = chance(20) ? 2 + below(3) : 0
    gz = chance(15)
    rows = pick(days ? "150 200 300" : "300 300 400 600 1000 1500")
    if (format == "criteo" && rows > 600) rows = 600
    two_files = chance(25)
    peers = pick("1 1 1 1 1 1 2 3")
    loss = pick("bce bce bce bce bce bce bce bce focal hinge squared_hinge mse mae huber pairwise")
    # "loss pairwise compares the rows of a group": vw, libffm and criteo have no group
    if (loss == "pairwise" && !(columns || format == "libsvm")) loss = "bce"
    clicks = loss ~ /^(bce|focal)$/
    numbers = loss ~ /^(mse|mae|huber|pairwise)$/

    put("data", "format: " format)
    ending = format (gz ? ".gz" : "")
    if (days) {
        put("data", two_files ? "train: \"{day:%Y%m%d}/part-*." ending "\"" : "train: \"{day:%Y%m%d}/part-0." ending "\"")
        put("data", "days: 2026-11-01..2026-11-0" days)
    } else if (two_files)
        put("data", chance(50) ? "train: [train-0." ending ", train-1." ending "]" : "train: train-*." ending)
    else
        put("data", "train: train-0." ending)

    valid = pick(days ? "none files next next" : "none files files files share share last")
    if (valid == "last" && gz) valid = "share" # "{last: ..} counts bytes, and the file is compressed"
    if (valid == "files") put("data", "valid: valid." ending)
    if (valid == "next") put("data", "valid: next, valid_rows: " pick("50 100 1000"))
    if (valid == "share") put("data", "valid: {share: " pick("10% 0.2 30%") "}")
    if (valid == "last") put("data", "valid: {last: " pick("10% 0.2 30%") "}")
    tested = chance(50)
    if (tested) put("data", "test: test." ending)

    weighted = (columns || format ~ /^lib/) && chance(25)
    grouped = loss == "pairwise" || (columns || format == "libsvm") && chance(15)
    identified = (columns || format == "vw") && chance(25)
    if (columns && weighted) put("data", "weight: wt")
    if ((columns || format == "libsvm") && grouped) put("data", "group: g")
    if (identified) put("data", "record_id: rid")
    if (format == "tsv") put("data", "header: true")
    if (format ~ /^(csv|tsv)$/) put("data", "list: \"|\"")
    some(columns && loss != "pairwise" ? 10 : 0, "data", "label: " pick("{column:~label,~threshold:~0.5} {column:~label,~values:~{\"1\":~1,~\"0\":~0}}"))
    gsub(/~/, " ", sections["data"])
    if (format == "csv") some(10, "data", "quote: multiline")
    if (format == "csv" && chance(15)) put("data", "columns: [label, u, n, h, w, x, y, t, tw, s, d, a, b, c, wt, g, rid, buy, v]")
    if (columns && format != "tfrecord") some(15, "data", "null: [\"\", \"north\"]")
    if (format == "vw") put("data", "unknown_field: ignore") # "no slot takes namespace"
    if (format ~ /^(libsvm|libffm)$/) some(30, "data", "unknown_field: ignore")
    if (format == "libffm") some(25, "data", "row_norm: true")
    some(40, "data", "shuffle: " pick("0 0 20 100 5000"))
    some(40, "data", "part_bytes: " pick("2kB 5kB 20kB 64KiB"))
    some(15, "data", "readers: " pick("1 2 3"))
    # "scores of loss '..' cannot be corrected for it"
    sampled = loss == "bce" && chance(20)
    if (sampled) put("data", "negative_sampling: " pick("0.3 0.5 0.8"))
    # Some rows of criteo and libsvm come in the like of them; crb has no groups and is compressed within.
    if (chance(40)) {
        if (format == "criteo") kind = "avazu"
        if (format == "libsvm" && !gz && !grouped && valid != "last") kind = "crb"
    }
    if (kind != "") gsub(format, kind, sections["data"])
    if (kind != "") gsub(format, kind, ending)
    some(5, "data", "bad_records_max: " pick("5 1%"))
    plan("format", kind == "" ? format : kind); plan("ending", ending); plan("rows", rows); plan("days", days); plan("two_files", two_files)
    plan("valid", valid); plan("tested", tested); plan("peers", peers)
}

# ---- the slots ----
function option(text) { slot = slot ", " text }
function key_options() {
    if (any_width && chance(12)) option("dim: " pick("1 3 6"))
    if (model ~ /^(widedeep|deepfm)$/ && k > 3 && chance(6)) option("uses: " pick("[wide] [deep]"))
    # "keys that wait read as zeros, and 'missing: init' says that they read as they would begin: one of the two"
    if (!waits && chance(8)) option("missing: init")
    else if (chance(6)) option("admission: {threshold: " pick("2 3") "}")
    if (chance(8)) option("lr: " pick("0.01 0.3"))
    if (chance(6) && !decayed) option("l2: " pick("0 0.01"))
    if (chance(6)) option("optimizer: " pick("adagrad ftrl adam sgd"))
    if (chance(5)) option("expiry: {show_below: 1.5}")
    if (chance(5)) option("decay: 0.9")
    if (chance(6)) option("init: " pick("{uniform:~[-0.1,0.1]} {constant:~0.05} {normal:~[0,~0.1]}"))
}
function list_options() {
    if (chance(40)) pooled = 1
    if (pooled) option("pool: " pick("sum mean sqrtn max" (any_width ? " concat(2)" : "")))
    if (chance(25)) option("max_len: " pick("1 2 3"))
    if (chance(20)) option("keep: first")
    if (chance(15)) option("duplicates: sum")
    if (chance(15)) option("absent: key")
}
function finish_slot(name) {
    gsub(/~/, " ", slot)
    if (kind == "avazu") { sub(name, avazu[name], slot); name = avazu[name] }
    slots[n_slots++] = "{" slot "}"
    names[n_slots - 1] = name
}
function number_options(name) {
    how = pick("key key key value value weighted")
    if (how == "value") {
        option("as: value")
        if (chance(60)) option("transform: " pick("zscore identity log {minmax:~[-5,50]} {zscore:~[3,7]}"))
        if (chance(30)) option("absent: " pick("0 1.5")) # "'absent' is not a number: 'none'"
        numeric = 1
    } else if (how == "weighted") {
        option("as: weighted")
    } else {
        if (chance(70)) option("transform: " pick("quantiles {quantiles:~8} {buckets:~[0,2,5.5,9]} ln2_bucket"))
        key_options()
        sliced = name
    }
}
function draw_slots(   all, n) {
    split("C1 site_id C2 app_id C5 site_domain C6 device_id C9 site_category C14 app_domain C17 device_model I1 banner_pos I2 C14 I5 C17", list, " ")
    for (k = 1; k < 20; k += 2) avazu[list[k]] = list[k + 1]
    all = format == "criteo" ? "C1 C2 C5 C6 C9 C14 C17 I1 I2 I5" : format == "libsvm" ? "a b c x" : format == "libffm" ? "u a b x t" : "u n h w x y t s d"
    n = split(all, list, " ")
    if (format == "criteo" && chance(30)) { n = 0; sliced = kind == "avazu" ? avazu["C9"] : "C9" }
    for (k = 1; k <= n; k++) {
        # Formats that refuse what no slot takes get all slots.
        if (named && k > 2 && chance(35) || format == "criteo" && k > 2 && chance(50)) continue
        name = list[k]
        slot = "name: " name
        if (format == "libffm") option("field: " k - 1)
        if (format == "libsvm") option("range: " (name == "x" ? "[3000, 3001]" : "[" (k - 1) * 1000 ", " k * 1000 "]"))
        if (name ~ /^C/) { option("type: hex"); key_options() }
        else if (name ~ /^I/) {
            option("type: int")
            if (chance(50)) option("transform: ln2_bucket")
            else if (chance(40)) { option("as: value"); numeric = 1 }
        }
        else if (name == "h") { option("type: hex"); key_options(); if (chance(15)) option("absent: key") }
        else if (name == "w") { option("type: str"); key_options(); if (chance(15)) option("absent: key"); sliced = name }
        else if (name == "n") {
            option("type: int")
            how = pick("key key buckets value weighted")
            number["n"] = how != "key"
            if (how == "buckets") option("transform: {buckets: [-8, -3, 0, 4]}")
            if (how == "value") { option("as: value"); numeric = 1 }
            if (how == "weighted") option("as: weighted")
            if (how == "key") key_options()
        }
        else if (name == "x" || name == "y") { option("type: float"); number_options(name) }
        else if (name == "t") {
            if (columns) option("values: tw")
            if (named && chance(25)) option("share: u")
            else key_options()
            list_options()
            values = format == "vw" || format == "libffm" || columns
        }
        else if (name == "s") { option("type: str"); key_options(); list_options() }
        else if (name == "d") { option("type: int"); option("transform: " pick("hour weekday weekend")) }
        else { key_options(); if (name == "c") list_options(); sliced = name == "a" ? "a" : sliced }
        finish_slot(name)
    }
    if (named) sliced = sliced == "" ? "u" : sliced
    if (chance(20)) draw_cross()
}
# A cross of the first slot and of another that has keys for sure.
function draw_cross(   i, other) {
    for (i = 1; i < n_slots; i++) if (names[i] ~ /^(h|w|s|t|b|c|C[0-9]+|site_|app_|device_)/ && names[0] ~ /^(u|a|C1|site_id)$/) other = names[i]
    if (other == "" || !named && format != "libsvm" && format != "criteo") return
    k = n_slots + 1
    slot = "name: both, cross: [" names[0] ", " other "]"
    key_options()
    gsub(/~/, " ", slot)
    slots[n_slots++] = "{" slot "}"
    names[n_slots - 1] = "both"
}

# ---- the model ----
function draw_model() {
    put("model", "type: " model)
    if (model == "graph") {
        put("model", "inputs: {deep: {embed: all}, wide: {embed: all, dim: 1}" (numeric ? ", num: {numeric: all}}" : "}"))
        put("model", "layers: [{name: x, mlp: " (numeric ? "[deep, num]" : "deep") ", hidden: [8], units: 1, batch_norm: " pick("true false") "}, {name: s, sum: wide}, {name: z, add: [x, s]}]")
        put("model", "output: z")
    } else if (model ~ /fm$/ && model != "deepfm" && model != "nfm" || model == "lr") {
        # "'within_slot' needs 'pool: sum', which slot 's' has not"
        within = model ~ /^f?fm$/ && !pooled && chance(20)
        if (within) put("model", "within_slot: true")
        if (model == "ffm") { put("model", "k: 2"); some(20, "model", "normalise: true") }
        if (model == "fwfm") { some(20, "model", "normalise: true"); some(30, "model", "linear: per_field") }
    } else {
        if (model !~ /^(afm|edcn|fcn)$/) put("model", "hidden: " pick("[8] [8,4] [16]"))
        if (model == "xdeepfm") put("model", "cin: " pick("[3] [4,2]"))
        if (model == "fibinet") some(50, "model", "bilinear: " pick("all each"))
        if (model == "onn") put("model", "k: 2")
        if (model == "autoint") { put("model", "layers: 1, units: 6"); some(30, "model", "layer_norm: true, wide: true") }
        if (model == "edcn") { some(40, "model", "bridge: " pick("add concat")) }
        if (model == "fcn") put("model", "layers: 1, shallow: 1")
        if (model == "dcnmix") put("model", "rank: 2, experts: 2")
        if (model == "dlrm") put("model", "bottom: [4]")
        if (model == "finalmlp") put("model", "hidden2: [8], heads: 2, gate_hidden: [4]")
        if (model == "finalmlp") some(30, "model", "gate: false")
        if (model == "masknet") { put("model", "blocks: 2, block_units: 8"); some(30, "model", "structure: serial") }
        if (model ~ /dcn/) put("model", "layers: " pick("1 2"))
        if (model == "dcnmix") some(50, "model", "structure: " pick("stacked cross_only"))
        if (model ~ /^(dcnv2|gdcn)$/) { some(30, "model", "rank: 2"); some(50, "model", "structure: " pick("stacked cross_only")) }
        if (model ~ /^(widedeep|deepfm)$/) some(20, "model", "head: concat")
        if (model == "nfm") some(20, "model", "pair_dropout: 0.2")
        if (model !~ /^(masknet|afm|fcn)$/) some(25, "model", "batch_norm: true")
        some(25, "model", "dropout: 0.2")
        if (model !~ /^(afm|fcn)$/) some(25, "model", "activation: " pick("tanh sigmoid prelu gelu silu dice leaky_relu softplus"))
    }
    some(15, "model", "bias_init: " pick("-1 0"))
    some(10, "model", "init: " pick("he_uniform xavier_normal {uniform:~[-0.1,0.1]}"))
    gsub(/~/, " ", sections["model"])
    if (loss != "bce" || chance(20)) {
        put("loss", "type: " loss)
        if (loss == "bce") { some(30, "loss", "pos_weight: 2"); some(30, "loss", "label_smoothing: 0.05") }
        some(15, "loss", "reduction: " pick("sum rows"))
    }
}

# ---- rows, and how all of it is trained ----
function draw_table() {
    put("embedding", "dim: " (model == "dlrm" ? 4 : pick("2 4 4 5")))
    if (!within) some(15, "embedding", "pool: " pick("mean sqrtn sum"))
    if (waits) put("embedding", "admission: " pick("{threshold:~2} {threshold:~3} {probability:~0.5} {threshold:~2,~filter:~{type:~bloom,~keys:~2000}} {threshold:~2,~probability:~0.7}"))
    some(20, "embedding", "expiry: " pick("{ttl_days:~1} {show_below:~2} {score_below:~0.3} {norm_below:~0.01} {ttl_days:~2,~show_below:~3,~combine:~and}"))
    some(15, "embedding", "decay: " pick("0.5 0.9 1"))
    # "no part of model 'fm' reads show and click"
    if (model !~ /^(lr|fm|ffm|fwfm|nfm|afm|edcn|graph)$/) some(10, "embedding", "cvm: true")
    if (chance(15)) put("embedding", "memory: " pick("none 100MB"))
    else if (chance(15)) put("embedding", "memory: 16MB, on_full: evict")
    reset = peers == 1 && chance(8) # "embedding.reset is for a run of one process"
    if (reset) put("embedding", "reset: epoch")
    gsub(/~/, " ", sections["embedding"])
    if (!days) some(15, "run", "day: 2026-11-07")
    put("run", "seed: " below(100000))
}
# "its groups are rows; use ftrl", "sums of rows fade; use adagrad or rmsprop"
function rule(rows,   type, text) {
    type = pick("sgd momentum nesterov adagrad adagrad rmsprop adadelta adam adam adamw ftrl" (rows ? " group_ftrl adagrad_decay" : ""))
    text = "type: " type
    if (type ~ /^(sgd|momentum|nesterov)$/) text = text ", lr: 0.01"
    if (type == "adagrad" && rows && chance(40)) # "rowwise is for rows; dense weights have a sum each"
        text = text ", rowwise: true"
    if (type == "adagrad_decay") text = text ", every: 7"
    if (type ~ /ftrl/) text = text ", l1: " pick("0 0.01 0.1")
    else if (chance(15)) text = text (type == "adamw" ? ", wd: 0.02" : ", l2: 0.01")
    return text
}
function draw_training(   dense, sparse) {
    epochs = days ? pick("1 1 2") : pick("1 2 2 3 auto")
    put("train", "epochs: " epochs)
    batch = pick("20 32 50 100")
    put("train", "batch: " batch)
    put("train", "threads: " pick("1 1 2 3"))
    if (chance(50)) {
        dense = rule(0)
        # "ends with the run, and a run over days has no end"
        if (chance(30)) dense = dense ", schedule: " (days ? "{type: constant, warmup: 5}" : "{type: " pick("constant linear cosine polynomial exponential inverse_sqrt") ", warmup: 3}")
        put("train", "optimizer: {" dense "}")
    }
    if (chance(55)) {
        sparse = rule(1)
        # one word twice, so that a number draws the configuration that it drew before
        if (sparse !~ /ftrl/ && chance(12)) sparse = sparse (sparse ~ /l2:|wd:/ ? "" : sparse ~ /adamw/ ? ", wd: 0.01" : ", l2: 0.01") ", l2_mode: " pick("dense dense")
        if (chance(15)) sparse = sparse ", grad_scale: " pick("show sum")
        if (chance(8)) sparse = sparse ", grad_normalize: true"
        put("train", "sparse: {" sparse "}")
    }
    # "train.value_sizes needs adagrad"
    if (values && (sparse == "" || sparse ~ /type: adagrad(,|$)/)) some(20, "train", "value_sizes: {t: " pick("2 {others:~1,~3:~4}") "}")
    gsub(/~/, " ", sections["train"])
    some(10, "train", "clip: " pick("{global:~5} {row:~1} {value:~0.5}"))
    gsub(/~/, " ", sections["train"])
    if (!days && valid != "none") {
        # The monitor must fit the loss.
        best = clicks ? pick("auc logloss") : loss ~ /hinge/ ? "auc" : loss == "pairwise" ? "pairwise_accuracy" : "mae"
        if (chance(20)) put("train", "stop: {monitor: valid." best ", patience: " pick("1 2") ", restore: " pick("best best last") "}")
        if (chance(10)) put("train", "reduce_on_plateau: {factor: 0.5, monitor: valid." best "}")
    }
    # Passes that the data choose may be many.
    if (epochs == "auto" || chance(8)) put("train", "max_steps: " 3 + below(25))
    some(15, "train", "prefetch: " pick("1 5"))
}

# ---- what is judged, kept and published ----
function draw_outputs(   every) {
    some(25, "eval", "every: " pick("7steps 5steps 1epoch"))
    if (!days && valid != "none") some(20, "eval", "at: [2, 5, 9]")
    some(25, "eval", "batch: " pick("32 100 1000"))
    if (loss != "mse" && loss != "mae" && loss != "huber" && loss != "pairwise") some(20, "eval", "auc: exact")
    if (clicks && grouped) some(50, "eval", "metrics: [auc, gauc, logloss, copc]")
    if (sliced != "") some(15, "eval", "slices: [" sliced "], slices_min_rows: 10")
    # "eval.calibrate is of clicks"
    calibrate = "none"
    if (clicks && valid != "none") {
        calibrate = pick("none platt platt platt_smoothed isotonic auto")
        if (calibrate != "auto" || chance(50)) put("eval", "calibrate: " calibrate)
    }
    every = pick("1epoch auto auto 5steps 9steps never")
    saved = every != "never"
    put("checkpoint", "every: " every)
    put("checkpoint", "keep: " pick("1 2 3 50 50"))
    # "embedding.reset drops all rows, which checkpoint.delta_every cannot write"
    if (saved && !reset && chance(30)) put("checkpoint", "delta_every: " pick("3steps 4steps"))
    publish = chance(35) ? (days ? pick("day 1epoch 7steps") : pick("1epoch 7steps 12steps")) : ""
    if (publish != "") put("export", "every: " publish)
    else publish = "none"
    put("export", "to: published")
    dict = pick("tnd tnd [tnd,tsv] [tnd,resp]")
    put("export", "dict: " dict)
    some(25, "export", "values: " pick("bf16 fp16 int8 int4 1bit"))
    put("export", "loss_max: 1")
    if (dict !~ /resp/) some(10, "export", "check_groups: false")
    some(10, "export", "min_score: 0.2")
    some(15, "export", "graph: [native, onnx]")
    if (dict ~ /tsv/) some(30, "export", "state: true")
    rounded = peers > 1 && chance(30)
    if (rounded) put("cluster", "values: " pick("bf16 fp16"))
    plan("rounded", rounded)
    some(20, "compute", "gemm: own")
    put("log", "progress: false, tensorboard: " pick("false false false true"))
    plan("publish", publish); plan("checkpoints", saved || publish != "none")
}

# ---- how the run is disturbed ----
function blow(   point) {
    point = pick("step step step io.write io.fsync io.rename io.create io.unlink ckpt.begin ckpt.before_manifest ckpt.before_rename ckpt.after_rename ckpt.before_prune saver.gather export.begin export.before_latest")
    if (point == "step") return "step." below(peers) "#" 1 + below(40) ":" pick("kill stop")
    if (point ~ /^io/) return point "#" 1 + below(40) ":" pick("kill kill stop")
    return point "#" 1 + below(3) ":" pick("kill kill stop")
}
function draw_blows(   k, text) {
    for (k = 1 + below(3); k > 0; k--) text = text (text == "" ? "" : " ") blow()
    plan("blows", text)
    plan("other_threads", pick("1 2 3 4"))
    plan("other_readers", pick("1 2 3"))
    warm = !days && chance(12)
    plan("warm", warm)
    if (warm) {
        from = pick("warm {path:~warm,~dense:~none} {path:~warm,~rows:~none} {path:~warm,~rows:~[" names[0] "],~dense:~[" (model ~ /^(widedeep|deepfm|nfm|ipnn)$/ ? "deep.*" : "") "]}")
        sub(/\[\]/, "none", from)
        gsub(/~/, " ", from)
        put("checkpoint", "from: " (n_slots > 0 ? from : "warm"))
    }
    plan("change", change())
    # Ranks that run ahead of one another learn otherwise each time.
    stale = peers > 1 && chance(25)
    if (stale) put("cluster", "staleness: " pick("1 3 inf"))
    plan("stale", stale)
    draw_begin()
}

# A run that begins with the model of another program: files of an export, TensorNet's, or the text of VW's or xLearn's. run.sh makes
# them. Drawn last, so that a number draws the configuration that it drew before.
function draw_begin(   kinds, linear) {
    # An export folds batch norms into the layers before them ("does not fit the model"), and the correction for sampling into the bias.
    kinds = sections["model"] ~ /batch_norm: true/ || sampled ? "none" : "dump dump"
    # "takes models of lr, fm and ffm"
    if (format == "libsvm" && kind == "" && model ~ /^(lr|fm)$/) linear = "xlearn"
    if (format == "vw" && model == "lr") linear = "vw"
    # "a sign of TensorNet has no slot": its slots share rows, by one rule
    if (columns && format != "tfrecord" && model ~ /^(lr|fm)$/ && !within && sections["train"] !~ /sparse|value_sizes/ &&
        sections["eval"] !~ /slices/) linear = "tensornet"
    begins = days || warm ? "none" : linear != "" ? pick("none " linear " " linear) : chance(25) ? pick(kinds) : "none"
    if (begins == "dump") put("checkpoint", "from: {rows: begin/dict.tsv, dense: begin/dense.safetensors}")
    if (begins == "tensornet") put("checkpoint", "from: {tensornet: {dir: begin, map: begin.map}}")
    if (begins ~ /xlearn|vw/) put("checkpoint", "from: {" begins ": begin.txt}")
    if (begins == "tensornet") {
        n_slots = split("u:id w:str h:hex s:str", list, " ")
        for (k = 1; k <= n_slots; k++) {
            split(list[k], word, ":")
            slots[k - 1] = "{name: " word[1] ", type: " word[2] ", share: all}"
        }
        plan("change", "slots.u.duplicates=error")
    }
    plan("begins", begins); plan("model", model)
}

# Crosses, histories, several tasks and the models that came with them take the place of what was drawn. Drawn last, as above.
function draw_more(   what, keys, k, all, share) {
    what = pick("none none cross history tasks tasks pairs")
    for (k = 0; k < n_slots; k++) all = all slots[k]
    # "would keep its first values"
    if (warm && sections["checkpoint"] !~ /dense: (none|\[\])/ && model ~ /^(widedeep|deepfm|nfm|ipnn)$/)
        some(60, "train", "freeze: " pick("[deep] [deep.*.W]"))
    if (begins != "none" || warm || within || sections["embedding"] ~ /cvm/ || all ~ /dim:|uses:|concat/) return
    if (what == "cross" && columns) {
        # "which reads numbers", "which has a list"
        for (k = 0; k < n_slots; k++) if (names[k] ~ /^[uhw]$/) keys = keys (keys == "" ? "" : ", ") names[k]
        if (keys ~ /,/) slots[n_slots++] = "{name: crossed, cross: [" keys "]}"
    }
    if (what == "history" && columns) {
        slots[n_slots++] = "{name: now, column: w, type: str}"
        slots[n_slots++] = "{name: past, column: s, type: str, share: now}"
        sections["sequences"] = "words: {slots: [past], target: [now]" (chance(40) ? ", max_len: " pick("1 2 3") : "") (chance(20) ? ", keep: first" : "") "}"
        another_model(pick("din bst"))
        sub(/, graph: \[native, onnx\]/, "", sections["export"]) # "has no form of the positions of a sequence"
    }
    # "'tasks' and '..' do not go together"
    if (what == "tasks" && columns && loss != "pairwise") {
        gsub(/, label: {column: label, (threshold: 0.5|values: {[^}]*})}/, "", sections["data"])
        gsub(/valid\.mae/, "valid.auc", sections["train"])
        sub(/^, /, "", sections["eval"])
        plan("change", "slots." names[0] ".drop_zero=true")
        sections["loss"] = ""
        sections["tasks"] = "click: {label: label}, buy: {label: buy, " (share = pick("of of where")) ": click" (chance(30) ? ", weight: 0.5" : "") "}"
        another_model(pick(share == "of" ? "shared esmm mmoe ple" : "shared mmoe ple")) # "no task says of which other it is a share"
        task_history = 1
    }
    if (what == "pairs") another_model(pick("xdeepfm fibinet onn autoint afm edcn fcn dcnmix"))
}
# A vector beside the numbers, in models that read them.
function draw_vector() {
    if (!columns || begins != "none" || !chance(20)) return
    if (model !~ /^(widedeep|deepfm|dcn|dcnv2|gdcn|ipnn|dlrm|deepcrossing|finalmlp|finalnet|masknet|xdeepfm|fibinet|onn|autoint|fcn|dcnmix|din|bst|shared|mmoe|ple|esmm)$/) return
    slots[n_slots++] = "{name: v, type: vector, dim: 3" (chance(30) ? ", transform: " pick("log zscore") : "") (chance(20) ? ", absent: 0.5" : "") "}"
    vector = 1
}
# Losses of several scores of one label.
function draw_losses() {
    if (model == "graph") some(60, "model", "losses: {x: " pick("excess 0.5") ", s: " pick("excess 2 0") "}")
    if (model == "fcn") some(30, "model", "tri_loss: false")
    if (model == "din" && chance(30)) sub(/attention: \{hidden: \[4\]/, "attention: {hidden: [4], of: {words: {hidden: [3]}}", sections["model"])
}
# A history whose model learns several tasks.
function draw_task_history() {
    if (!task_history || !chance(40)) return
    slots[n_slots++] = "{name: now, column: w, type: str}"
    slots[n_slots++] = "{name: past, column: s, type: str, share: now}"
    sections["sequences"] = "words: {slots: [past], target: [now]}"
    another_model(pick("din bst"))
    some(50, "model", "tower: [4]")
    sub(/, graph: \[native, onnx\]/, "", sections["export"])
}
function another_model(type) {
    model = type
    sections["model"] = "type: " model
    if (model ~ /^(din|xdeepfm|fibinet|onn|autoint|dcnmix|shared)$/) put("model", "hidden: [8]")
    if (model ~ /^(shared|esmm|mmoe|ple)$/) put("model", "tower: [4]")
    if (model ~ /^(mmoe|ple)$/) put("model", "expert: [6]")
    if (model == "mmoe") put("model", "experts: 3")
    if (model == "bst") put("model", "attention: {heads: 1, layers: 1}")
    if (model == "din") put("model", "attention: {hidden: [4], softmax: " pick("true false") "}")
    some(30, "model", "dropout: 0.2")
}

# A word that means another row, or another score of it, in every configuration.
function change(   k) {
    k = below(4)
    if (k == 0 && loss == "bce") return "data.negative_sampling=" (sampled ? "0.9" : "0.37")
    if (k == 1 && columns && format != "tfrecord") return "data.null=[\"\",\"15\"]"
    if (k == 2 && n_slots > 0) return "slots." names[0] ".drop_zero=true"
    if (n_slots > 0) return "slots." names[1] ".duplicates=error"
    return "slots." (kind == "avazu" ? avazu["C9"] : "C9") ".drop_zero=true"
}

function section(name,   text) {
    if (sections[name] != "") print name ": {" sections[name] "}" >(out "/c.yaml")
}
function write_source(   k) {
    print "data: {format: csv, train: rows.csv, label: label, list: \"|\"" (weighted ? ", weight: wt" : "") (grouped ? ", group: g" : "") (identified ? ", record_id: rid" : "") "}" >(out "/source.yaml")
    print "slots:" >(out "/source.yaml")
    if (format == "libsvm")
        source = "name: a, range: [0, 1000];name: b, range: [1000, 2000];name: c, range: [2000, 3000];name: x, type: float, range: [3000, 3001]"
    else if (format == "libffm")
        source = "name: u, field: 0;name: a, field: 1;name: b, field: 2;name: x, type: float, field: 3;name: t, values: tw, field: 4"
    else
        # What a slot reads as a number vw must hold as one.
        source = "name: u;name: n, type: int" (format == "vw" && number["n"] ? ", as: value" : "") ";name: h, type: hex;name: w, type: str;name: x, type: float;name: y, type: float;name: t, values: tw;name: s, type: str;name: d, type: int, transform: hour" (sections["tasks"] != "" ? ";name: buy, as: value, type: int" : "") (vector ? ";name: v, type: vector, dim: 3" : "")
    n = split(source, list, ";")
    for (k = 1; k <= n; k++) print "  - {" list[k] "}" >(out "/source.yaml")
}

BEGIN {
    state = (seed * 7919 + place * 104729 + 1) % 2147483646 + 1
    for (k = 0; k < 20; k++) below(2)
    draw_data()
    waits = chance(20)
    model = pick("lr fm ffm fwfm widedeep widedeep deepfm deepfm dcn dcnv2 gdcn nfm ipnn dlrm deepcrossing finalmlp finalnet masknet xdeepfm fibinet onn autoint afm edcn fcn dcnmix graph")
    # Pairs of slots want vectors of one width.
    any_width = model ~ /^(widedeep|dcn|dcnv2|gdcn|deepcrossing|finalnet)$/
    draw_slots()
    draw_model()
    draw_table()
    draw_training()
    draw_outputs()
    draw_blows()
    draw_more()
    draw_vector()
    draw_losses()
    draw_task_history()
    put("run", "name: run, dir: a")
    print "# seed " seed ", index " place >(out "/c.yaml")
    section("run"); section("data")
    if (n_slots > 0) print "slots:" >(out "/c.yaml")
    for (k = 0; k < n_slots; k++) print "  - " slots[k] >(out "/c.yaml")
    section("sequences"); section("tasks"); section("embedding"); section("model"); section("loss"); section("train"); section("eval"); section("checkpoint")
    section("export"); section("cluster"); section("compute"); section("log")
    write_source()
}
