/* onnxnodes.c - names, nodes, attributes and tensors of an ONNX graph that is written. */
#include "extra/onnx/onnxnodes.h"

#include "base/codec/proto.h"
#include "nn/graph/graphcore.h"

#include <stdio.h>

/* ---- names ---- */

static const char *copied(tn_onnx *o, const char *name)
{
    const size_t size = strlen(name) + 1;
    return memcpy(TN_NEW_ARRAY(o->arena, char, size), name, size);
}

const char *tn_onnx_join(tn_onnx *o, const char *a, const char *b)
{
    char name[TN_ONNX_NAME];
    (void)snprintf(name, sizeof name, "%s:%s", a, b);
    return copied(o, name);
}

const char *tn_onnx_name(tn_onnx *o, const tn_node *n)
{
    const bool score = o->pctr == o->logit;
    if (n == o->logit || n == o->pctr) {
        const char *name = score ? "score" : n == o->logit ? "logit" : "pctr";
        return o->calibrated ? tn_onnx_join(o, name, "raw") : name;
    }
    const bool taken = strcmp(n->name, "logit") == 0 || strcmp(n->name, "pctr") == 0 ||
                       strcmp(n->name, "score") == 0;
    return taken ? tn_onnx_join(o, n->name, "node") : n->name;
}

const char *tn_onnx_in(tn_onnx *o, uint32_t i)
{
    const tn_node *n = o->y->in[i];
    TN_ASSERT(i < o->y->n_in && !n->is_param);
    o->used[n->place->index] = true;
    return tn_onnx_name(o, n);
}

/* ---- messages ---- */

void tn_onnx_text(tn_text *t, uint32_t number, const char *text)
{
    tn_proto_add_bytes(t, number, text, strlen(text));
}

static void put_attr(tn_text *t, const tn_onnx_attr *a)
{
    const size_t at = tn_proto_begin(t, 5);
    tn_onnx_text(t, 1, a->name);
    if (a->type == TN_ONNX_FLOAT) {
        tn_proto_add_varint(t, TN_PROTO_TAG(2, TN_WIRE_FIXED32));
        tn_text_add_f32le(t, a->f);
    } else {
        for (uint32_t i = 0; i < a->n; i++) {
            tn_proto_add_u64(t, a->type == TN_ONNX_INT ? 3 : 8, (uint64_t)a->i[i]);
        }
    }
    tn_proto_add_u64(t, 20, a->type);
    tn_proto_end(t, at);
}

/* A NodeProto; `out` NULL: a step, whose name is made. Returns the name of its output. */
const char *tn_onnx_put(tn_onnx *o, const char *out, const char *op, const char *const *in,
                        uint32_t n, const tn_onnx_attr *a)
{
    if (out == NULL) {
        char step[16];
        (void)snprintf(step, sizeof step, "%u", ++o->steps);
        out = tn_onnx_join(o, o->y->name, step);
    }
    const size_t at = tn_proto_begin(&o->nodes, 1);
    for (uint32_t i = 0; i < n; i++) {
        tn_onnx_text(&o->nodes, 1, in[i]);
    }
    tn_onnx_text(&o->nodes, 2, out);
    tn_onnx_text(&o->nodes, 3, out);
    tn_onnx_text(&o->nodes, 4, op);
    for (; a != NULL && a->name != NULL; a++) {
        put_attr(&o->nodes, a);
    }
    tn_proto_end(&o->nodes, at);
    return out;
}

void tn_onnx_tensor(tn_onnx *o, const char *name, uint32_t type, uint32_t rank,
                    const int64_t dims[TN_ONNX_RANK], const void *data)
{
    size_t size = type == TN_ONNX_FLOATS ? sizeof(float) : sizeof(int64_t);
    const size_t at = tn_proto_begin(&o->inits, 5);
    TN_ASSERT(rank <= TN_ONNX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        tn_proto_add_u64(&o->inits, 1, (uint64_t)dims[i]);
        size *= (size_t)dims[i];
    }
    tn_proto_add_u64(&o->inits, 2, type);
    tn_onnx_text(&o->inits, 8, name);
    tn_proto_add_bytes(&o->inits, 9, data, size);
    tn_proto_end(&o->inits, at);
}

/* Whether an initializer of this name is there; from now on it is. */
static bool is_known(tn_onnx *o, const char *name)
{
    for (size_t at = 0; at < o->known.size; at += strlen(o->known.data + at) + 1) {
        if (strcmp(o->known.data + at, name) == 0) {
            return true;
        }
    }
    tn_text_add(&o->known, name, strlen(name) + 1);
    return false;
}

/* A parameter: [n], [rows, cols], or [n, 1]. One that is used in two ways is there twice. */
const char *tn_onnx_param(tn_onnx *o, const tn_node *p, tn_onnx_form form)
{
    static const char *const forms[] = {"row", "matrix", "column"};
    const int64_t n = (int64_t)p->shape.rows * p->shape.cols;
    const int64_t dims[][TN_ONNX_RANK] = {{n}, {p->shape.rows, p->shape.cols}, {n, 1}};
    uint8_t *first = &o->form[p->place->index];
    const char *name = p->name;
    TN_ASSERT(p->is_param && p->val != NULL);
    if (*first != 0 && *first != form + 1) {
        name = tn_onnx_join(o, name, forms[form]);
    }
    if (!is_known(o, name)) {
        tn_onnx_tensor(o, name, TN_ONNX_FLOATS, form == TN_ONNX_ROW ? 1 : 2, dims[form], p->val);
    }
    *first = *first == 0 ? (uint8_t)(form + 1) : *first;
    return name;
}

/* Returns the name of a number as an initializer, which is its text. */
const char *tn_onnx_number(tn_onnx *o, double value)
{
    char name[64];
    const float x = (float)value;
    (void)snprintf(name, sizeof name, "number:%.9g", (double)x);
    if (!is_known(o, name)) {
        tn_onnx_tensor(o, name, TN_ONNX_FLOATS, 1, (const int64_t[TN_ONNX_RANK]){1}, &x);
    }
    return copied(o, name);
}

const char *tn_onnx_whole(tn_onnx *o, uint32_t n, const int64_t *value)
{
    char name[TN_ONNX_NAME] = "whole";
    size_t size = strlen(name);
    for (uint32_t i = 0; i < n && i < 8; i++) {
        size += (size_t)snprintf(name + size, sizeof name - size, ":%lld", (long long)value[i]);
    }
    TN_ASSERT(n <= 8);
    if (!is_known(o, name)) {
        tn_onnx_tensor(o, name, TN_ONNX_INT64S, 1, (const int64_t[TN_ONNX_RANK]){n}, value);
    }
    return copied(o, name);
}
