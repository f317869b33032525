/* exported_model_rows.c - what a key's row holds in an export: first values, and its place in the
 * dictionary; see exported_model.h. */
#include "serve/exported_model.h"

#include <string.h>

static bool find_init_kind(const char *name, tn_init_kind *out)
{
    static const char *const kinds[] = {"constant",   "uniform",        "normal",
                                        "truncated",  "glorot_uniform", "xavier_normal",
                                        "he_uniform", "he_normal"};
    for (uint32_t i = 0; name != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], name) == 0) {
            *out = (tn_init_kind)i;
            return true;
        }
    }
    return false;
}

static uint32_t find_group(const tn_bundle *b, const char *name)
{
    uint32_t g = 0;
    while (g < b->schema->n_groups &&
           (name == NULL || strcmp(b->schema->group[g].name, name) != 0)) {
        g++;
    }
    return g;
}

static tn_status read_rule(tn_bundle *b, const tn_json *rule, const char *what, tn_error *err)
{
    const char *segment = tn_json_as_str(tn_json_get(rule, "segment"));
    uint32_t g = find_group(b, tn_json_as_str(tn_json_get(rule, "group")));
    tn_init init = {0};
    if (g == b->schema->n_groups || segment == NULL ||
        !find_init_kind(tn_json_as_str(tn_json_get(rule, "kind")), &init.kind) ||
        !tn_json_as_f64(tn_json_get(rule, "a"), &init.a) ||
        !tn_json_as_f64(tn_json_get(rule, "b"), &init.b)) {
        return tn_fail(err, TN_E_CKPT, "'%s': a rule of 'init' cannot be read", what);
    }
    tn_bundle_group *group = &b->group[g];
    group->missing_init = true;
    for (uint32_t s = 0; s < group->record.n_segments; s++) {
        if (strcmp(group->record.segment[s].name, segment) == 0) {
            group->init[s] = init;
        }
    }
    return TN_OK;
}

tn_status tn_bundle_read_init(tn_bundle *b, const tn_json *model, const char *what, tn_error *err)
{
    const tn_json *rules = tn_json_get(model, "init");
    if (rules == NULL) {
        return TN_OK;
    }
    if (!tn_json_as_hex64(tn_json_get(model, "seed"), &b->seed)) {
        return tn_fail(err, TN_E_CKPT, "'%s': missing or wrong 'seed'", what);
    }
    for (const tn_json *rule = rules->first; rule != NULL; rule = rule->next) {
        TN_TRY(read_rule(b, rule, what, err));
    }
    return TN_OK;
}

/* Its numbers of the segments that the model reads. */
static tn_status map_segments(tn_bundle *b, const tn_json *names, const char *what, tn_error *err)
{
    for (uint32_t g = 0; g < b->schema->n_groups; g++) {
        tn_bundle_group *group = &b->group[g];
        for (uint32_t s = 0; s < group->record.n_segments; s++) {
            uint32_t k = 0;
            const tn_json *name =
                names != NULL && names->kind == TN_JSON_LIST ? names->first : NULL;
            while (name != NULL && (tn_json_as_str(name) == NULL ||
                                    strcmp(name->string, group->record.segment[s].name) != 0)) {
                name = name->next;
                k++;
            }
            if (name == NULL) {
                return tn_fail(err, TN_E_CKPT, "'%s' has no segment '%s'", what,
                               group->record.segment[s].name);
            }
            group->segment[s] = k;
        }
        group->in_dict = tn_dict_group(b->dict.layer[0], b->schema->group[g].name);
        if (group->in_dict == TN_DICT_NO_GROUP ||
            tn_dict_salt(b->dict.layer[0], group->in_dict) != b->schema->group[g].salt) {
            return tn_fail(err, TN_E_CKPT, "'%s' has no group '%s'", what,
                           b->schema->group[g].name);
        }
    }
    return TN_OK;
}

tn_status tn_bundle_read_dict(tn_bundle *b, const char *what, tn_error *err)
{
    tn_dict_about about = tn_dict_about_of(b->dict.layer[0]);
    const tn_json *json = NULL;
    TN_TRY(tn_json_parse(&json, about.json, about.json_bytes, b->arena, what, err));
    const char *id = tn_json_as_str(tn_json_get(json, "model_id"));
    char hex[33];
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 16; i++) {
        hex[2 * i] = digits[about.model_id[i] >> 4];
        hex[2 * i + 1] = digits[about.model_id[i] & 15];
    }
    hex[32] = '\0';
    if (id == NULL || strcmp(hex, id) != 0 || strcmp(hex, b->model_id) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s' is of model %s, not %s", what, hex, b->model_id);
    }
    return map_segments(b, tn_json_get(json, "segments"), what, err);
}
