/* layers.c - the list of layers, and the names of their nodes and parameters. */
#include "nn/layer/layers.h"

#include "base/core/error.h"
#include "nn/op/ops.h"

#include <stdio.h>
#include <string.h>

const tn_layer *const tn_all_layers[] = {
#define TN_LAYER(name) &tn_layer_##name,
#include "nn/layer/layers.def"
#undef TN_LAYER
    NULL,
};

const tn_layer *tn_layer_find(const char *name)
{
    for (const tn_layer *const *l = tn_all_layers; *l != NULL; l++) {
        if (strcmp((*l)->name, name) == 0) {
            return *l;
        }
    }
    return NULL;
}

const char *tn_layer_name(char out[TN_LAYER_NAME_MAX], const char *name, const char *suffix)
{
    int used = snprintf(out, TN_LAYER_NAME_MAX, "%s%s", name, suffix);
    TN_ASSERT(used > 0 && used < TN_LAYER_NAME_MAX);
    return out;
}

const char *tn_layer_numbered(char out[TN_LAYER_NAME_MAX], const char *name, uint32_t i)
{
    char suffix[16];
    (void)snprintf(suffix, sizeof suffix, ".%u", i);
    return tn_layer_name(out, name, suffix);
}

tn_node *tn_layer_param(const tn_net *net, const char *layer, const char *suffix, tn_shape shape,
                        tn_init init)
{
    char name[TN_LAYER_NAME_MAX];
    return tn_param(net->g, net->params, tn_layer_name(name, layer, suffix), shape, init);
}
