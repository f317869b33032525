/* ops.c - the list of all operators. */
#include "nn/op/ops.h"

#include <string.h>

#define TN_OP(name) &tn_op_##name,
const tn_op *const tn_all_ops[] = {
#include "nn/op/ops.def"
    NULL,
};
#undef TN_OP

const tn_op *tn_op_find(const char *name)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        if (strcmp((*op)->name, name) == 0) {
            return *op;
        }
    }
    return NULL;
}
