/* graphjson.c - writes a graph as JSON and builds one from it. */
#include "nn/passes/graphjson.h"

#include "base/codec/document.h"
#include "config/fieldjson.h"
#include "config/values.h"
#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/op/ops.h"

#include <string.h>

enum { OPERANDS_MAX = 4096, PARAMS_MAX = 16 }; /* bounds of a node */

static bool is_input(const tn_node *n)
{
    return n->op == NULL || tn_embed_list_of(n) != NULL || n->op == &tn_op_numeric;
}

/* ---- writing ---- */

static void write_node(tn_text *out, const tn_node *n)
{
    uint32_t n_params = tn_params_max(n->op);
    uint32_t n_data = n->n_in - (n_params < n->n_in ? n_params : n->n_in);
    while (n_data < n->n_in && !n->in[n_data]->is_param) {
        n_data++; /* a parameter that this node does without */
    }
    tn_json_open(out, '{');
    tn_json_str(out, "name", n->name);
    tn_json_str(out, "op", n->op->name);
    tn_json_open_key(out, "in", '[');
    for (uint32_t i = 0; i < n_data; i++) {
        tn_json_str(out, NULL, n->in[i]->name);
    }
    tn_json_close(out, ']');
    tn_json_u64(out, "cols", n->shape.cols);
    if (n->op->attrs != NULL) {
        tn_json_open_key(out, "attr", '{');
        for (const tn_field *f = n->op->attrs; f->kind != TN_KIND_END; f++) {
            tn_field_json(out, f, n->attr);
        }
        tn_json_close(out, '}');
    }
    if (n_data < n->n_in) {
        tn_json_open_key(out, "params", '{');
        for (uint32_t i = n_data; i < n->n_in; i++) {
            tn_json_str(out, n->op->params[i - n_data], n->in[i]->name);
        }
        tn_json_close(out, '}');
    }
    tn_json_close(out, '}');
}

void tn_graph_json_nodes(const tn_graph *g, tn_text *out)
{
    tn_json_open(out, '[');
    const tn_node *n;
    for (uint32_t i = 0; (n = tn_graph_node(g, i)) != NULL; i++) {
        if (n->place->alive && !is_input(n)) {
            write_node(out, n);
        }
    }
    tn_json_close(out, ']');
}

/* ---- reading ---- */

typedef struct reading {
    tn_graph *g;
    const tn_json_lookup *lookup;
    const char *what;
    const char *node; /* its name, for messages */
    tn_node **in;     /* its operands */
    tn_error *err;
} reading;

static tn_status bad(const reading *r, const char *fault, const char *subject)
{
    return tn_fail(r->err, TN_E_CKPT, "'%s': node '%s': %s '%s'", r->what, r->node, fault, subject);
}

static bool read_value(const reading *r, const tn_field *f, const tn_json *given, char *attr)
{
    static const tn_doc_kind kinds[] = {[TN_KIND_BOOL] = TN_DOC_KIND_BOOL,
                                        [TN_KIND_F64] = TN_DOC_KIND_F64,
                                        [TN_KIND_CHOICE] = TN_DOC_KIND_WORD,
                                        [TN_KIND_U32] = TN_DOC_KIND_NUMBER};
    const bool real = f->kind == TN_KIND_F64;
    TN_ASSERT((size_t)f->kind < sizeof kinds / sizeof kinds[0] && kinds[f->kind] != 0);
    const tn_doc_row row[] = {{.kind = kinds[f->kind],
                               .key = f->key,
                               .offset = f->offset,
                               .size = f->kind == TN_KIND_BOOL ? sizeof(bool) : sizeof(uint32_t),
                               .min = real ? 0 : (uint64_t)f->min,
                               .max = real ? 0 : (uint64_t)f->max,
                               .words = f->words},
                              TN_DOC_END};
    if (given == NULL || tn_doc_get_rows(row, given, attr, r->g->arena, r->what, NULL) != TN_OK) {
        return false;
    }
    const double *number = (const void *)(attr + f->offset);
    return !real || (*number >= f->min && *number <= f->max);
}

static tn_status read_attr(const reading *r, const tn_op *op, const tn_json *node, void **out)
{
    *out = NULL;
    if (op->attr_size == 0) {
        return TN_OK;
    }
    *out = tn_arena_alloc(r->g->arena, 1, op->attr_size, _Alignof(max_align_t));
    for (const tn_field *f = op->attrs; f != NULL && f->kind != TN_KIND_END; f++) {
        if (!read_value(r, f, tn_json_get(node, "attr"), *out)) {
            return bad(r, "missing or wrong attribute", f->key);
        }
    }
    return TN_OK;
}

static tn_status read_operands(const reading *r, const tn_op *op, const tn_json *node, uint32_t *n)
{
    const tn_json *list = tn_json_get(node, "in");
    uint32_t count = list != NULL ? list->n : 0;
    if (list == NULL || (count == 0) != (op->n_in == 0) || count > OPERANDS_MAX) {
        return bad(r, "no or too many inputs in", "in");
    }
    for (const tn_json *item = list->first; item != NULL; item = item->next) {
        const char *name = tn_json_as_str(item);
        tn_node *found = name != NULL ? tn_graph_find(r->g, name) : NULL;
        if (found == NULL && name != NULL) {
            found = r->lookup->input(r->lookup->arg, name);
        }
        if (found == NULL || found->is_param) {
            return bad(r, "no input or earlier node", name != NULL ? name : "?");
        }
        r->in[(*n)++] = found;
    }
    return TN_OK;
}

static tn_status read_params(const reading *r, const tn_op *op, const tn_json *node, uint32_t *n)
{
    const tn_json *given = tn_json_get(node, "params");
    for (uint32_t i = 0; op->params != NULL && op->params[i] != NULL; i++) {
        const tn_json *name = tn_json_get(given, op->params[i]);
        if (name == NULL) {
            continue; /* a dense layer without bias; check_node refuses what may not be missing */
        }
        const char *text = tn_json_as_str(name);
        tn_node *param = text != NULL ? r->lookup->param(r->lookup->arg, r->g, text) : NULL;
        if (param == NULL) {
            return bad(r, "no parameter", text != NULL ? text : op->params[i]);
        }
        r->in[(*n)++] = param;
    }
    return TN_OK;
}

/* For the node and its parameters, whose names are all in the text of the node. */
static tn_status reserve(const reading *r, const tn_op *op, const tn_json *node, uint32_t n)
{
    const uint32_t params = tn_params_max(op);
    TN_ASSERT(params <= PARAMS_MAX);
    const size_t bytes = node->end - node->begin + params + 2 * op->attr_size;
    return tn_graph_reserve(r->g, 2 + params, n + params, bytes, r->err);
}

static tn_status read_node(reading *r, const tn_json *node)
{
    const char *name = tn_json_as_str(tn_json_get(node, "name"));
    const char *op_name = tn_json_as_str(tn_json_get(node, "op"));
    uint64_t cols = 0;
    r->node = name != NULL ? name : "?";
    const tn_op *op = op_name != NULL ? tn_op_find(op_name) : NULL;
    if (name == NULL || tn_graph_find(r->g, name) != NULL) {
        return bad(r, "missing or repeated", "name");
    }
    if (op == NULL || (op->n_in == 0 && op != &tn_op_constant) || op->is_loss) {
        return bad(r, "unknown operator", op_name != NULL ? op_name : "?");
    }
    if (!tn_json_as_u64(tn_json_get(node, "cols"), &cols) || cols == 0 || cols > TN_COLS_MAX) {
        return bad(r, "missing or wrong", "cols");
    }
    uint32_t n = 0;
    void *attr = NULL;
    TN_TRY(read_operands(r, op, node, &n));
    TN_TRY(reserve(r, op, node, n));
    if (op->n_in != TN_ANY && n != op->n_in) {
        return bad(r, "wrong number of inputs of", op->name);
    }
    TN_TRY(read_params(r, op, node, &n));
    TN_TRY(read_attr(r, op, node, &attr));
    if (!tn_takes(op, n)) {
        return bad(r, "missing parameters of", op->name);
    }
    tn_node *made = tn_try_apply(r->g, op, name, r->in, n, attr);
    if (made == NULL) {
        return bad(r, "operands do not fit", op->name);
    }
    return made->shape.cols == cols ? TN_OK : bad(r, "another width than", "cols");
}

tn_status tn_graph_from_json(tn_graph *g, const tn_json *nodes, const tn_json_lookup *lookup,
                             const char *what, tn_error *err)
{
    reading r = {.g = g, .lookup = lookup, .what = what, .err = err};
    if (nodes == NULL || nodes->kind != TN_JSON_LIST || nodes->n > 4096) {
        return tn_fail(err, TN_E_CKPT, "'%s': 'nodes' is not a list of at most 4096", what);
    }
    TN_TRY(tn_graph_reserve(g, 1, OPERANDS_MAX + PARAMS_MAX, 0, err));
    r.in = TN_NEW_ARRAY(g->arena, tn_node *, OPERANDS_MAX + PARAMS_MAX);
    for (const tn_json *node = nodes->first; node != NULL; node = node->next) {
        TN_TRY(read_node(&r, node));
    }
    if (tn_graph_fault(g) != NULL) {
        return tn_fail(err, TN_E_CKPT, "'%s': %s", what, tn_graph_fault(g));
    }
    return TN_OK;
}
