/* sign_text.c - prints signs, and looks for the words of those that are hashes. */
#include "train/eval/sign_text.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "base/math/key.h"
#include "io/read/fileset.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "metrics/slices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One sign that is shown, and its word. */
typedef struct wanted {
    uint64_t sign;
    const char *word; /* NULL: not found yet */
} wanted;

/* A slot of words. */
typedef struct words_of {
    uint32_t slot;
    uint64_t salt;
    uint32_t n;   /* 0: its signs are no hashes */
    wanted *item; /* by sign */
} words_of;

struct tn_sign_words {
    tn_arena *arena; /* owns all words */
    uint32_t n;
    words_of *slot;
    uint32_t missing;
    uint64_t bytes;
    const atomic_bool *stop;
};

static bool is_hash(const tn_slot_spec *spec)
{
    return spec->type == TN_SIGN_STR && spec->transform.kind == TN_TRANSFORM_IDENTITY;
}

void tn_sign_text(const tn_slot_spec *spec, uint64_t sign, tn_text *out)
{
    bool is_bucket = spec != NULL && spec->transform.kind != TN_TRANSFORM_IDENTITY;
    if (spec == NULL || (spec->type == TN_SIGN_ID && !is_bucket)) {
        tn_text_add_u64(out, sign);
    } else if (spec->transform.kind == TN_TRANSFORM_LN2_BUCKET) {
        bool is_small = sign >> 32 != 0; /* formats.md section 4: then the number itself */
        tn_text_addf(out, is_small ? "%" PRId32 : "ln2 %" PRId32, (int32_t)(uint32_t)sign);
    } else if (is_hash(spec)) {
        tn_text_addf(out, "%016" PRIx64, sign);
    } else if (spec->type == TN_SIGN_HEX && !is_bucket) {
        tn_text_addf(out, "%" PRIx64, sign);
    } else {
        tn_text_addf(out, "%" PRId64, (int64_t)sign); /* an int, or the number of a bucket */
    }
}

/* ---- what is wanted ---- */

static int by_sign(const void *a, const void *b)
{
    uint64_t x = ((const wanted *)a)->sign;
    uint64_t y = ((const wanted *)b)->sign;
    return (x > y) - (x < y);
}

static wanted *find(const words_of *w, uint64_t sign)
{
    const wanted key = {.sign = sign};
    return w->n > 0 ? bsearch(&key, w->item, w->n, sizeof key, by_sign) : NULL;
}

/* Adds the values of a report. */
static tn_status add_shown(words_of *w, tn_slices *slices, uint32_t most, tn_error *err)
{
    uint32_t n = 0;
    tn_slice *slice = NULL;
    TN_TRY(TN_ALLOC(slice, (size_t)tn_slices_count(slices) + 1, "a report of slices", err));
    const tn_status status = tn_slices_report(slices, slice, &n, err);
    for (uint32_t k = 0; status == TN_OK && k < n && k < most; k++) {
        if (!slice[k].is_other) {
            w->item[w->n++] = (wanted){.sign = slice[k].sign};
        }
    }
    tn_free(slice);
    return status;
}

/* Sorts what is wanted, each value once: tasks show the same ones. */
static void sort_once(words_of *w)
{
    uint32_t n = 0;
    if (w->n > 0) {
        qsort(w->item, w->n, sizeof *w->item, by_sign);
    }
    for (uint32_t k = 0; k < w->n; k++) {
        if (n == 0 || w->item[n - 1].sign != w->item[k].sign) {
            w->item[n++] = w->item[k];
        }
    }
    TN_ASSERT(n <= w->n);
    w->n = n;
}

static tn_status add_slot(tn_sign_words *words, const tn_sign_search *in, uint32_t i, tn_error *err)
{
    words_of *w = &words->slot[i];
    const tn_slot_spec *spec = tn_schema_slot(in->schema, in->slots->item[i]);
    if (spec == NULL || !is_hash(spec)) {
        return TN_OK;
    }
    w->slot = spec->slot;
    w->salt = spec->salt;
    const size_t places = (size_t)tn_slices_count(in->result->slices[i]) + 1;
    w->item = TN_NEW_ARRAY(words->arena, wanted, places * (1 + in->result->n_more));
    for (uint32_t k = 0; k <= in->result->n_more; k++) {
        TN_TRY(add_shown(w, tn_evaluation_of_task(in->result, k)->slices[i], in->most, err));
    }
    sort_once(w);
    words->missing += w->n;
    return TN_OK;
}

/* ---- the search ---- */

static void look_at(tn_sign_words *words, const words_of *w, const tn_rows *rows, uint32_t k)
{
    const tn_token *token = &rows->token[k];
    wanted *one = rows->entry[k].slot == w->slot && token->size != TN_TOKEN_NONE
                      ? find(w, tn_sign_of(rows->entry[k].key, w->salt))
                      : NULL;
    if (one == NULL || one->word != NULL) {
        return;
    }
    const char *text = rows->text + token->at;
    size_t size = token->size < TN_SIGN_WORD_MAX ? token->size : TN_SIGN_WORD_MAX;
    while (size > 0 && size < token->size && ((unsigned char)text[size] & 0xc0) == 0x80) {
        size--; /* no half of a character */
    }
    char *word = TN_NEW_ARRAY(words->arena, char, size + 1);
    memcpy(word, text, size);
    one->word = word;
    TN_ASSERT(words->missing > 0);
    words->missing--;
}

/* TN_END: there is nothing left to look for, or no time. */
static tn_status look(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    (void)err;
    tn_sign_words *words = ctx;
    const tn_rows *rows = block->rows;
    for (uint32_t i = 0; i < words->n; i++) {
        for (uint32_t k = 0; words->slot[i].n > 0 && k < rows->n_entries; k++) {
            look_at(words, &words->slot[i], rows, k);
        }
    }
    for (uint32_t r = 0; r < rows->n; r++) {
        words->bytes += block->raw[r].size;
    }
    bool over = words->missing == 0 || words->bytes >= TN_SIGN_WORDS_BYTES ||
                (words->stop != NULL && atomic_load(words->stop));
    return over ? TN_END : TN_OK;
}

static tn_status pass_over(void *ctx, const char *text, tn_error *err)
{
    (void)ctx;
    (void)text;
    (void)err;
    return TN_OK; /* the evaluation reported it */
}

static bool can_be_read_again(const tn_sign_search *in)
{
    tn_fileset *files = NULL;
    if (tn_fileset_new(&files, in->paths, in->schema, 1, NULL) != TN_OK) {
        return false;
    }
    bool can = true;
    for (uint32_t i = 0; i < files->n; i++) {
        can = can && !files->file[i].once;
    }
    tn_fileset_free(files);
    return can;
}

tn_status tn_sign_words_find(tn_sign_words **out, const tn_sign_search *in, tn_error *err)
{
    TN_ASSERT(in->result->n_slices <= in->slots->n);
    *out = NULL;
    const uint32_t n = in->result->n_slices;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_sign_words *words = TN_NEW(arena, tn_sign_words);
    words->arena = arena;
    words->stop = in->stop;
    words->slot = TN_NEW_ARRAY(arena, words_of, (size_t)n + 1);
    tn_status status = TN_OK;
    for (; status == TN_OK && words->n < n; words->n++) {
        status = add_slot(words, in, words->n, err);
    }
    if (status == TN_OK && words->missing > 0 && can_be_read_again(in)) {
        const tn_row_scan_visitor visitor = {.ctx = words, .block = look, .fault = pass_over};
        const tn_row_scan_in pass = {
            .schema = in->schema, .paths = in->paths, .keep = TN_ROWS_SIGNS};
        tn_row_scan_counts counts;
        status = tn_row_scan_run(&pass, &visitor, &counts, err);
        status = status == TN_E_MEMORY ? status : TN_OK; /* else with what was found */
    }
    if (status != TN_OK) {
        tn_sign_words_free(words);
        return status;
    }
    *out = words;
    return TN_OK;
}

void tn_sign_words_free(tn_sign_words *words)
{
    if (words != NULL) {
        tn_arena_free(words->arena);
    }
}

const char *tn_sign_word(const tn_sign_words *words, uint32_t i, uint64_t sign)
{
    const wanted *one = words != NULL && i < words->n ? find(&words->slot[i], sign) : NULL;
    return one != NULL ? one->word : NULL;
}
