/* frozen.c - finds the parameters that train.freeze names. */
#include "train/step/frozen.h"

#include "base/core/text.h"
#include "config/values.h"
#include "nn/graph/params.h"

#include <fnmatch.h>
#include <string.h>

/* A layer's name is that of its parameters, which go on after a dot. */
static bool is_called(const char *pattern, const char *name)
{
    tn_text below = {0};
    tn_text_addf(&below, "%s.*", pattern);
    const bool fits = fnmatch(pattern, name, 0) == 0 || fnmatch(tn_text_str(&below), name, 0) == 0;
    tn_text_done(&below);
    return fits;
}

bool tn_frozen_has(const tn_strs *freeze, const tn_param_slice *s)
{
    bool has = false;
    for (uint32_t i = 0; i < freeze->n && !s->state; i++) {
        has = has || is_called(freeze->item[i], s->name);
    }
    return has;
}

static tn_status fail_unknown(const char *word, const tn_params *params, tn_error *err)
{
    tn_text names = {0};
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        tn_text_addf(&names, "%s%s", s->state ? "" : " ", s->state ? "" : s->name);
    }
    const tn_status status =
        tn_fail(err, TN_E_CONFIG,
                "train.freeze: the model has no layer or parameter '%s'\nhint: its parameters "
                "are%.800s",
                word, names.size > 0 ? tn_text_str(&names) : " none");
    tn_text_done(&names);
    return status;
}

tn_status tn_frozen_apply(const tn_strs *freeze, tn_params *params, tn_error *err)
{
    for (uint32_t i = 0; i < freeze->n; i++) {
        const tn_strs word = {1, &freeze->item[i]};
        uint32_t found = 0;
        for (uint32_t k = 0; k < tn_params_count(params); k++) {
            if (tn_frozen_has(&word, tn_params_get(params, k))) {
                tn_params_hold(params, k);
                found++;
            }
        }
        TN_TRY(found > 0 ? TN_OK : fail_unknown(freeze->item[i], params, err));
    }
    return TN_OK;
}

tn_status tn_frozen_check(const tn_strs *freeze, const tn_params *params, const char *fresh,
                          tn_error *err)
{
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        tn_text line = {0};
        tn_text_addf(&line, "\n%s\n", s->name);
        const bool is_new = fresh == NULL || strstr(fresh, tn_text_str(&line)) != NULL;
        tn_text_done(&line);
        if (is_new && tn_frozen_has(freeze, s)) {
            return tn_fail(err, TN_E_CONFIG,
                           "train.freeze: '%s' would keep its first values, as nothing gives it "
                           "others\nhint: checkpoint.from begins with the weights of another run",
                           s->name);
        }
    }
    return TN_OK;
}
