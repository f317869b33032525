/* picture.c - prints and writes the profile that --profile asks for. */
#include "cli/picture.h"

const char *const tn_picture_bare[] = {"", NULL};

tn_status tn_picture_open(tn_picture *p, const char *asked, const char *usual,
                          const tn_inputs *inputs, tn_error *err)
{
    *p = (tn_picture){0};
    if (asked == NULL) {
        return TN_OK;
    }
    bool named = asked[0] != '\0';
    tn_text_adds(&p->path, named ? asked : usual);
    tn_status status = tn_text_check(&p->path, "a path", err);
    if (status == TN_OK) { /* the folder of the usual one may not be there yet */
        status = named ? tn_output_try(asked, inputs, err) : tn_output_check(usual, inputs, err);
    }
    status = status == TN_OK ? tn_profile_open(&p->profile, err) : status;
    if (status != TN_OK) {
        tn_text_done(&p->path);
    }
    return status;
}

static tn_status show(const tn_picture *p, FILE *out, tn_error *err)
{
    tn_text text = {0};
    tn_status status = tn_profile_text(p->profile, &text, err);
    status = status == TN_OK ? tn_profile_write(p->profile, tn_text_str(&p->path), err) : status;
    if (status == TN_OK) {
        tn_text_addf(&text, "trace: '%s', for ui.perfetto.dev\n", tn_text_str(&p->path));
    }
    (void)fputs(tn_text_str(&text), out);
    tn_text_done(&text);
    return status;
}

tn_status tn_picture_show(tn_picture *p, FILE *out, tn_status status, tn_error *err)
{
    if (p->profile != NULL && tn_profile_ended(p->profile)) {
        tn_error second = {0};
        tn_status shown = show(p, out, &second);
        if (status == TN_OK && shown != TN_OK) {
            *err = second;
            status = shown;
        }
    }
    tn_profile_close(p->profile);
    tn_text_done(&p->path);
    *p = (tn_picture){0};
    return status;
}
