/* linear_text.c - the printed models of xLearn and VW, line by line. */
#include "extra/linear/linear_text.h"

#include "base/core/number.h"

#include <stdio.h>
#include <string.h>

tn_status tn_linear_text_fail(const tn_linear_text *t, const char *what, tn_bytes found,
                              tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "%s:%llu: error: expected %s, found \"%.*s\"", t->path,
                   (unsigned long long)t->line, what, (int)(found.size < 60 ? found.size : 60),
                   found.data);
}

static bool begins(tn_bytes text, const char *with)
{
    return text.size >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

/* Takes the bytes up to `end`, and `end`, off the front; all of them if there is none. */
static tn_bytes take_until(tn_bytes *rest, char end)
{
    const char *stop = rest->size > 0 ? memchr(rest->data, end, rest->size) : NULL;
    tn_bytes out = {.data = rest->data,
                    .size = stop != NULL ? (size_t)(stop - rest->data) : rest->size};
    (void)tn_get(rest, out.size + (stop != NULL));
    return out;
}

/* Cuts the last `c` and the bytes after it off the end. Returns false if there is none. */
static bool cut_behind(tn_bytes *text, char c, tn_bytes *out)
{
    const char *at = text->size > 0 ? memrchr(text->data, c, text->size) : NULL;
    if (at == NULL) {
        return false;
    }
    *out = (tn_bytes){.data = at + 1, .size = (size_t)(text->data + text->size - at - 1)};
    text->size = (size_t)(at - text->data);
    return true;
}

static tn_status next_line(tn_linear_text *t, tn_bytes *out, tn_error *err)
{
    if (t->rest.size == 0) {
        return TN_END;
    }
    t->line++;
    const bool whole = memchr(t->rest.data, '\n', t->rest.size) != NULL;
    *out = take_until(&t->rest, '\n');
    out->size -= out->size > 0 && out->data[out->size - 1] == '\r';
    if (out->size > 0 && memchr(out->data, '\0', out->size) != NULL) {
        return tn_linear_text_fail(t, "text", (tn_bytes){.data = "a NUL", .size = 5}, err);
    }
    return whole ? TN_OK : tn_linear_text_fail(t, "the end of the line", *out, err);
}

/* ---- numbers ---- */

static tn_bytes next_word(tn_bytes *rest)
{
    tn_bytes word = {.data = rest->data};
    while (rest->size > 0 && word.size == 0) {
        word = take_until(rest, ' ');
    }
    return word;
}

static uint32_t count_words(tn_bytes text)
{
    uint32_t n = 0;
    while (n < UINT32_MAX && next_word(&text).size > 0) {
        n++;
    }
    return n;
}

tn_status tn_linear_text_numbers(const tn_linear_text *t, const tn_linear_line *line, float *out,
                                 tn_error *err)
{
    tn_bytes rest = line->number;
    for (uint32_t i = 0; i < line->n; i++) {
        const tn_bytes word = next_word(&rest);
        if (tn_read_f32(word.data, word.size, &out[i]) != TN_NUM_OK) {
            return tn_linear_text_fail(t, "a number", word, err);
        }
    }
    return TN_OK;
}

/* ---- xLearn ---- */

/* Reads the numbers in "i_12", "v_12" and "v_12_3". */
static bool read_places(tn_bytes name, tn_linear_line *out)
{
    tn_bytes rest = {.data = name.data + 2, .size = name.size - 2};
    uint64_t field = TN_LINEAR_NO_FIELD;
    const bool has_field = memchr(rest.data, '_', rest.size) != NULL;
    const tn_bytes index = take_until(&rest, '_');
    bool good = tn_read_u64(index.data, index.size, &out->index) == TN_NUM_OK;
    if (has_field) {
        good = good && out->kind == TN_LINEAR_VECTOR &&
               tn_read_u64(rest.data, rest.size, &field) == TN_NUM_OK && field < TN_LINEAR_NO_FIELD;
    }
    out->field = (uint32_t)field;
    return good;
}

static tn_status read_xlearn(const tn_linear_text *t, tn_bytes line, tn_linear_line *out,
                             tn_error *err)
{
    tn_bytes rest = line;
    const tn_bytes name = take_until(&rest, ':');
    *out = (tn_linear_line){.name = name, .number = rest, .field = TN_LINEAR_NO_FIELD, .n = 1};
    bool good = name.size < line.size;
    if (begins(name, "v_")) {
        out->kind = TN_LINEAR_VECTOR;
        out->n = count_words(rest);
        good = good && out->n > 0 && read_places(name, out);
    } else if (begins(name, "i_")) {
        out->kind = TN_LINEAR_WEIGHT;
        good = good && read_places(name, out);
    } else {
        good = good && name.size == 4 && begins(name, "bias");
    }
    if (!good) {
        return tn_linear_text_fail(t, "'bias: w', 'i_N: w' or 'v_N: w ..' of xLearn", line, err);
    }
    if (out->kind != TN_LINEAR_VECTOR && count_words(rest) != 1) {
        return tn_linear_text_fail(t, "one number", rest, err);
    }
    return TN_OK;
}

/* ---- VW ---- */

/* Reads [name:]index:weight, and the numbers that --save_resume appends. */
static bool read_weight(tn_bytes line, tn_linear_line *out)
{
    tn_bytes index = {0};
    float weight = 0;
    *out = (tn_linear_line){.name = line, .kind = TN_LINEAR_WEIGHT, .n = 1};
    out->field = TN_LINEAR_NO_FIELD;
    if (!cut_behind(&out->name, ':', &out->number)) {
        return false;
    }
    if (!cut_behind(&out->name, ':', &index)) {
        index = out->name;
        out->name.size = 0;
    }
    out->number = take_until(&out->number, ' ');
    return tn_read_u64(index.data, index.size, &out->index) == TN_NUM_OK &&
           tn_read_f32(out->number.data, out->number.size, &weight) == TN_NUM_OK;
}

static bool is_name(tn_bytes name)
{
    bool good = true;
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.data[i];
        good = good && c != ':' && c != '|' && c != ' ' && c != '\t' && c != '\r';
    }
    return good;
}

static tn_status read_vw(const tn_linear_text *t, tn_bytes line, tn_linear_line *out, tn_error *err)
{
    static const char constant[] = "Constant";
    if (!read_weight(line, out) || !is_name(out->name)) {
        return tn_linear_text_fail(t, "'name:index:weight' of VW", line, err);
    }
    if (out->name.size == strlen(constant) && begins(out->name, constant)) {
        out->kind = TN_LINEAR_BIAS;
    }
    return TN_OK;
}

/* ---- the head of VW's ---- */

enum { LETTERS = 256, PAIRS_MAX = 4096 };

typedef struct lrq {
    uint32_t n; /* pairs */
    unsigned char pair[PAIRS_MAX][2];
} lrq;

static bool has_pair(const lrq *all, unsigned char a, unsigned char b)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const unsigned char *p = all->pair[i];
        if ((p[0] == a && p[1] == b) || (p[0] == b && p[1] == a)) {
            return true;
        }
    }
    return false;
}

/* "up3": namespaces that begin with u and p, three numbers. */
static tn_status take_lrq(tn_linear_text *t, lrq *all, tn_bytes word, tn_error *err)
{
    uint64_t k = 0;
    const unsigned char a = word.size > 2 ? (unsigned char)word.data[0] : 0;
    const unsigned char b = word.size > 2 ? (unsigned char)word.data[1] : 0;
    if (a == b || tn_read_u64(word.data + 2, word.size - 2, &k) != TN_NUM_OK || k == 0 ||
        k >= UINT32_MAX || (all->n > 0 && k != t->width) || all->n == PAIRS_MAX) {
        return tn_linear_text_fail(t, "--lrq of two namespaces, all of one width", word, err);
    }
    t->width = (uint32_t)k;
    t->width_line = t->line;
    if (!has_pair(all, a, b)) {
        all->pair[all->n][0] = a;
        all->pair[all->n++][1] = b;
    }
    return TN_OK;
}

/* A vector meets those of all other slots here, so each two of the namespaces must be a pair. */
static tn_status check_pairs(const tn_linear_text *t, const lrq *all, tn_bytes line, tn_error *err)
{
    bool seen[LETTERS] = {false};
    uint32_t letters = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            letters += !seen[all->pair[i][k]];
            seen[all->pair[i][k]] = true;
        }
    }
    TN_ASSERT(all->n == 0 || letters >= 2);
    return 2 * all->n == letters * (letters - 1) || all->n == 0
               ? TN_OK
               : tn_linear_text_fail(t, "an --lrq for each two of its namespaces", line, err);
}

/* Options of how it was learned, which change nothing in what its weights mean. */
static const char harmless[] =
    "--learning_rate --power_t --initial_t --decay_learning_rate --ftrl --ftrl_alpha --ftrl_beta "
    "--coin --pistol --sgd --adaptive --normalized --invariant --l1 --l2 --l1_state --l2_state "
    "--noconstant --hash --hash_seed --chain_hash --link --loss_function --bit_precision "
    "--no_bias_regularization";

static bool is_harmless(tn_bytes word)
{
    tn_bytes rest = {.data = harmless, .size = strlen(harmless)};
    bool good = !begins(word, "--"); /* a value */
    for (tn_bytes known = next_word(&rest); known.size > 0; known = next_word(&rest)) {
        good = good || (known.size == word.size && memcmp(known.data, word.data, word.size) == 0);
    }
    return good;
}

static tn_status read_options(tn_linear_text *t, tn_bytes line, tn_error *err)
{
    lrq all = {0};
    tn_bytes rest = line;
    (void)next_word(&rest); /* "options:" */
    for (tn_bytes word = next_word(&rest); word.size > 0; word = next_word(&rest)) {
        if (word.size == strlen("--lrq") && begins(word, "--lrq")) {
            TN_TRY(take_lrq(t, &all, next_word(&rest), err));
        } else if (!is_harmless(word)) {
            return tn_linear_text_fail(t, "a linear model of VW, or one of --lrq", word, err);
        }
    }
    return check_pairs(t, &all, line, err);
}

/* Up to the line ":0", or ":1" and the state of --save_resume. */
static tn_status read_head(tn_linear_text *t, tn_error *err)
{
    tn_bytes line = {.data = ""};
    tn_linear_line weight;
    tn_status status = next_line(t, &line, err);
    if (status == TN_END || (status == TN_OK && !begins(line, "Version "))) {
        return tn_linear_text_fail(t, "'Version ..' of VW", line, err);
    }
    while (status == TN_OK && !begins(line, ":")) {
        if (begins(line, "options:")) {
            TN_TRY(read_options(t, line, err));
        }
        status = next_line(t, &line, err);
    }
    if (status == TN_END) {
        return tn_linear_text_fail(t, "':0' or ':1' behind the head", line, err);
    }
    for (tn_linear_text ahead = *t; status == TN_OK && begins(line, ":1");) {
        status = next_line(&ahead, &line, err);
        if (status != TN_OK || read_weight(line, &weight)) {
            break;
        }
        *t = ahead;
        line = (tn_bytes){.data = ":1", .size = 2};
    }
    return status == TN_END ? TN_OK : status;
}

tn_status tn_linear_text_begin(tn_linear_text *out, bool vw, tn_bytes bytes, const char *path,
                               tn_error *err)
{
    *out = (tn_linear_text){.path = path, .rest = bytes, .vw = vw};
    return vw ? read_head(out, err) : TN_OK;
}

tn_status tn_linear_text_next(tn_linear_text *t, tn_linear_line *out, tn_error *err)
{
    tn_bytes line = {0};
    TN_TRY(next_line(t, &line, err));
    return t->vw ? read_vw(t, line, out, err) : read_xlearn(t, line, out, err);
}
