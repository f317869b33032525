/* model_hash.c - hashes the dense vector and the rows. */
#include "train/model_hash.h"

#include "base/math/crc32c.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "ps/table/table.h"
#include "train/step/worker.h"

static tn_status add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    uint32_t *crc = arg;
    *crc = tn_crc32c(*crc, &row->key, sizeof row->key);
    *crc = tn_crc32c(*crc, &row->show, sizeof row->show);
    *crc = tn_crc32c(*crc, &row->click, sizeof row->click);
    *crc = tn_crc32c(*crc, row->data, row->n_floats * sizeof *row->data);
    return TN_OK;
}

tn_status model_hash(tn_worker *w, uint32_t *out, tn_error *err)
{
    size_t n = tn_params_size(w->params);
    uint32_t crc = tn_crc32c(0, tn_params_weights(w->params), n * sizeof(tn_real));
    tn_state spec[TN_STATES_MAX];
    uint32_t n_states = tn_dense_states(w->shard.dense, spec);
    for (uint32_t i = 0; i < n_states; i++) {
        crc = tn_crc32c(crc, tn_dense_state(w->shard.dense, i), n * sizeof(float));
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        TN_TRY(tn_table_walk(w->shard.table, p, add_row, &crc, err));
    }
    *out = crc;
    return TN_OK;
}
