/* list_lengths.c - the values that stay of each list of a sequence. */
#include "io/rows/list_lengths.h"

#include "io/schema/schema.h"

bool tn_list_lengths_cut(const tn_schema *schema, const uint32_t *count, uint32_t *most,
                         const tn_slot_spec *uneven[2])
{
    for (uint32_t i = 0; i < schema->n_sequences; i++) {
        const tn_sequence_spec *s = &schema->sequence[i];
        uint32_t n = most[s->slot[0]];
        for (uint32_t k = 1; k < s->n; k++) {
            const uint32_t slot = s->slot[k];
            if (count[slot] != count[s->slot[0]] && !s->cuts) {
                uneven[0] = schema->slot[slot];
                uneven[1] = schema->slot[s->slot[0]];
                return false;
            }
            n = most[slot] < n ? most[slot] : n;
        }
        for (uint32_t k = 0; k < s->n; k++) {
            most[s->slot[k]] = n;
        }
    }
    return true;
}
