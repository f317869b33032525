/* rowschema.c - writing and reading the schema of rows, its hash, and the layout made from it. */
#include "ps/snapshot/rowschema.h"

#include "base/math/sha256.h"

#include <string.h>

static void add_segment(tn_text *t, const tn_row_segment *segment)
{
    TN_ASSERT(segment->n_states <= TN_ROW_STATES_MAX && segment->dim <= TN_DIM_MAX);
    tn_json_open(t, '{');
    tn_json_str(t, "name", segment->name);
    tn_json_u64(t, "dim", segment->dim);
    tn_json_str(t, "optimizer", segment->optimizer);
    tn_json_open_key(t, "state", '[');
    for (uint32_t i = 0; i < segment->n_states; i++) {
        tn_json_open(t, '[');
        tn_json_str(t, NULL, segment->state[i].name);
        tn_json_u64(t, NULL, segment->state[i].words);
        if (segment->state[i].count) {
            tn_json_str(t, NULL, "u32");
        }
        tn_json_close(t, ']');
    }
    tn_json_close(t, ']');
    tn_json_close(t, '}');
}

void tn_row_schema_write(tn_text *t, const char *key, const tn_row_schema *schema)
{
    tn_json_open_key(t, key, '{');
    tn_json_u64(t, "partitions", schema->partitions);
    tn_json_open_key(t, "records", '[');
    for (uint32_t r = 0; r < schema->n_records; r++) {
        TN_ASSERT(schema->record[r].n_segments <= TN_SEGMENTS_MAX);
        tn_json_open(t, '{');
        tn_json_open_key(t, "segments", '[');
        for (uint32_t s = 0; s < schema->record[r].n_segments; s++) {
            add_segment(t, &schema->record[r].segment[s]);
        }
        tn_json_close(t, ']');
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
    tn_json_open_key(t, "groups", '[');
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        TN_ASSERT(schema->group[g].record < schema->n_records);
        tn_json_open(t, '{');
        tn_json_str(t, "name", schema->group[g].name);
        tn_json_hex64(t, "salt", schema->group[g].salt);
        tn_json_u64(t, "record", schema->group[g].record);
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
    tn_json_close(t, '}');
}

/* ["t", 1, "u32"] */
static tn_row_state read_state(tn_members *r, const tn_json *list)
{
    tn_row_state state = {.name = tn_json_as_str(tn_json_item(list, 0))};
    uint64_t words = 0;
    const char *type = tn_json_as_str(tn_json_item(list, 2));
    state.count = type != NULL && strcmp(type, "u32") == 0;
    bool fits = tn_json_as_u64(tn_json_item(list, 1), &words) && words <= TN_DIM_MAX;
    if (state.name == NULL || !fits || list->n < 2 || list->n > 3 ||
        state.count != (list->n == 3)) {
        tn_member_spoil(r, "sparse.records.segments.state");
    }
    state.words = fits ? (uint32_t)words : 0;
    return state;
}

static tn_row_segment read_segment(tn_members *r, const tn_json *object)
{
    tn_row_segment segment = {
        .name = tn_member_str(r, object, "name"),
        .dim = tn_member_u32(r, object, "dim", TN_DIM_MAX),
        .optimizer = tn_member_str(r, object, "optimizer"),
    };
    const tn_json *states = tn_member_list(r, object, "state", TN_ROW_STATES_MAX);
    for (const tn_json *s = states->first; s != NULL; s = s->next) {
        segment.state[segment.n_states++] = read_state(r, s);
    }
    TN_ASSERT(segment.n_states <= TN_ROW_STATES_MAX && segment.dim <= TN_DIM_MAX);
    return segment;
}

static void read_records(tn_members *r, const tn_json *list, tn_row_schema *out)
{
    tn_row_record *record = TN_NEW_ARRAY(r->arena, tn_row_record, list->n);
    for (const tn_json *o = list->first; o != NULL; o = o->next) {
        tn_row_record *to = &record[out->n_records++];
        const tn_json *segments = tn_member_list(r, o, "segments", TN_SEGMENTS_MAX);
        for (const tn_json *s = segments->first; s != NULL; s = s->next) {
            to->segment[to->n_segments++] = read_segment(r, s);
            TN_ASSERT(to->n_segments <= TN_SEGMENTS_MAX);
        }
    }
    out->record = record;
}

void tn_row_schema_read(tn_members *r, const tn_json *object, tn_row_schema *out)
{
    out->partitions = tn_member_u32(r, object, "partitions", TN_SNAPSHOT_PARTITIONS_MAX);
    if (out->partitions == 0) {
        tn_member_spoil(r, "partitions");
    }
    read_records(r, tn_member_list(r, object, "records", TN_GROUPS_MAX), out);
    const tn_json *groups = tn_member_list(r, object, "groups", TN_GROUPS_MAX);
    tn_row_group *group = TN_NEW_ARRAY(r->arena, tn_row_group, groups->n);
    for (const tn_json *o = groups->first; o != NULL; o = o->next) {
        tn_row_group *to = &group[out->n_groups++];
        to->name = tn_member_str(r, o, "name");
        to->salt = tn_member_hex(r, o, "salt");
        to->record = tn_member_u32(r, o, "record", TN_GROUPS_MAX);
        if (to->record >= out->n_records) {
            tn_member_spoil(r, "record");
        }
    }
    out->group = group;
}

tn_status tn_row_schema_hash(const tn_row_schema *schema, uint8_t out[TN_SNAPSHOT_SCHEMA_BYTES],
                             tn_error *err)
{
    tn_text text = {0};
    tn_row_schema_write(&text, NULL, schema);
    tn_status status = tn_text_check(&text, "the list of records", err);
    if (status == TN_OK) {
        uint8_t digest[32];
        tn_sha256 hash;
        tn_sha256_init(&hash);
        tn_sha256_add(&hash, text.data, text.size);
        tn_sha256_end(&hash, digest);
        memcpy(out, digest, TN_SNAPSHOT_SCHEMA_BYTES);
    }
    tn_text_done(&text);
    return status;
}

const tn_snapshot_layout *tn_row_schema_layout(const tn_row_schema *schema, tn_arena *arena)
{
    tn_snapshot_layout *layout = TN_NEW(arena, tn_snapshot_layout);
    tn_snapshot_record *records = TN_NEW_ARRAY(arena, tn_snapshot_record, schema->n_records);
    uint32_t *groups = TN_NEW_ARRAY(arena, uint32_t, schema->n_groups);
    for (uint32_t r = 0; r < schema->n_records; r++) {
        const tn_row_record *from = &schema->record[r];
        records[r].n_segments = from->n_segments;
        for (uint32_t s = 0; s < from->n_segments; s++) {
            uint32_t words = from->segment[s].dim;
            for (uint32_t k = 0; k < from->segment[s].n_states; k++) {
                words += from->segment[s].state[k].words;
            }
            records[r].words[s] = words;
        }
    }
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        TN_ASSERT(schema->group[g].record < schema->n_records);
        groups[g] = schema->group[g].record;
    }
    *layout = (tn_snapshot_layout){
        .n_groups = schema->n_groups, .record_of_group = groups, .record = records};
    return layout;
}
