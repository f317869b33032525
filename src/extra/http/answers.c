/* answers.c - writes scores as JSON, lines and tensors. */
#include "extra/http/answers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_digits(tn_text *out, float score)
{
    enum { MOST = 32 };
    char text[MOST];
    const int size = snprintf(text, sizeof text, "%.9g", (double)score);
    tn_text_add(out, text, (size_t)size);
}

/* JSON has no word for what is not finite. */
static void add_score(tn_text *out, float score)
{
    if (isfinite(score)) {
        add_digits(out, score);
    } else {
        tn_text_adds(out, "null");
    }
}

/* The name of a task as a key, after a bracket or a comma. */
static void add_key(tn_text *out, const char *before, const char *name)
{
    tn_text_adds(out, before);
    tn_json_quote(out, name, strlen(name));
    tn_text_addc(out, ':');
}

static void add_list(tn_text *out, const float *value, uint32_t n)
{
    tn_text_addc(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            tn_text_addc(out, ',');
        }
        add_score(out, value[i]);
    }
    tn_text_addc(out, ']');
}

static void end(tn_text *out, const char *version)
{
    tn_text_addf(out, ",\"model_version\":\"%s\"}\n", version);
}

/* One row of several tasks as an object. */
static void add_tasks(tn_text *out, const tn_served_scores *s, uint32_t row)
{
    for (uint32_t k = 0; k < s->n_tasks; k++) {
        add_key(out, k > 0 ? "," : "{", s->name[k]);
        add_score(out, s->value[k][row]);
    }
    tn_text_addc(out, '}');
}

void tn_answer_predictions(tn_text *out, const tn_served_scores *s, const char *version)
{
    tn_text_adds(out, "{\"predictions\":");
    if (s->n_tasks == 1) {
        add_list(out, s->value[0], s->n);
    } else {
        for (uint32_t i = 0; i < s->n; i++) {
            tn_text_addc(out, (char)(i > 0 ? ',' : '['));
            add_tasks(out, s, i);
        }
        tn_text_adds(out, s->n > 0 ? "]" : "[]");
    }
    end(out, version);
}

void tn_answer_outputs(tn_text *out, const tn_served_scores *s, const char *version)
{
    tn_text_adds(out, s->n_tasks == 1 ? "{\"outputs\":" : "{\"outputs\":{");
    for (uint32_t k = 0; k < s->n_tasks; k++) {
        if (s->n_tasks > 1) {
            add_key(out, k > 0 ? "," : "", s->name[k]);
        }
        add_list(out, s->value[k], s->n);
    }
    tn_text_adds(out, s->n_tasks == 1 ? "" : "}");
    end(out, version);
}

void tn_answer_regress(tn_text *out, const tn_served_scores *s, uint32_t task, const char *version)
{
    tn_text_adds(out, "{\"results\":");
    add_list(out, s->value[task], s->n);
    end(out, version);
}

void tn_answer_classify(tn_text *out, const tn_served_scores *s, uint32_t task, const char *version)
{
    tn_text_adds(out, "{\"results\":[");
    for (uint32_t i = 0; i < s->n; i++) {
        tn_text_adds(out, i > 0 ? ",[[\"0\"," : "[[\"0\",");
        add_score(out, 1 - s->value[task][i]);
        tn_text_adds(out, "],[\"1\",");
        add_score(out, s->value[task][i]);
        tn_text_adds(out, "]]");
    }
    tn_text_addc(out, ']');
    end(out, version);
}

void tn_answer_lines(tn_text *out, const tn_served_scores *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t k = 0; k < s->n_tasks; k++) {
            tn_text_adds(out, k > 0 ? "\t" : "");
            add_digits(out, s->value[k][i]);
        }
        tn_text_addc(out, '\n');
    }
}

size_t tn_answer_infer(tn_text *out, const tn_served_scores *s, const tn_infer_ask *ask)
{
    bool first = true;
    tn_text_addf(out, "{\"model_name\":\"%s\",\"model_version\":\"%s\",", ask->model, ask->version);
    if (ask->id.data != NULL) {
        tn_text_adds(out, "\"id\":");
        tn_text_add(out, ask->id.data, ask->id.size);
        tn_text_addc(out, ',');
    }
    tn_text_adds(out, "\"outputs\":[");
    for (uint32_t k = 0; k < s->n_tasks; k++) {
        if ((ask->wanted >> k & 1) == 0) {
            continue;
        }
        add_key(out, first ? "{" : ",{", "name");
        tn_json_quote(out, s->name[k], strlen(s->name[k]));
        tn_text_addf(out, ",\"datatype\":\"FP32\",\"shape\":[%u],", s->n);
        first = false;
        if (ask->binary) {
            tn_text_addf(out, "\"parameters\":{\"binary_data_size\":%zu}",
                         (size_t)s->n * sizeof(float));
        } else {
            tn_text_adds(out, "\"data\":");
            add_list(out, s->value[k], s->n);
        }
        tn_text_addc(out, '}');
    }
    tn_text_adds(out, "]}");
    const size_t json_bytes = out->size;
    for (uint32_t k = 0; k < s->n_tasks && ask->binary; k++) {
        if ((ask->wanted >> k & 1) != 0) {
            tn_text_add(out, s->value[k], (size_t)s->n * sizeof(float));
        }
    }
    return ask->binary ? json_bytes : 0;
}
