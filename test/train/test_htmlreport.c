/* test_htmlreport.c - the page: well formed, alone, escaped. */
#include "train/report/htmlreport.h"

#include "base/file/file.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/report/htmlfigures.h"
#include "train/resultkit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void page_of(const resultkit *k, const char *config, tn_text *out)
{
    tn_error err = {0};
    assert_int_equal(tn_html_report(&k->findings, config, out, &err), TN_OK);
}

static bool is_void(const char *name, size_t size)
{
    return (size == 4 && memcmp(name, "meta", 4) == 0) ||
           (size == 8 && memcmp(name, "!DOCTYPE", 8) == 0);
}

/* Every element that is opened is closed, in order. */
static void assert_balanced(const char *page)
{
    enum { DEPTH_MAX = 64 };
    char open[DEPTH_MAX][16];
    uint32_t depth = 0;
    for (const char *at = strchr(page, '<'); at != NULL; at = strchr(at, '<')) {
        bool closes = at[1] == '/';
        const char *name = at + 1 + closes;
        size_t size = strcspn(name, " >/\n");
        const char *end = strchr(at, '>');
        assert_non_null(end);
        assert_true(size > 0 && size < sizeof open[0]);
        if (closes) {
            assert_true(depth > 0);
            assert_int_equal(strlen(open[depth - 1]), size);
            assert_memory_equal(open[--depth], name, size);
        } else if (end[-1] != '/' && !is_void(name, size)) {
            assert_true(depth < DEPTH_MAX);
            memcpy(open[depth], name, size);
            open[depth++][size] = '\0';
        }
        at = end;
    }
    assert_int_equal(depth, 0);
}

TEST(a_page_is_well_formed_and_holds_all_parts)
{
    resultkit k;
    tn_text page = {0};
    resultkit_make(&k, true, "item");
    page_of(&k, "run: {name: a}", &page);
    const char *s = tn_text_str(&page);
    assert_balanced(s);
    static const char *const parts[] = {
        "ROC, AUC 0.9333",   "precision and recall", "reliability", "scores: clicks", "deciles",
        "By values of item", "runs/a/ckpt-3",        "00ff",        "run: {name: a}"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        assert_non_null(strstr(s, parts[i]));
    }
    assert_null(strstr(s, "nan"));
    assert_null(strstr(s, "inf"));
    tn_text_done(&page);
    resultkit_done(&k);
}

static void assert_has(const tn_text *page, const char *text)
{
    if (strstr(tn_text_str(page), text) == NULL) {
        fail_msg("no '%s' in: %s", text, tn_text_str(page));
    }
}

TEST(the_head_says_what_was_judged_on_what_and_when_it_was_trained)
{
    static const char line[] = "{\"kind\":\"train\",\"step\":12,\"t\":1700000000}\n";
    static const char hash[] = "00112233445566778899aabbccddeeff";
    char dir[256];
    char path[300];
    const char *data = "logs/day&night.tsv";
    resultkit k;
    tn_text page = {0};
    tn_tmpdir_make(dir);
    (void)snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    assert_int_equal(tn_file_replace(path, line, sizeof line - 1, NULL), TN_OK);
    resultkit_make(&k, true, "item");
    k.run.data.test = (tn_strs){1, &data};
    k.findings.journal = path;
    k.findings.config_hash = hash;
    page_of(&k, NULL, &page);
    assert_has(&page, "12 steps, 345 records, until 2023-11-14 22:13 UTC<");
    assert_has(&page, "<code>logs/day&amp;night.tsv</code> 8 records of 1 file, 0 bad");
    assert_has(&page, ">001122334455</code>");
    tn_text_done(&page);
    resultkit_done(&k);
    tn_tmpdir_remove(dir);
}

/* On a small screen what is wide scrolls by itself, and letters keep their size. */
TEST(tables_and_wide_figures_scroll)
{
    resultkit k;
    tn_text page = {0};
    resultkit_make(&k, true, "item");
    page_of(&k, NULL, &page);
    for (const char *at = tn_text_str(&page); (at = strstr(at, "<table")) != NULL; at++) {
        assert_memory_equal(at - strlen("<div class=\"wide\">"), "<div class=\"wide\">", 18);
    }
    assert_has(&page, "<div class=\"wide\"><svg viewBox=\"0 0 666 ");
    assert_has(&page, ".wide svg{max-width:none}");
    tn_text_done(&page);
    resultkit_done(&k);
}

TEST(a_page_loads_nothing_and_runs_nothing)
{
    resultkit k;
    tn_text page = {0};
    resultkit_make(&k, false, "item");
    page_of(&k, NULL, &page);
    static const char *const never[] = {
        "<script", "http:", "https:", "src=", "href=", "url(", "@import", "onload"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        assert_null(strstr(tn_text_str(&page), never[i]));
    }
    tn_text_done(&page);
    resultkit_done(&k);
}

TEST(names_and_configuration_are_escaped)
{
    resultkit k;
    tn_text page = {0};
    resultkit_make(&k, false, "<b>&\"'");
    k.run.run.name = "</title><script>x</script>";
    k.findings.data = "a<b>.tsv";
    page_of(&k, "x: '</pre><script>'\n\x01", &page);
    assert_balanced(tn_text_str(&page));
    assert_null(strstr(tn_text_str(&page), "<script"));
    assert_non_null(strstr(tn_text_str(&page), "&lt;b&gt;&amp;&quot;&#39;"));
    assert_null(strchr(tn_text_str(&page), '\x01'));
    tn_text_done(&page);
    resultkit_done(&k);
}

TEST(one_class_has_no_curves)
{
    static const float logit[] = {-1, 1};
    static const float label[] = {0, 0};
    tn_metrics *m = NULL;
    tn_text out = {0};
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){0}, NULL), TN_OK);
    tn_scored rows = {.n = 2, .logit = logit, .label = label};
    assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    tn_figure_roc(m, &out);
    tn_figure_precision(m, &out);
    assert_int_equal(out.size, 0);
    tn_figure_reliability(m, NULL, &out);
    tn_figure_scores(m, &out);
    assert_balanced(tn_text_str(&out));
    tn_metrics_free(m);
    tn_text_done(&out);
}

TEST(no_rows_make_a_page_too)
{
    resultkit k;
    tn_text page = {0};
    resultkit_make(&k, true, "item");
    tn_metrics_clear(k.evaluation.metrics);
    tn_slices_free(k.evaluation.slices[0]);
    assert_int_equal(
        tn_slices_new(&k.evaluation.slices[0], &(tn_slices_opts){.slices_max = 1}, NULL), TN_OK);
    page_of(&k, NULL, &page);
    assert_balanced(tn_text_str(&page));
    assert_non_null(strstr(tn_text_str(&page), "n/a"));
    tn_text_done(&page);
    resultkit_done(&k);
}

TEST(the_file_is_replaced_as_a_whole)
{
    char dir[256];
    char path[300];
    resultkit k;
    tn_error err = {0};
    tn_text page = {0};
    tn_text file = {0};
    tn_tmpdir_make(dir);
    (void)snprintf(path, sizeof path, "%s/r.html", dir);
    resultkit_make(&k, false, "item");
    assert_int_equal(tn_file_replace(path, "old", 3, &err), TN_OK);
    assert_int_equal(tn_html_report_write(&k.findings, NULL, path, &err), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &file, &err), TN_OK);
    page_of(&k, NULL, &page);
    assert_string_equal(tn_text_str(&file), tn_text_str(&page));
    (void)snprintf(path, sizeof path, "%s/missing/r.html", dir);
    assert_int_equal(tn_html_report_write(&k.findings, NULL, path, &err), TN_E_IO);
    tn_text_done(&page);
    tn_text_done(&file);
    resultkit_done(&k);
    tn_tmpdir_remove(dir);
}
