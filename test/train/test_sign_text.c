/* test_sign_text.c - words of slices: found in the data again, as far as they are wanted. */
#include "train/eval/sign_text.h"

#include "config/diag.h"
#include "support/test.h"

#include "base/math/key.h"
#include "config/yaml.h"
#include "io/read/dataset.h"
#include "metrics/slices.h"

static const char config[] =
    "{data: {format: csv}, slots: [{name: city, type: str, list: \"|\"}, {name: n, type: int}, "
    "{name: tag, type: str}]}";
static const char rows[] = "label,city,n,tag\n"
                           "1,Oslo|Rome,7,x\n"
                           "bad,Paris,7,x\n"
                           "0,Rome,-1,y\n"
                           "1,Lima,7,x\n";

typedef struct place {
    char dir[256];
    char path[300];
    const char *item;
    tn_arena *arena;
    tn_diag diag;
    tn_dataset data;
    tn_error err;
} place;

SET_UP
{
    static place p;
    p = (place){.arena = tn_arena_new(1 << 14)};
    tn_tmpdir_make(p.dir);
    (void)snprintf(p.path, sizeof p.path, "%s/rows.csv", p.dir);
    p.item = p.path;
    const tn_yaml_in in = {.text = config, .size = sizeof config - 1, .source = "test"};
    const tn_tree *tree = tn_yaml_read(p.arena, &p.diag, &in);
    const tn_binder binder = {.arena = p.arena, .diag = &p.diag};
    *state = &p;
    assert_ok(tn_file_replace(p.path, rows, sizeof rows - 1, &p.err) == TN_OK &&
                  tn_dataset_bind(&p.data, tree, 0, TN_TARGET_CLICK, &binder, &p.err),
              p.err.text);
}

TEAR_DOWN
{
    place *p = *state;
    tn_tmpdir_remove(p->dir);
    tn_diag_done(&p->diag);
    tn_arena_free(p->arena);
}

static uint64_t hash(const char *word)
{
    return tn_xxh64(word, strlen(word), 0);
}

/* Slices of these signs, each seen once, but the first twice. */
static tn_slices *slices_of(const uint64_t *sign, uint32_t n)
{
    tn_slices *s = NULL;
    const tn_slices_opts opts = {.slices_max = 16, .rows_min = 1, .sampling = 1};
    assert_int_equal(tn_slices_new(&s, &opts, NULL), TN_OK);
    for (uint32_t i = 0; i <= n; i++) {
        const float logit = 0;
        const float label = 1;
        const tn_scored scored = {.n = 1, .logit = &logit, .label = &label};
        const tn_slice_keys keys = {.sign = &sign[i % n]};
        assert_int_equal(tn_slices_add(s, &scored, &keys, NULL), TN_OK);
    }
    return s;
}

static tn_sign_words *search(place *p, uint32_t most, tn_slices **slices, uint32_t n)
{
    static const char *names[] = {"city", "n"};
    const tn_strs slots = {2, names};
    const tn_strs paths = {1, &p->item};
    const tn_evaluation result = {.slices = slices, .n_slices = n};
    const tn_sign_search in = {.schema = p->data.schema,
                               .paths = &paths,
                               .slots = &slots,
                               .result = &result,
                               .most = most};
    tn_sign_words *words = NULL;
    assert_int_equal(tn_sign_words_find(&words, &in, &p->err), TN_OK);
    return words;
}

TEST_ON(place *p, hashes_get_their_words_and_numbers_need_none)
{
    const uint64_t cities[] = {hash("Rome"),     hash("Lima"),  hash("Oslo"),
                               hash("Atlantis"), hash("Paris"), hash("x")};
    const uint64_t numbers[] = {7};
    tn_slices *slices[] = {slices_of(cities, 6), slices_of(numbers, 1)};
    tn_sign_words *words = search(p, 100, slices, 2);
    assert_string_equal(tn_sign_word(words, 0, hash("Rome")), "Rome");
    assert_string_equal(tn_sign_word(words, 0, hash("Lima")), "Lima");
    assert_string_equal(tn_sign_word(words, 0, hash("Oslo")), "Oslo");
    assert_null(tn_sign_word(words, 0, hash("Atlantis"))); /* nowhere */
    assert_null(tn_sign_word(words, 0, hash("Paris")));    /* in a bad record alone */
    assert_null(tn_sign_word(words, 0, hash("x")));        /* in another slot */
    assert_null(tn_sign_word(words, 1, 7));
    assert_null(tn_sign_word(words, 2, 7));
    assert_null(tn_sign_word(NULL, 0, hash("Rome")));
    tn_sign_words_free(words);

    words = search(p, 1, slices, 2); /* the largest one alone is shown */
    assert_string_equal(tn_sign_word(words, 0, hash("Rome")), "Rome");
    assert_null(tn_sign_word(words, 0, hash("Lima")));
    tn_sign_words_free(words);

    p->item = "-"; /* cannot be read again */
    words = search(p, 100, slices, 2);
    assert_null(tn_sign_word(words, 0, hash("Rome")));
    tn_sign_words_free(words);
    tn_slices_free(slices[0]);
    tn_slices_free(slices[1]);
}

TEST_ON(place *p, a_long_word_ends_with_a_whole_character)
{
    char word[TN_SIGN_WORD_MAX + 2] = "";
    tn_text text CLEANUP(tn_text_done) = {0};
    memset(word, 'a', TN_SIGN_WORD_MAX - 1);
    memcpy(word + TN_SIGN_WORD_MAX - 1, "\xc3\xa9", 3);
    tn_text_addf(&text, "label,city,n,tag\n1,%s,1,x\n", word);
    assert_int_equal(tn_file_replace(p->path, text.data, text.size, &p->err), TN_OK);
    const uint64_t sign = hash(word);
    tn_slices *slices = slices_of(&sign, 1);
    tn_sign_words *words = search(p, 100, &slices, 1);
    word[TN_SIGN_WORD_MAX - 1] = '\0';
    assert_string_equal(tn_sign_word(words, 0, sign), word);
    tn_sign_words_free(words);
    tn_slices_free(slices);
}

TEST_ON(place *p, without_memory_there_is_a_failure_and_no_leak)
{
    const uint64_t sign = hash("Rome");
    tn_slices *slices = slices_of(&sign, 1);
    static const char *names[] = {"city"};
    const tn_strs slots = {1, names};
    const tn_strs paths = {1, &p->item};
    const tn_evaluation result = {.slices = &slices, .n_slices = 1};
    const tn_sign_search in = {
        .schema = p->data.schema, .paths = &paths, .slots = &slots, .result = &result, .most = 9};
    bool failed = false;
    tn_status status = TN_E_MEMORY;
    for (uint64_t n = 1; n < 200; n++) {
        tn_sign_words *words = NULL;
        tn_alloc_fail_at(n);
        status = tn_sign_words_find(&words, &in, &p->err);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || status == TN_E_MEMORY);
        assert_true((words != NULL) == (status == TN_OK));
        failed = failed || status == TN_E_MEMORY;
        tn_sign_words_free(words);
    }
    assert_true(failed && status == TN_OK);
    tn_slices_free(slices);
}
