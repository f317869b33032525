/* test_predict.c - predictions, one line per row whatever the batch, and fetched nodes. */
#include "train/eval/predict.h"

#include "support/test.h"

#include "exportkit.h"
#include "train/checkpoint/checkpoint.h"
#include "train/eval/evaluate.h"
#include "train/eval/node_files.h"
#include "train/step/worker.h"

static exportkit k;
static tn_worker *w;
static const char *fetched[] = {"deep.1", "logit"};

GROUP_SET_UP
{
    tn_error err = {0};
    tn_saved which;
    exportkit_open(&k, "{type: widedeep, hidden: [5]}", NULL);
    exportkit_train(&k);
    PATH_IN(path, k.dir, "run");
    const tn_worker_opts opts = {.training = true, .fetch = fetched, .n_fetch = 2};
    fail_if(tn_worker_new(&w, k.plan, &opts, &k.binder, &err) != TN_OK ||
                tn_checkpoint_load(path, w, &which, &err) != TN_OK,
            "%s", err.text);
}

GROUP_TEAR_DOWN
{
    tn_worker_free(w);
    exportkit_close(&k);
}

static void predict(const tn_strs *paths, const char *file, double sampling)
{
    tn_error err = {0};
    tn_predictions *p = NULL;
    tn_evaluation out CLEANUP(tn_evaluation_done);
    const tn_predictions_opts opts = {.path = file, .sampling = sampling};
    assert_int_equal(tn_predictions_open(&p, &opts, &err), TN_OK);
    tn_eval_request request = {
        .paths = paths, .want_ids = true, .sink = tn_predictions_sink, .sink_arg = p};
    fail_if(tn_evaluate(w, &request, &out, &err) != TN_OK ||
                tn_predictions_commit(p, &err) != TN_OK,
            "%s", err.text);
}

static uint32_t lines_in(const tn_text *t)
{
    uint32_t n = 0;
    for (size_t i = 0; i < t->size; i++) {
        n += t->data[i] == '\n';
    }
    return n;
}

static void read_all(const char *path, tn_text *out)
{
    tn_error err = {0};
    tn_text_clear(out);
    assert_ok(tn_file_read_all(path, 1 << 26, out, &err), err.text);
}

/* C2: difacto's prediction hangs after 4,600 of 50,000 rows. */
TEST(c2_every_row_has_a_line_whatever_the_batch)
{
    tn_text first CLEANUP(tn_text_done) = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    char path[300];
    uint32_t batch = k.run.eval.batch;
    for (uint32_t rows = 1; rows <= batch; rows++) {
        (void)snprintf(path, sizeof path, "%s/pred-%u.tsv", k.dir, rows);
        k.run.eval.batch = rows;
        predict(&k.run.data.valid, path, 1);
        read_all(path, rows == 1 ? &first : &text);
        if (rows > 1) {
            assert_int_equal(lines_in(&text), 49);
            assert_int_equal(text.size, first.size);
        }
    }
    assert_int_equal(lines_in(&first), 49);
    assert_memory_equal(first.data, "id\tlabel\tweight\tlogit\tpctr\n", 27);
}

TEST(a_line_says_where_its_record_is)
{
    uint32_t n = 0;
    tn_text text CLEANUP(tn_text_done) = {0};
    float *logits FREED(tn_free) = exportkit_trainer_logits(&k, &n);
    PATH_IN(path, k.dir, "pred.tsv");
    predict(&k.run.data.valid, path, 0.1);
    read_all(path, &text);
    const char *at = strchr(text.data, '\n') + 1;
    unsigned long long offset = strlen(exportkit_header);
    for (uint32_t i = 0; i < n; i++) {
        unsigned source = 0;
        unsigned long long place = 0;
        float label = 0;
        float weight = 0;
        float logit = 0;
        float pctr = 0;
        assert_int_equal(sscanf(at, "%u:%llu\t%f\t%f\t%f\t%f\n", &source, &place, /* NOLINT */
                                &label, &weight, &logit, &pctr),
                         6);
        assert_true(source == 0 && weight == 1 && (label == 0 || label == 1)); /* NOLINT */
        if (i < 8) {
            assert_int_equal(place, offset);
            offset += strlen(exportkit_edge_lines[i]);
        }
        float want = logits[i] + logf(0.1F);
        assert_true(fabsf(logit - want) <= 1e-6F * fmaxf(1, fabsf(want)));
        assert_true(fabsf(pctr - 1 / (1 + expf(-logit))) <= 1e-6F);
        at = strchr(at, '\n') + 1;
    }
}

TEST(every_source_has_a_file)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    const char *item[] = {k.run.data.valid.item[0], k.run.data.train.item[0]};
    const tn_strs paths = {2, item};
    PATH_IN(path, k.dir, "two.tsv");
    PATH_IN(other, k.dir, "two.1.tsv");
    predict(&paths, path, 1);
    read_all(path, &text);
    uint32_t n = lines_in(&text);
    read_all(other, &text);
    assert_int_equal(n + lines_in(&text), 48 + 600 + 2);
    assert_true(n == 49 || n == 601);
    assert_non_null(strstr(text.data, "\n1:"));
}

TEST(a_pass_that_fails_leaves_nothing)
{
    tn_error err = {0};
    tn_predictions *p = NULL;
    tn_evaluation out;
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t before = 0;
    uint32_t after = 0;
    const atomic_bool stop = true;
    assert_int_equal(tn_dir_list(k.dir, &names, &before, &err), TN_OK);
    PATH_IN(path, k.dir, "none.tsv");
    const tn_predictions_opts opts = {.path = path, .sampling = 1};
    assert_int_equal(tn_predictions_open(&p, &opts, &err), TN_OK);
    tn_eval_request request = {.paths = &k.run.data.valid,
                               .want_ids = true,
                               .sink = tn_predictions_sink,
                               .sink_arg = p,
                               .stop = &stop};
    assert_int_equal(tn_evaluate(w, &request, &out, &err), TN_E_STOPPED);
    tn_predictions_abandon(p);
    tn_text_clear(&names);
    assert_int_equal(tn_dir_list(k.dir, &names, &after, &err), TN_OK);
    assert_int_equal(before, after);
}

TEST(nodes_are_fetched)
{
    static const char script[] =
        "import sys,zipfile,struct,ast\n"
        "z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None\n"
        "def npy(n):\n"
        "  b=z.read(n+'.npy'); k,=struct.unpack('<H',b[8:10])\n"
        "  return ast.literal_eval(b[10:10+k].decode()), b[10+k:]\n"
        "h,d=npy('deep.1'); assert h['shape']==(48,5) and len(d)==48*5*4, h\n"
        "v=struct.unpack('<240f',d); assert min(v)>=0 and max(v)>0\n"
        "h,l=npy('logit'); assert h['shape']==(48,1)\n"
        "h,i=npy('id'); w=int(h['descr'][2:]); assert h['shape']==(48,)\n"
        "ids=[i[k*w:k*w+w].rstrip(b'\\0').decode() for k in range(48)]\n"
        "p=[x.split('\\t') for x in open(sys.argv[2]).read().splitlines()[1:]]\n"
        "assert ids==[x[0] for x in p]\n"
        "L=struct.unpack('<48f',l); assert all(abs(a-float(x[3]))<1e-6 for a,x in zip(L,p))\n";
    char command[1000];
    tn_error err = {0};
    tn_fetch *f = NULL;
    tn_evaluation out;
    const tn_strs nodes = {2, fetched};
    PATH_IN(npz, k.dir, "fetch.npz");
    PATH_IN(tsv, k.dir, "fetch.tsv");
    PATH_IN(program, k.dir, "read.py");
    const tn_fetch_kind *kind = tn_fetch_built();
    if (kind == NULL) {
        skip(); /* src/extra/arrays is not built */
        return;
    }
    assert_int_equal(kind->open(&f, npz, &nodes, &err), TN_OK);
    tn_eval_request request = {
        .paths = &k.run.data.valid, .want_ids = true, .sink = kind->sink, .sink_arg = f};
    fail_if(tn_evaluate(w, &request, &out, &err) != TN_OK || kind->commit(f, &err) != TN_OK, "%s",
            err.text);
    tn_evaluation_done(&out);
    predict(&k.run.data.valid, tsv, 1);
    if (system("python3 -c 'import zipfile' >/dev/null 2>&1") != 0) { /* NOLINT */
        skip();
    }
    assert_int_equal(tn_file_replace(program, script, sizeof script - 1, &err), TN_OK);
    (void)snprintf(command, sizeof command, "python3 %s %s %s", program, npz, tsv);
    assert_int_equal(system(command), 0); /* NOLINT */
}

TEST(an_export_is_judged_like_its_checkpoint)
{
    tn_error err = {0};
    tn_exported_model *b = NULL;
    tn_evaluation mine CLEANUP(tn_evaluation_done) = {0};
    tn_evaluation theirs CLEANUP(tn_evaluation_done) = {0};
    tn_exported out = exportkit_export(&k);
    tn_eval_request request = {.paths = &k.run.data.valid};
    if (tn_exported_model_open(&b, out.path, &(tn_exported_model_opts){0}, &err) != TN_OK ||
        tn_evaluate(w, &request, &mine, &err) != TN_OK ||
        tn_evaluate_export(b, &k.run, &request, &theirs, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    double auc = tn_metrics_get(mine.metrics, "auc");
    double loss = tn_metrics_get(mine.metrics, "logloss");
    assert_true(auc > 0 && auc < 1);
    assert_true(fabs(auc - tn_metrics_get(theirs.metrics, "auc")) < 1e-6);
    assert_true(fabs(loss - tn_metrics_get(theirs.metrics, "logloss")) < 1e-6);
    assert_int_equal(theirs.counts.records, mine.counts.records);
    tn_exported_model_close(b);
}
