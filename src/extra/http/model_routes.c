/* model_routes.c - the routes that describe the models and the columns that they read. */
#include "base/codec/json.h"
#include "extra/http/call.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "serve/exported_model.h"

#include <stdio.h>

static const char *name_of(const tn_call *c)
{
    return tn_model_set_name(c->models, c->version->model);
}

tn_status tn_call_status(tn_call *c, tn_error *err)
{
    (void)err;
    tn_text_addf(&c->reply->body,
                 "{\"model_version_status\":[{\"version\":\"%s\",\"state\":\"AVAILABLE\","
                 "\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}],"
                 "\"name\":\"%s\",\"ready\":%s}\n",
                 tn_served_version(c->version->served), name_of(c),
                 tn_service_is_draining(c->service) ? "false" : "true");
    return TN_OK;
}

/* Lists the columns that rows are read of. */
static void list_fields(tn_text *out, const tn_schema *schema)
{
    tn_json_open_key(out, "fields", '[');
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        const tn_slot_spec *spec = &schema->spec[i];
        tn_json_open(out, '{');
        tn_json_str(out, "name", spec->name);
        tn_json_str(out, "column", spec->column);
        tn_json_str(out, "type", tn_slot_type_words[spec->type]);
        tn_json_bool(out, "number", tn_spec_is_number(spec));
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
}

static void list_tasks(tn_text *out, const tn_exported_model *b)
{
    tn_json_open_key(out, "tasks", '[');
    for (uint32_t k = 0; k < b->tasks->n; k++) {
        tn_json_str(out, NULL, b->tasks->task[k].name);
    }
    tn_json_close(out, ']');
}

tn_status tn_call_metadata(tn_call *c, tn_error *err)
{
    const tn_exported_model *b = tn_served_exported(c->version->served);
    tn_text *out = &c->reply->body;
    (void)err;
    tn_text_addf(out,
                 "{\"model_spec\":{\"name\":\"%s\",\"signature_name\":\"\",\"version\":\"%s\"},"
                 "\"metadata\":{\"format\":\"%s\",\"step\":%llu",
                 name_of(c), tn_served_version(c->version->served), b->data.format,
                 (unsigned long long)b->step);
    list_fields(out, b->schema);
    list_tasks(out, b);
    tn_text_adds(out, "}}\n");
    return TN_OK;
}

tn_status tn_call_models(tn_call *c, tn_error *err)
{
    tn_text *out = &c->reply->body;
    (void)err;
    for (uint32_t i = 0; i < tn_model_set_count(c->models); i++) {
        tn_text_addf(out, "%s\"%s\"", i > 0 ? "," : "{\"models\":[",
                     tn_model_set_name(c->models, i));
    }
    tn_text_adds(out, "]}\n");
    return TN_OK;
}

tn_status tn_call_v2(tn_call *c, tn_error *err)
{
    (void)err;
    tn_text_adds(&c->reply->body, "{\"name\":\"tnet-serve\",\"version\":\"" TN_VERSION
                                  "\",\"extensions\":[\"binary_tensor_data\"]}\n");
    return TN_OK;
}

static void add_tensor(tn_text *out, const char *name, const char *type, uint32_t width)
{
    char shape[32];
    (void)snprintf(shape, sizeof shape, width > 0 ? "[-1,%u]" : "[-1]", width);
    tn_json_open(out, '{');
    tn_json_str(out, "name", name);
    tn_json_str(out, "datatype", type);
    tn_json_raw(out, "shape", shape);
    tn_json_close(out, '}');
}

/* The datatype in which clients send a field, of those that all would be read. */
static const char *datatype_of(const tn_slot_spec *spec)
{
    return spec->type == TN_SIGN_ID || spec->type == TN_SIGN_INT ? "INT64"
           : spec->type == TN_SIGN_FLOAT                         ? "FP32"
                                                                 : "BYTES";
}

tn_status tn_call_v2_model(tn_call *c, tn_error *err)
{
    const tn_exported_model *b = tn_served_exported(c->version->served);
    tn_text *out = &c->reply->body;
    (void)err;
    tn_text_addf(out, "{\"name\":\"%s\",\"versions\":[\"%s\"],\"platform\":\"tnet\"", name_of(c),
                 tn_served_version(c->version->served));
    tn_json_open_key(out, "inputs", '[');
    for (uint32_t i = 0; i < b->schema->n_specs; i++) {
        const tn_slot_spec *spec = &b->schema->spec[i];
        add_tensor(out, spec->column, datatype_of(spec), spec->width);
    }
    tn_json_close(out, ']');
    tn_json_open_key(out, "outputs", '[');
    for (uint32_t k = 0; k < tn_tasks_count(b->tasks); k++) {
        add_tensor(out, tn_served_task_name(c->version->served, k), "FP32", 0);
    }
    tn_text_adds(out, "]}\n");
    return TN_OK;
}

tn_status tn_call_v2_index(tn_call *c, tn_error *err)
{
    tn_text *out = &c->reply->body;
    bool found = false;
    (void)err;
    for (uint32_t i = 0; i < tn_model_set_count(c->models); i++) {
        const char *name = tn_model_set_name(c->models, i);
        const tn_bytes bytes = {name, strlen(name), false};
        tn_model_version *v = tn_model_set_take(c->models, bytes, (tn_bytes){0}, &found);
        tn_text_addf(out,
                     "%s{\"name\":\"%s\",\"version\":\"%s\",\"state\":\"READY\",\"reason\":\"\"}",
                     i > 0 ? "," : "[", name, tn_served_version(v->served));
        tn_model_set_give(c->models, v);
    }
    tn_text_adds(out, "]\n");
    return TN_OK;
}

/* The folders are looked at now; who asks learns by the version which model he has. */
tn_status tn_call_v2_load(tn_call *c, tn_error *err)
{
    (void)err;
    tn_model_set_look(c->models);
    tn_text_adds(&c->reply->body, "{}\n");
    return TN_OK;
}
