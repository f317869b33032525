/* answers.h - scores as the bodies of answers.
 *
 *     {"predictions": [0.031, 0.002], "model_version": "6636c5aa.."}           one label
 *     {"predictions": [{"click": 0.031, "buy": 0.001}, ..], ..}                several tasks
 *     {"outputs": {"click": [0.031, ..], "buy": [0.001, ..]}, ..}              of columns
 *     {"results": [0.031, ..]}   {"results": [[["0", 0.969], ["1", 0.031]], ..]}
 *     0.031                                                                    lines, tasks by tabs
 *
 * Numbers have the nine digits that tnet-score prints. Nothing here can fail but for memory, which
 * the text remembers.
 */
#pragma once

#include "base/core/text.h"
#include "extra/http/json_cursor.h"
#include "extra/http/served_model.h"

/* By rows, or by columns where the request had these. */
void tn_answer_predictions(tn_text *out, const tn_served_scores *s, const char *version);
void tn_answer_outputs(tn_text *out, const tn_served_scores *s, const char *version);
/* The answers for one task. */
void tn_answer_regress(tn_text *out, const tn_served_scores *s, uint32_t task, const char *version);
void tn_answer_classify(tn_text *out, const tn_served_scores *s, uint32_t task,
                        const char *version);
void tn_answer_lines(tn_text *out, const tn_served_scores *s);

/* A request of the Open Inference Protocol, as its answer repeats it. */
typedef struct tn_infer_ask {
    const char *model, *version;
    tn_json_span id;
    bool binary;     /* scores come as bytes after the JSON */
    uint64_t wanted; /* bit k: task k */
} tn_infer_ask;

/* Returns the bytes of JSON before the binary part; 0: there is none. */
size_t tn_answer_infer(tn_text *out, const tn_served_scores *s, const tn_infer_ask *ask);
