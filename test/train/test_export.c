/* test_export.c - trainer, export and scorer agree; what is exported, and what a loader refuses. */

#include "support/test.h"

#include "base/codec/json.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "config/absent.h"
#include "dict/dict.h"
#include "dict/dictvalue.h"
#include "exportkit.h"

#include <utime.h>

#define NARROW "slots: {deep: [user, item, hist, tags, top, gone, age, count, amount]}"

static const char *const models[] = {
    "{type: lr}",
    "{type: fm, " NARROW "}",
    "{type: widedeep, hidden: [16, 8]}",
    "{type: widedeep, hidden: [16, 8], head: concat, batch_norm: true, dropout: 0.2}",
    "{type: deepfm, hidden: [16], activation: tanh, " NARROW "}",
    "{type: deepfm, hidden: [16, 8], batch_norm: true, activation: prelu, " NARROW "}",
    "{type: dcn, hidden: [16]}",
    "{type: dcnv2, hidden: [16]}",
};

static void compare_scores(exportkit *k, const char *path, const char *what, float within)
{
    uint32_t n[2];
    float *trainer FREED(tn_free) = exportkit_trainer_logits(k, &n[0]);
    float *scorer FREED(tn_free) = exportkit_scorer_logits(k, path, &n[1]);
    assert_int_equal(n[0], 48);
    assert_int_equal(n[1], n[0]);
    for (uint32_t r = 0; r < n[0]; r++) {
        fail_if(!(fabsf(trainer[r] - scorer[r]) <= within * fmaxf(1, fabsf(trainer[r]))),
                "%s: row %u: trainer %.9g, export %.9g", what, r, (double)trainer[r],
                (double)scorer[r]);
    }
}

/* S1: TensorNet's serving divides 0 by 0 for an empty slot where its training has zeros. */
TEST(s1_trainer_and_export_agree_on_every_edge_row)
{
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        OPEN(exportkit, k, models[i], NULL);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        compare_scores(&k, out.path, models[i], 1e-6F);
    }
}

/* A layer list of the user's own, whose output is no layer with a bias. */
TEST(s1_a_graph_of_layers_agrees)
{
    static const char graph[] =
        "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: [user, item, hist]}, "
        "num: {numeric: all}}, layers: [{name: x, concat: [deep, num]}, "
        "{name: pctr, dense: x, units: 4, activation: dice}, {name: ln, layer_norm: x}, "
        "{name: dn, data_norm: ln}, {name: all, dense: [pctr, dn, wide], units: 3}, "
        "{name: soft, softmax: all}, {name: out, sum: soft}, {name: half, scale: out, by: 0.5}], "
        "output: half}";
    static const char *const overrides[] = {"data.negative_sampling=0.5", NULL};
    OPEN(exportkit, k, graph, overrides);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    compare_scores(&k, out.path, "graph", 1e-6F);
}

/* Every operator of two and three inputs, maxima, constants, and functions of one number. */
TEST(s1_a_graph_of_operators_agrees)
{
    static const char graph[] =
        "{type: graph, inputs: {wide: {embed: all, dim: 1}, num: {numeric: all}, "
        "deep: {embed: [user, item, hist], dim: 4}}, layers: ["
        "{name: one, constant: 1}, {name: low, constant: -0.01, cols: 12}, "
        "{name: m, mean: deep, per_slot: true}, {name: c, sub: [deep, m]}, "
        "{name: q, activation: c, function: square}, {name: s, sum: q, per_slot: true, dim: 4}, "
        "{name: s1, maximum: [s, one]}, {name: r, activation: s1, function: sqrt}, "
        "{name: n, div: [c, r]}, {name: a, activation: n, function: abs}, "
        "{name: cut, maximum: [n, low]}, {name: w, where: [m, a, cut]}, "
        "{name: least, minimum: [w, low]}, {name: top, max: w, per_slot: true, dim: 4}, "
        "{name: z, dense: [w, least, top, m, wide, num], units: 1}], output: z}";
    OPEN(exportkit, k, graph, NULL);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    compare_scores(&k, out.path, "operators", 1e-6F);
}

/* Pairs of values read the rows once more. */
TEST(s1_pairs_within_a_slot_agree)
{
    static const char *const overrides[] = {"slots.hist.pool=sum", "slots.tags.pool=sum", NULL};
    exportkit k CLEANUP(exportkit_close);
    exportkit_open(&k,
                   "{type: fm, within_slot: true, slots: {deep: [user, item, hist, tags, amount]}}",
                   overrides);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    compare_scores(&k, out.path, "within_slot", 1e-6F);
}

/* So do field-aware pairs, which lie in wide rows; and weights of pairs are exported. */
TEST(s1_field_aware_and_weighted_pairs_agree)
{
    static const char *const sums[] = {"slots.hist.pool=sum", "slots.tags.pool=sum",
                                       "slots.seq.pool=sum", "slots.top.pool=sum", NULL};
    static const char *const few[] = {"slots.hist.pool=sum", "slots.tags.pool=sum", NULL};
    static const char *const pairs[] = {
        "{type: ffm, k: 3, slots: {deep: [user, item, hist, tags, amount]}}",
        "{type: ffm, within_slot: true, normalise: true, slots: {deep: [user, item, tags]}}",
        "{type: fwfm, normalise: true, linear: per_field}", /* which reads all slots */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        OPEN(exportkit, k, pairs[i], i < 2 ? few : sums);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        compare_scores(&k, out.path, pairs[i], 1e-6F);
    }
}

/* Models that read all slots and numbers of the kit; slots of one width stand in the next test. */
TEST(s1_gates_products_and_masks_agree)
{
    static const char *const lists[] = {
        "{type: gdcn, hidden: [4], layers: 2}",
        "{type: dlrm, hidden: [4], bottom: [3], interaction: cat}",
        "{type: deepcrossing, hidden: [4, 4], batch_norm: true}",
        "{type: finalmlp, hidden: [8], hidden2: [4], heads: 2, gate_hidden: [3], context1: [user]}",
        "{type: finalnet, hidden: [6, 4], batch_norm: true}",
        "{type: masknet, hidden: [4], blocks: 2, block_units: 3}",
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        OPEN(exportkit, k, lists[i], NULL);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        compare_scores(&k, out.path, lists[i], 1e-6F);
    }
}

/* Layers of slots, a weight of two layers, e^x and ln x. */
TEST(s1_layers_of_slots_and_shared_weights_agree)
{
    static const char graph[] =
        "{type: graph, inputs: {deep: {embed: [user, item, hist]}, wide: {embed: all, dim: 1}, "
        "num: {numeric: all}}, layers: [{name: n, layer_norm: deep, per_slot: true}, "
        "{name: i, inner: deep}, {name: o, outer: deep}, {name: bi, bi_interaction: deep}, "
        "{name: z, mean: deep, per_slot: true}, {name: s, sum: deep, per_slot: true}, "
        "{name: r, mul: [deep, z]}, "
        "{name: u, dense: o, units: 4, param: p, activation: exp}, "
        "{name: v, dense: o, units: 4, param: p, activation: softplus}, "
        "{name: w, scale: v, plus: 1}, {name: l, activation: w, function: log}, "
        "{name: a, dense: [n, i, bi, s, r, u, l, num], units: 6, bias: false, activation: relu}, "
        "{name: f, fusion: [a, u], heads: 2}, {name: out, dense: [f, wide], units: 1}], "
        "output: out}";
    OPEN(exportkit, k, graph, NULL);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    compare_scores(&k, out.path, "layers of slots", 1e-6F);
}

/* Counts are segments of the dictionary; the mean of a slot's, however its vectors are pooled. */
TEST(s1_counts_of_keys_agree)
{
    static const char *const all[] = {"embedding.cvm=true", "train.epochs=1", "run.day=2026-11-07",
                                      NULL};
    static const char *const one[] = {"slots.hist.cvm=true", "embedding.missing=zero",
                                      "train.epochs=1", NULL};
    static const char *const few[] = {"embedding.cvm=false", "train.epochs=1", NULL};
    static const char *const lists[] = {
        "{type: widedeep, hidden: [16, 8]}",
        "{type: dlrm, hidden: [4], bottom: [3], interaction: cat}",
        "{type: masknet, hidden: [4], blocks: 2, block_units: 3}",
        "{type: deepcrossing, hidden: [4, 4]}",
        "{type: dcnv2, hidden: [16]}",
        ("{type: graph, inputs: {wide: {embed: all, dim: 1}, num: {numeric: all}, c: {cvm: [hist, "
         "tags, top], form: tensornet}}, layers: [{name: x, dense: [wide, num, c], units: 3}, "
         "{name: out, dense: x, units: 1}], output: out}"),
    };
    for (size_t i = 0; i < 2 * sizeof lists / sizeof lists[0]; i++) {
        const size_t k_list = i / 2;
        OPEN(exportkit, k, lists[k_list], k_list == 5 ? few : i % 2 == 0 ? all : one);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        /* the last one sums logarithms of counts and raw numbers, and -O1 rounds their order */
        compare_scores(&k, out.path, lists[k_list], k_list == 5 ? 1e-5F : 1e-6F);
    }
}

/* V24's correction, in the exported bias: D1's trainers never correct at all. */
TEST(d1_sampled_negatives_are_corrected_in_the_bias)
{
    static const char *const overrides[] = {"data.negative_sampling=0.1", NULL};
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i += 2) {
        OPEN(exportkit, k, models[i], overrides);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        compare_scores(&k, out.path, models[i], 1e-6F);
    }
}

TEST(short_values_score_nearly_the_same)
{
    static const struct {
        const char *override;
        float within;
    } types[] = {{"export.values=bf16", 0.05F},
                 {"export.values=fp16", 0.005F},
                 {"export.values=int8", 0.05F},
                 {"export.values=int4", 0.5F}};
    for (uint32_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const char *const overrides[] = {types[i].override, "export.check_groups=false",
                                         "export.loss_max=1", NULL};
        OPEN(exportkit, k, models[2], overrides);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        compare_scores(&k, out.path, types[i].override, types[i].within);
        assert_true(out.loss.bytes < out.loss.bytes_f32);
        assert_int_equal(out.loss.rows, 48);
    }
}

static tn_status try_export(exportkit *k, tn_error *err)
{
    tn_exported out;
    PATH_IN(run, k->dir, "run");
    const tn_export_request request = {.checkpoint = run, .binder = &k->binder};
    return tn_export(k->plan, &request, &out, err);
}

/* The figure that is judged is that of the scores which the export gives. */
TEST(an_export_that_loses_too_much_is_refused_and_leaves_nothing)
{
    static const char *const overrides[] = {"export.values=1bit", "embedding.dim=16",
                                            "train.sparse.lr=0.5", NULL};
    OPEN(exportkit, k, models[2], overrides);
    exportkit_train(&k);
    tn_error err = {0};
    k.run.export.loss_max = 0;
    assert_int_equal(try_export(&k, &err), TN_E_LIMIT);
    assert_non_null(strstr(err.text, "on data.valid, from "));
    assert_non_null(strstr(err.text, "export.values 1bit "));
    tn_text names = {0};
    uint32_t n = 1;
    PATH_IN(folder, k.dir, "export");
    assert_int_equal(tn_dir_list(folder, &names, &n, &err), TN_OK);
    assert_int_equal(n, 0);
    tn_text_done(&names);

    k.run.export.loss_max = 1;
    tn_exported out = exportkit_export(&k);
    assert_true(out.loss.auc_f32 > 0.5 && fabs(out.loss.auc - out.loss.auc_f32) < 0.4);
}

TEST(a_limit_is_of_auc_and_ten_times_of_copc)
{
    tn_run run = {.export = {.values = TN_DICT_INT8, .loss_max = 0.01}};
    const tn_export_loss good = {.auc = 0.70, .auc_f32 = 0.7099, .copc = 0.8, .copc_f32 = 0.8999};
    tn_error err = {0};
    assert_int_equal(tn_export_loss_check(&good, &run, &err), TN_OK);
    tn_export_loss bad = good;
    bad.auc = 0.6998;
    assert_int_equal(tn_export_loss_check(&bad, &run, &err), TN_E_LIMIT);
    assert_non_null(strstr(err.text, "AUC falls by 0.010100"));
    assert_non_null(strstr(err.text, "export.loss_max is 0.01"));
    bad = good;
    bad.copc = 0.799;
    assert_int_equal(tn_export_loss_check(&bad, &run, &err), TN_E_LIMIT);
    assert_non_null(strstr(err.text, "COPC moves by 0.100900"));
    bad.copc = 1.0001;
    assert_int_equal(tn_export_loss_check(&bad, &run, &err), TN_E_LIMIT);
    const tn_export_loss off = {.auc = 0.7, .auc_f32 = 0.7, .copc = 238032, .copc_f32 = 238000};
    assert_int_equal(tn_export_loss_check(&off, &run, &err),
                     TN_OK); /* a share of what is above 1 */
    bad = off;
    bad.copc = 270000;
    assert_int_equal(tn_export_loss_check(&bad, &run, &err), TN_E_LIMIT);
    bad = good;
    bad.auc = 0.8;
    bad.copc = (double)NAN;
    assert_int_equal(tn_export_loss_check(&bad, &run, &err), TN_OK);
}

static void read_file(const char *dir, const char *name, tn_text *out)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_text_clear(out);
    fail_if(tn_path_join(dir, name, path, &err) != TN_OK ||
                tn_file_read_all(path, 1 << 26, out, &err) != TN_OK,
            "%s", err.text);
}

static void write_over(const char *dir, const char *name, const char *data, size_t size)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    fail_if(tn_path_join(dir, name, path, &err) != TN_OK ||
                tn_file_replace(path, data, size, &err) != TN_OK,
            "%s", err.text);
}

/* Trained anew from nothing, the export is the one that is there already, byte for byte. */
TEST(equal_checkpoints_have_equal_exports)
{
    OPEN(exportkit, k, models[2], NULL);
    exportkit_train(&k);
    tn_exported first = exportkit_export(&k);
    PATH_IN(run, k.dir, "run");
    assert_int_equal(tn_remove_tree(run, NULL), TN_OK);
    exportkit_train(&k);
    tn_exported again = exportkit_export(&k);
    assert_true(!first.existed && again.existed);
    assert_string_equal(again.model_id, first.model_id);
}

/* The id of what a run over the same rows, written at another time into another folder, learns. */
static void id_of_run(const char *const *overrides, time_t written, char out[33])
{
    OPEN(exportkit, k, models[2], overrides);
    PATH_IN(path, k.dir, "train.csv");
    const struct utimbuf times = {.actime = written, .modtime = written};
    assert_int_equal(utime(path, &times), 0);
    exportkit_train(&k);
    const tn_exported exported = exportkit_export(&k);
    memcpy(out, exported.model_id, 33);
}

TEST(the_id_is_of_what_was_learned)
{
    char id[4][33];
    id_of_run(NULL, 1000000000, id[0]);
    id_of_run(NULL, 1700000000, id[1]);
    id_of_run((const char *const[]){"run.seed=8", NULL}, 1000000000, id[2]);
    id_of_run((const char *const[]){"run.day=2026-11-07", NULL}, 1000000000, id[3]);
    assert_string_equal(id[0], id[1]);
    assert_string_not_equal(id[0], id[2]);
    assert_string_not_equal(id[0], id[3]); /* rows tell it */
}

TEST(another_export_in_its_place_is_refused)
{
    OPEN(exportkit, k, models[0], NULL);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    k.run.export.check_groups = false;
    char path[300];
    (void)snprintf(path, sizeof path, "%s/run", k.dir);
    tn_export_request request = {.checkpoint = path, .binder = &k.binder};
    tn_error err = {0};
    assert_int_equal(tn_export(k.plan, &request, &out, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "is there already and not the same"));
    uint32_t n = 0;
    tn_text names CLEANUP(tn_text_done) = {0};
    (void)snprintf(path, sizeof path, "%s/export", k.dir);
    assert_int_equal(tn_dir_list(path, &names, &n, &err), TN_OK);
    assert_int_equal(n, 1); /* no folder that is half done */
}

/* ---- what a loader refuses ---- */

static tn_status open_exported(const char *path, tn_error *err)
{
    tn_exported_model *b = NULL;
    tn_status status = tn_exported_model_open(&b, path, &(tn_exported_model_opts){0}, err);
    assert_true((status == TN_OK) == (b != NULL));
    tn_exported_model_close(b);
    return status;
}

/* TensorNet's serving takes any dictionary with any graph. */
TEST(files_of_two_models_are_not_mixed)
{
    static const char *const names[] = {"EXPORT.json", "model.json", "dense.safetensors",
                                        "dict.tnd"};
    static const char *const other[] = {"run.seed=9", NULL};
    exportkit k[2];
    tn_exported out[2];
    tn_text mine CLEANUP(tn_text_done) = {0};
    tn_text theirs CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    for (uint32_t i = 0; i < 2; i++) {
        exportkit_open(&k[i], models[2], i == 0 ? NULL : other);
        exportkit_train(&k[i]);
        out[i] = exportkit_export(&k[i]);
    }
    assert_string_not_equal(out[0].model_id, out[1].model_id);
    assert_int_equal(open_exported(out[0].path, &err), TN_OK);
    for (uint32_t i = 0; i < 4; i++) {
        read_file(out[0].path, names[i], &mine);
        read_file(out[1].path, names[i], &theirs);
        write_over(out[0].path, names[i], theirs.data, theirs.size);
        assert_int_equal(open_exported(out[0].path, &err), TN_E_CKPT);
        write_over(out[0].path, names[i], mine.data, mine.size);
    }
    assert_int_equal(open_exported(out[0].path, &err), TN_OK);
    exportkit_close(&k[0]);
    exportkit_close(&k[1]);
}

TEST(every_flipped_byte_of_an_export_is_noticed)
{
    static const char *const names[] = {"EXPORT.json", "model.json", "dense.safetensors",
                                        "dict.tnd"};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    OPEN(exportkit, k, models[0], NULL);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    for (uint32_t i = 0; i < 4; i++) {
        read_file(out.path, names[i], &text);
        for (size_t at = 0; at < text.size; at += 1 + text.size / 150) {
            text.data[at] = (char)(text.data[at] ^ 1);
            write_over(out.path, names[i], text.data, text.size);
            assert_int_not_equal(open_exported(out.path, &err), TN_OK);
            text.data[at] = (char)(text.data[at] ^ 1);
        }
        write_over(out.path, names[i], text.data, text.size / 2);
        assert_int_not_equal(open_exported(out.path, &err), TN_OK);
        write_over(out.path, names[i], text.data, text.size);
    }
    assert_int_equal(open_exported(out.path, &err), TN_OK);
}

/* Writes model.json with one text in place of another, all checksums right. */
static void change_model(const tn_exported *out, const tn_text *from, const char *old,
                         const char *new)
{
    tn_text model CLEANUP(tn_text_done) = {0};
    tn_text index CLEANUP(tn_text_done) = {0};
    char *at = strstr(from->data, old);
    assert_non_null(at);
    tn_text_add(&model, from->data, (size_t)(at - from->data));
    tn_text_adds(&model, new);
    tn_text_adds(&model, at + strlen(old));
    model.size -= 21;
    model.data[model.size] = '\0';
    uint32_t crc = tn_crc32c(0, model.data, model.size);
    tn_text_addf(&model, "\"crc32c\":\"%08x\"}\n", crc);
    write_over(out->path, "model.json", model.data, model.size);
    tn_json_open(&index, '{');
    tn_json_str(&index, "format", "tnet-export");
    tn_json_raw(&index, "version", "[1,0]");
    tn_json_str(&index, "model_id", out->model_id);
    tn_json_u64(&index, "step", 1);
    tn_json_raw(&index, "files", "[]");
    tn_json_close_with_crc(&index);
    write_over(out->path, "EXPORT.json", index.data, index.size);
}

TEST(a_model_that_does_not_add_up_is_refused)
{
    static const char *const lies[][2] = {
        {"\"tnet-model\"", "\"tnet-modal\""},
        {"[1,0]", "[6,0]"},
        {"\"dict.tnd\"", "\"../dict.tnd\""},
        {"\"dict.tnd\"", "null"},
        {"\"pool\":\"sum\"", "\"pool\":\"some\""},
        {"\"pool\":\"concat(2)\"", "\"pool\":\"concat(0)\""},
        {"\"type\":\"id\"", "\"type\":\"idd\""},
        {"\"in.wide\",", "\"in.wide\",\"pool\":\"sum\","},
        {"\"in.wide\",", "\"in.wide\",\"positions\":0,"},
        {"\"in.wide\",", "\"in.wide\",\"positions\":5,"},
        {"\"in.wide\",", "\"in.wide\",\"segment\":\"deep\","},
        {"\"user\",0,1", "\"user\",1,1"},
        {"\"user\",0,1", "\"user\",0,2"},
        {"\"user\",0,1", "\"nobody\",0,1"},
        {"\"in.wide\",\"cols\"", "\"wide\",\"cols\""},
        {"\"group\":\"user\"", "\"group\":\"other\""},
        {"\"logit\":\"", "\"logit\":\"x"},
        {"\"nodes\":[", "\"nodes\":[{}, "},
        {"\"op\":\"dense\"", "\"op\":\"dance\""},
        {"\"segment\":\"wide\"", "\"segment\":7"},
        {"\"seed\":\"", "\"seed\":\"x"},
        {"[18,25,35.5]", "[18,25,25]"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":7}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"beta\",\"a\":1,\"b\":0}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"platt\",\"a\":1}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"platt\",\"a\":0,\"b\":0}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[],\"p\":[]}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[0,1],\"p\":[1]}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[1,1],\"p\":[0,1]}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[0,1],\"p\":[1,0]}}"},
        {"\"pctr\"}", "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[0,1],\"p\":[0,2]}}"},
        {"\"pctr\"}",
         "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[0,1e31],\"p\":[0,1]}}"},
        {"\"pctr\"}",
         "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[0,null],\"p\":[0,1]}}"},
    };
    tn_text model CLEANUP(tn_text_done) = {0};
    OPEN(exportkit, k, models[2], NULL);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    read_file(out.path, "model.json", &model);
    tn_error err = {0};
    change_model(&out, &model, "\"logit\"", "\"logit\"");
    assert_int_equal(open_exported(out.path, &err), TN_OK);
    change_model(&out, &model, "\"pctr\"}",
                 "\"pctr\",\"calibration\":{\"kind\":\"isotonic\",\"z\":[0,1],\"p\":[0,1]}}");
    assert_int_equal(open_exported(out.path, &err), TN_OK);
    for (uint32_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        change_model(&out, &model, lies[i][0], lies[i][1]);
        fail_if(open_exported(out.path, &err) != TN_E_CKPT, "%s was believed", lies[i][1]);
    }
}

/* A12: ids that pass through float32 are wrong above 2^24. */
TEST(a12_large_signs_survive_file_table_and_export)
{
    static const char *const names[] = {"16777217", "9007199254740993", "18446744073709551615"};
    static const char *const overrides[] = {"export.dict=[tnd, tsv]", NULL};
    tn_text tsv CLEANUP(tn_text_done) = {0};
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_dict *d = NULL;
    if (tn_is_absent("tsv")) {
        skip(); /* src/extra/dump is not built */
        return;
    }
    OPEN(exportkit, k, models[0], overrides);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    read_file(out.path, "dict.tsv", &tsv);
    assert_int_equal(tn_path_join(out.path, "dict.tnd", path, &err), TN_OK);
    assert_int_equal(tn_dict_open(&d, path, TN_VERIFY_FULL, &err), TN_OK);
    uint32_t user = tn_dict_group(d, "user");
    for (uint32_t i = 0; i < 3; i++) {
        char line[64];
        tn_dict_row row;
        float w = 0;
        (void)snprintf(line, sizeof line, "\nuser\t%s\t", names[i]);
        assert_non_null(strstr(tsv.data, line));
        uint64_t sign = i == 0 ? (1 << 24) + 1 : i == 1 ? (UINT64_C(1) << 53) + 1 : UINT64_MAX;
        assert_ok(tn_dict_find_all(d, 1,
                                   &(tn_dict_query){tn_key_of(sign, tn_dict_salt(d, user)), user},
                                   &row, &err),
                  err.text);
        assert_true(tn_dict_get(&row, 0, 1, &w));
        assert_ok(tn_dict_find_all(
                      d, 1, &(tn_dict_query){tn_key_of(sign - 1, tn_dict_salt(d, user)), user},
                      &row, &err),
                  err.text);
        assert_null(row.table);
    }
    tn_dict_close(d);
}

TEST(rows_below_min_score_are_left_out)
{
    OPEN(exportkit, k, models[0], NULL);
    exportkit_train(&k);
    tn_exported all = exportkit_export(&k);
    PATH_IN(to, k.dir, "other");
    PATH_IN(path, k.dir, "run");
    k.run.export.min_score = 5;
    tn_export_request request = {.checkpoint = path, .to = to, .binder = &k.binder};
    tn_exported some;
    assert_int_equal(tn_export(k.plan, &request, &some, NULL), TN_OK);
    assert_true(some.rows > 0 && some.rows < all.rows);
}

/* K7's cousin in serving: base and deltas give the scores of the whole. */
static void check_deltas(const char *counts)
{
    const char *const overrides[] = {"train.epochs=3",
                                     "checkpoint.every=1epoch",
                                     "checkpoint.keep=9",
                                     "embedding.missing=zero",
                                     counts,
                                     NULL};
    tn_exported full[3];
    tn_exported delta[3] = {{.model_id = ""}};
    char run[300];
    tn_error err = {0};
    OPEN(exportkit, k, models[2], overrides);
    exportkit_train(&k);
    PATH_IN(to, k.dir, "deltas");
    k.run.export.min_score = 3; /* rows leave and come */
    for (uint32_t i = 0; i < 3; i++) {
        (void)snprintf(run, sizeof run, "%s/run/ckpt-%u", k.dir, i + 1);
        k.run.export.min_score = i == 1 ? 12 : 3;
        tn_export_request request = {.checkpoint = run, .binder = &k.binder};
        assert_int_equal(tn_export(k.plan, &request, &full[i], &err), TN_OK);
        request.to = to;
        request.delta_from = i > 0 ? delta[i - 1].model_id : NULL;
        assert_ok(tn_export(k.plan, &request, &delta[i], &err), err.text);
    }
    assert_true(delta[1].rows > 0 && delta[1].rows <= full[0].rows);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t n[2];
        float *whole FREED(tn_free) = exportkit_scorer_logits(&k, full[i].path, &n[0]);
        float *stacked FREED(tn_free) = exportkit_scorer_logits(&k, delta[i].path, &n[1]);
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(whole, stacked, n[0] * sizeof *whole);
    }
    tn_export_request request = {
        .checkpoint = run, .to = to, .delta_from = delta[2].model_id, .binder = &k.binder};
    assert_int_equal(tn_export(k.plan, &request, &full[0], &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "this very model"));
    assert_int_equal(tn_remove_tree(delta[0].path, &err), TN_OK);
    assert_int_equal(open_exported(delta[2].path, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "is missing"));
}

TEST(a_delta_on_its_base_scores_like_the_whole)
{
    check_deltas("embedding.cvm=false");
    check_deltas("embedding.cvm=true");
}
