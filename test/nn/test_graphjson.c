/* test_graphjson.c - a graph to JSON and back; what a damaged list is. */
#include "nn/graph/graphcore.h"
#include "nn/graph/params.h"
#include "nn/near.h"
#include "nn/nets.h"
#include "nn/passes/finish.h"
#include "nn/passes/graphjson.h"
#include "support/test.h"

enum { ROWS = 50, SEED = 9 };

/* Where a list's names lead: inputs of the test net, parameters by their values. */
typedef struct shelf {
    tn_graph *g;
    tn_params *params; /* of the new graph: every slice that the old one used, and its values */
} shelf;

static tn_node *find_input(void *arg, const char *name)
{
    return tn_test_net_input(((const shelf *)arg)->g, name);
}

static tn_node *find_param(void *arg, tn_graph *g, const char *name)
{
    const shelf *s = arg;
    const tn_param_slice *p = tn_params_find(s->params, name);
    return p == NULL ? NULL : tn_param(g, s->params, name, (tn_shape){p->rows, p->cols}, p->init);
}

static tn_params *copy_params(const tn_graph *from)
{
    tn_params *to = tn_params_new();
    const tn_node *n;
    for (uint32_t i = 0; (n = tn_graph_node(from, i)) != NULL; i++) {
        if (n->is_param && n->place->alive) {
            (void)tn_params_add(to, n->name, n->shape.rows, n->shape.cols, true, (tn_init){0});
        }
    }
    assert_int_equal(tn_params_seal(to, NULL), TN_OK);
    for (uint32_t i = 0; (n = tn_graph_node(from, i)) != NULL; i++) {
        if (n->is_param && n->place->alive) {
            memcpy(tn_params_weights(to) + tn_params_find(to, n->name)->at, n->val,
                   (size_t)n->shape.rows * n->shape.cols * sizeof *n->val);
        }
    }
    return to;
}

static tn_status build(shelf *s, const char *text, tn_error *err)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_json *nodes = NULL;
    tn_json_lookup lookup = {find_input, find_param, s};
    tn_status status = tn_json_parse(&nodes, text, strlen(text), arena, "model.json", err);
    if (status == TN_OK) {
        status = tn_graph_from_json(s->g, nodes, &lookup, "model.json", err);
    }
    return status;
}

static tn_test_net frozen_net(void)
{
    tn_test_net n = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS});
    tn_test_net_finish(&n); /* gives values to the weights */
    tn_test_net f = tn_test_net_build(n.params, &(tn_graph_opts){.max_rows = ROWS, .frozen = true});
    tn_wanted wanted = {.logit = f.logit};
    assert_int_equal(tn_graph_finish(f.g, &wanted, NULL), TN_OK);
    tn_graph_free(n.g);
    return f;
}

TEST(a_graph_out_of_its_own_json_scores_alike)
{
    tn_test_net f = frozen_net();
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_graph_json_nodes(f.g, &text);
    assert_null(strstr(tn_text_str(&text), "batch_norm"));
    assert_null(strstr(tn_text_str(&text), "dropout"));
    assert_non_null(strstr(tn_text_str(&text), "\"attr\":{\"activation\":\"tanh\""));

    shelf s = {tn_graph_new(&(tn_graph_opts){.max_rows = ROWS}), copy_params(f.g)};
    tn_error err = {0};
    assert_ok(build(&s, tn_text_str(&text), &err), err.text);
    tn_node *logit = tn_graph_find(s.g, "logit");
    tn_wanted wanted = {.logit = logit};
    assert_int_equal(tn_graph_finish(s.g, &wanted, &err), TN_OK);
    tn_test_batch *b = tn_test_batch_new(ROWS, SEED);
    tn_graph_feed feed = tn_test_feed(b, false);
    tn_forward(f.g, &feed);
    tn_forward(s.g, &feed);
    for (uint32_t r = 0; r < ROWS; r++) {
        tn_assert_value((double)*tn_val_row(logit, r), (double)*tn_val_row(f.logit, r));
    }
    tn_text again CLEANUP(tn_text_done) = {0};
    tn_graph_json_nodes(s.g, &again);
    assert_string_equal(tn_text_str(&again), tn_text_str(&text));
    tn_test_batch_free(b);
    tn_graph_free(s.g);
    tn_params_free(s.params);
    tn_graph_free(f.g);
    tn_params_free(f.params);
}

TEST(a_damaged_list_is_an_error_and_no_crash)
{
    static const char *const lists[] = {
        "{}",
        "[{}]",
        "[{\"name\":\"a\",\"op\":\"relu\",\"in\":[\"nobody\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"no_such\",\"in\":[\"in.numeric\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"relu\",\"in\":[\"in.numeric\"],\"cols\":4}]",
        "[{\"name\":\"a\",\"op\":\"relu\",\"in\":[],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"relu\",\"in\":[\"in.numeric\",\"in.deep\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"add\",\"in\":[\"in.numeric\",\"in.deep\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"mul\",\"in\":[\"in.numeric\",\"in.deep\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"slice\",\"in\":[\"in.numeric\"],\"cols\":3,"
        "\"attr\":{\"first\":2,\"cols\":3}}]",
        "[{\"name\":\"a\",\"op\":\"slice\",\"in\":[\"in.numeric\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"fm\",\"in\":[\"in.numeric\"],\"cols\":1,\"attr\":{\"dim\":2}}]",
        "[{\"name\":\"a\",\"op\":\"fm\",\"in\":[\"in.numeric\"],\"cols\":1,\"attr\":{\"dim\":0}}]",
        "[{\"name\":\"a\",\"op\":\"matmul\",\"in\":[\"in.numeric\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"matmul\",\"in\":[\"in.numeric\"],\"cols\":3,"
        "\"params\":{\"W\":\"w23\"}}]",
        "[{\"name\":\"a\",\"op\":\"dense\",\"in\":[\"in.numeric\"],\"cols\":2,"
        "\"attr\":{\"activation\":\"no\",\"slope\":0},\"params\":{\"W\":\"w32\"}}]",
        "[{\"name\":\"a\",\"op\":\"batch_norm\",\"in\":[\"in.numeric\"],\"cols\":3,"
        "\"params\":{\"gamma\":\"w23\"}}]",
        "[{\"name\":\"a\",\"op\":\"relu\",\"in\":[\"in.numeric\"],\"cols\":3},"
        "{\"name\":\"a\",\"op\":\"relu\",\"in\":[\"in.numeric\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"matmul\",\"in\":[\"in.numeric\"],\"cols\":2,"
        "\"params\":{\"W\":\"w32\"}},"
        "{\"name\":\"b\",\"op\":\"relu\",\"in\":[\"w32\"],\"cols\":2}]",
        "[{\"name\":\"a\",\"op\":\"embed_squares\",\"in\":[\"in.numeric\"],\"cols\":3}]",
        "[{\"name\":\"a\",\"op\":\"embed_squares\",\"in\":[\"in.deep\"],\"cols\":48}]",
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        shelf s = {tn_graph_new(&(tn_graph_opts){.max_rows = ROWS}), tn_params_new()};
        (void)tn_params_add(s.params, "w23", 2, 3, true, (tn_init){0});
        (void)tn_params_add(s.params, "w32", 3, 2, true, (tn_init){0});
        tn_error err = {0};
        tn_status status = build(&s, lists[i], &err);
        fail_if(status != TN_E_CKPT, "%s: %d", lists[i], (int)status);
        tn_graph_free(s.g);
        tn_params_free(s.params);
    }
}

/* 4096 nodes are a list; with its inputs they are more than a graph takes. */
TEST(a_list_that_fills_the_graph_is_an_error)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addc(&text, '[');
    for (uint32_t i = 0; i < TN_NODES_MAX; i++) {
        tn_text_addf(&text,
                     "%s{\"name\":\"n%u\",\"op\":\"relu\",\"in\":[\"in.numeric\"],\"cols\":3}",
                     i > 0 ? "," : "", i);
    }
    tn_text_addc(&text, ']');
    shelf s = {tn_graph_new(&(tn_graph_opts){.max_rows = ROWS}), tn_params_new()};
    tn_error err = {0};
    assert_int_equal(build(&s, tn_text_str(&text), &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "a graph of more than 4096 nodes, at 'n4095'"));
    tn_graph_free(s.g);
    tn_params_free(s.params);
}
