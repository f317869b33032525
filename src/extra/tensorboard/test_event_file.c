/* test_event_file.c - files for TensorBoard: the bytes of docs/formats.md's examples, histograms
 * and curves of known numbers, and names that no other run has. */
#include "extra/tensorboard/event_file.h"

#include "base/codec/proto.h"
#include "base/math/crc32c.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "nn/graph/graph.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "support/test.h"

static const double begun_at = 1.7e9;

/* The only file of a folder, and the payloads of its records, whose checksums must be right. */
typedef struct records {
    tn_map map;
    uint32_t n;
    tn_bytes payload[16];
} records;

static void read_records(const char *folder, records *r)
{
    char path[TN_PATH_SIZE];
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 1);
    assert_int_equal(tn_path_join(folder, tn_text_str(&names), path, NULL), TN_OK);
    assert_non_null(strstr(path, "/events.out.tfevents.1700000000."));
    assert_int_equal(tn_map_file(&r->map, path, NULL), TN_OK);
    tn_bytes left = {r->map.data, r->map.size, false};
    for (r->n = 0; left.size > 0; r->n++) {
        const char *at = left.data;
        const uint64_t size = tn_get_u64(&left);
        assert_int_equal(tn_get_u32(&left), tn_crc_mask(tn_crc32c(0, at, sizeof size)));
        r->payload[r->n] = (tn_bytes){left.data, size, false};
        assert_non_null(tn_get(&left, size));
        assert_int_equal(tn_get_u32(&left), tn_crc_mask(tn_crc32c(0, r->payload[r->n].data, size)));
    }
}

static void assert_hex(tn_bytes got, const char *want)
{
    tn_text hex CLEANUP(tn_text_done) = {0};
    for (size_t i = 0; i < got.size; i++) {
        tn_text_addf(&hex, "%02x", (unsigned char)got.data[i]);
    }
    assert_string_equal(tn_text_str(&hex), want);
}

/* Walks into the messages of these field numbers, the first of each; ended by 0. */
static tn_bytes inside(tn_bytes message, const uint32_t *numbers)
{
    for (; *numbers != 0; numbers++) {
        tn_proto_field f = {0};
        while (tn_proto_next(&message, &f) && f.tag != TN_PROTO_TAG(*numbers, TN_WIRE_BYTES)) {
        }
        assert_int_equal(f.tag, TN_PROTO_TAG(*numbers, TN_WIRE_BYTES));
        message = f.bytes;
    }
    return message;
}

TEST_ON(const char *folder, scalars_have_the_bytes_of_the_format)
{
    records r = {0};
    tn_event_file *f = NULL;
    assert_int_equal(tn_event_file_open(&f, folder, begun_at, 0, NULL), TN_OK);
    for (uint32_t i = 1; i < 3; i++) {
        tn_event_begin(f, begun_at + i, 100UL * i);
        tn_event_scalar(f, "train/loss", .5 / i);
        tn_event_scalar(f, "train/auc", (double)NAN);
        assert_int_equal(tn_event_end(f, NULL), TN_OK);
    }
    tn_event_begin(f, begun_at, 300);
    tn_event_scalar(f, "train/loss", (double)INFINITY);
    assert_int_equal(tn_event_end(f, NULL), TN_OK); /* and leaves nothing */
    tn_event_file_close(f);
    read_records(folder, &r);
    assert_int_equal(r.n, 4);
    assert_hex(r.payload[0], "0900000040fc54d9411a0d627261696e2e4576656e743a3252060a04746e6574");
    assert_hex(r.payload[1], "0900000040fc54d9413a020801");
    assert_hex(r.payload[2],
               "0900004040fc54d94110642a290a270a0a747261696e2f6c6f7373420a080112002204"
               "0000003f4a0d0a090a077363616c6172732001");
    assert_hex(r.payload[3],
               "0900008040fc54d94110c8012a1a0a180a0a747261696e2f6c6f7373420a0801120022"
               "040000803e");
    tn_unmap(&r.map);
}

TEST_ON(const char *folder, a_run_that_goes_on_begins_behind_its_checkpoint)
{
    records r = {0};
    tn_event_file *f = NULL;
    assert_int_equal(tn_event_file_open(&f, folder, begun_at + .5, 500, NULL), TN_OK);
    tn_event_file_close(f);
    read_records(folder, &r);
    assert_int_equal(r.n, 2);
    assert_hex(r.payload[1], "0900002040fc54d94110f4033a020801");
    tn_unmap(&r.map);
    assert_int_equal(tn_event_file_open(&f, folder, begun_at, 0, NULL), TN_OK); /* another file */
    tn_event_file_close(f);
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 2);
}

/* The tensor of the first value of the n-th record. */
static tn_bytes tensor_of(const records *r, uint32_t n, uint32_t part)
{
    return inside(r->payload[n], (const uint32_t[]){5, 1, 8, part, 0});
}

TEST_ON(const char *folder, histograms_count_every_finite_number)
{
    enum { N = 3001 };
    float x[N + 2];
    for (uint32_t i = 0; i < N; i++) {
        x[i] = -1 + (float)i / 1000;
    }
    x[N] = NAN;
    x[N + 1] = INFINITY;
    records r = {0};
    tn_event_file *f = NULL;
    assert_int_equal(tn_event_file_open(&f, folder, begun_at, 0, NULL), TN_OK);
    const float same[] = {2, 2, 2};
    const struct {
        size_t n;
        const float *x;
    } cases[] = {{N + 2, x}, {3, same}, {1, x + N}};
    for (uint32_t i = 0; i < 3; i++) {
        tn_event_begin(f, begun_at, 1);
        tn_event_histogram(f, "w", cases[i].n, cases[i].x);
        assert_int_equal(tn_event_end(f, NULL), TN_OK);
    }
    tn_event_file_close(f);
    read_records(folder, &r);
    const tn_bytes bars = tensor_of(&r, 2, 4);
    double bar[TN_EVENT_BARS][3];
    assert_int_equal(bars.size, sizeof bar);
    memcpy(bar, bars.data, sizeof bar);
    double all = 0;
    for (uint32_t k = 0; k < TN_EVENT_BARS; k++) {
        assert_true(fabs(bar[k][0] - (-1 + .1 * k)) < 1e-6);
        assert_true(k == 0 || bar[k][0] == bar[k - 1][1]);
        assert_true(fabs(bar[k][2] - 100) <= 1);
        all += bar[k][2];
    }
    assert_true(all == N && bar[TN_EVENT_BARS - 1][1] == 2);
    assert_hex(tensor_of(&r, 2, 2), "1202081e12020803");
    memcpy(bar, tensor_of(&r, 3, 4).data, sizeof bar[0]);
    assert_true(bar[0][0] == 1.5 && bar[0][1] == 2.5 && bar[0][2] == 3);
    assert_int_equal(tensor_of(&r, 4, 4).size, 0);
    assert_hex(tensor_of(&r, 4, 2), "1202080012020803");
    assert_hex(inside(r.payload[2], (const uint32_t[]){5, 1, 9, 0}),
               "0a0c0a0a686973746f6772616d732002");
    tn_unmap(&r.map);
}

TEST_ON(const char *folder, precision_and_recall_are_those_of_the_scores)
{
    const float logit[] = {-2, -1, 0, 1, 2, 3};
    const float label[] = {0, 0, 1, 0, 1, 1};
    const float weight[] = {1, 1, 1, 2, 1, 1};
    const tn_metrics_opts opts = {0};
    tn_metrics *m = NULL;
    records r = {0};
    tn_event_file *f = NULL;
    assert_int_equal(tn_metrics_new(&m, &opts, NULL), TN_OK);
    assert_int_equal(tn_event_file_open(&f, folder, begun_at, 0, NULL), TN_OK);
    tn_event_begin(f, begun_at, 1);
    tn_event_pr_curve(f, "eval/pr", m); /* nothing yet */
    assert_int_equal(tn_event_end(f, NULL), TN_OK);
    const tn_scored rows = {.n = 6, .logit = logit, .label = label, .weight = weight};
    assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    tn_event_begin(f, begun_at, 1);
    tn_event_pr_curve(f, "eval/pr", m);
    assert_int_equal(tn_event_end(f, NULL), TN_OK);
    tn_event_file_close(f);
    read_records(folder, &r);
    assert_int_equal(r.n, 3);
    static float row[6][TN_EVENT_THRESHOLDS];
    const tn_bytes content = tensor_of(&r, 2, 4);
    assert_int_equal(content.size, sizeof row);
    memcpy(row, content.data, sizeof row);
    const struct {
        uint32_t k;
        float is[6];
    } cases[] = {{0, {3, 4, 0, 0, 3.F / 7, 1}},
                 {120, {2, 2, 2, 1, .5F, 2.F / 3}}, /* p of 1 is .731 */
                 {150, {2, 0, 4, 1, 1, 2.F / 3}},
                 {200, {0, 0, 4, 3, 0, 0}}};
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (uint32_t i = 0; i < 6; i++) {
            assert_true(fabsf(row[i][cases[c].k] - cases[c].is[i]) < 1e-5F);
        }
    }
    assert_hex(inside(r.payload[2], (const uint32_t[]){5, 1, 9, 0}),
               "0a100a0970725f637572766573120310c9012002");
    tn_metrics_free(m);
    tn_unmap(&r.map);
}

TEST_ON(const char *folder, graphs_texts_and_choices_are_there)
{
    records r = {0};
    tn_event_file *f = NULL;
    tn_error err;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_diag diag = {0};
    const char *yaml = "train: {sparse: {lr: 0.1, type: adagrad}, bf16: true, none: ~}\n";
    const tn_tree *tree = tn_yaml_read(
        arena, &diag, &(tn_yaml_in){.text = yaml, .size = strlen(yaml), .source = "x"});
    tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = 4, .no_passes = true});
    tn_node *x = tn_input(g, "in.x", 3, false);
    tn_node *y = tn_apply(g, &tn_op_relu, "deep.1", &x, 1, NULL);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y}, &err), TN_OK);
    assert_int_equal(tn_event_file_open(&f, folder, begun_at, 0, NULL), TN_OK);
    tn_event_begin(f, begun_at, 0);
    tn_event_hparams(f, tree, begun_at);
    assert_int_equal(tn_event_end(f, NULL), TN_OK);
    tn_event_begin(f, begun_at, 0);
    tn_event_text(f, "note", "*yes*");
    assert_int_equal(tn_event_end(f, NULL), TN_OK);
    assert_int_equal(tn_event_graph(f, begun_at, g, NULL), TN_OK);
    tn_event_file_close(f);
    read_records(folder, &r);
    assert_int_equal(r.n, 5);
    const uint32_t to_params[] = {5, 1, 9, 1, 2, 3, 0};
    tn_bytes params = inside(r.payload[2], to_params);
    const char *const entries[] = {"0a0f747261696e2e7370617273652e6c721209119a9999999999b93f",
                                   "0a11747261696e2e7370617273652e7479706512091a0761646167726164",
                                   "0a0a747261696e2e6266313612022001"};
    tn_proto_field field = {0};
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(tn_proto_next(&params, &field));
        assert_hex(field.bytes, entries[i]);
    }
    assert_true(tn_proto_next(&params, &field)); /* when it began; '~' is no choice */
    assert_int_equal(field.tag, TN_PROTO_TAG(5, TN_WIRE_FIXED64));
    assert_hex(tensor_of(&r, 3, 8), "2a7965732a");
    const tn_bytes node = inside(r.payload[4], (const uint32_t[]){4, 1, 0});
    assert_hex(node, "0a04696e2f781205696e7075742a270a0e5f6f75747075745f73686170657312150a133a11"
                     "120b08ffffffffffffffffff0112020803");
    tn_graph_free(g);
    tn_diag_done(&diag);
    tn_arena_free(arena);
    tn_unmap(&r.map);
}

TEST_ON(const char *folder, a_file_that_cannot_be_made_is_told)
{
    char path[TN_PATH_SIZE];
    tn_error err;
    tn_event_file *f = NULL;
    assert_int_equal(tn_path_join(folder, "file", path, NULL), TN_OK);
    assert_int_equal(tn_file_replace(path, "x", 1, NULL), TN_OK);
    assert_int_not_equal(tn_event_file_open(&f, path, begun_at, 0, &err), TN_OK);
    assert_null(f);
    assert_non_null(strstr(err.text, "file"));
}

SET_UP
{
    static char dir[256];
    tn_tmpdir_make(dir);
    *state = dir;
}

TEAR_DOWN
{
    tn_tmpdir_remove(*state);
}
