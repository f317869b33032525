/* test_report_page.c - the page: alone, with all numbers, whatever names hold. */
#include "base/codec/json.h"
#include "extra/report/report_json.h"
#include "support/test.h"
#include "train/report/eval_pages.h"
#include "train/resultkit.h"

extern const tn_eval_page tn_eval_page_html;

static void page_of(const resultkit *k, const char *config, tn_text *out)
{
    assert_int_equal(tn_eval_page_html.make(&k->findings, config, out, NULL), TN_OK);
}

static void assert_has(const tn_text *page, const char *text)
{
    assert_says(tn_text_str(page), text);
}

/* The object between the tags of the data. */
static const tn_json *data_of(const tn_text *page, tn_arena *arena)
{
    static const char tag[] = "<script type=\"application/json\" id=\"data\">";
    const char *begin = strstr(tn_text_str(page), tag);
    const tn_json *top = NULL;
    assert_non_null(begin);
    begin += sizeof tag - 1;
    const char *end = strstr(begin, "</script>");
    assert_non_null(end);
    assert_int_equal(tn_json_parse(&top, begin, (size_t)(end - begin), arena, "page", NULL), TN_OK);
    return top;
}

static const char *text_at(const tn_json *top, const char *key)
{
    return tn_json_as_str(tn_json_get(top, key));
}

TEST(a_page_has_the_numbers)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text page CLEANUP(tn_text_done) = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    resultkit_make(&k, true, "item");
    page_of(&k, "run: {name: a}", &page);
    const tn_json *top = data_of(&page, arena);
    double auc = 0;
    assert_true(tn_json_as_f64(tn_json_get(tn_json_get(top, "curve"), "auc"), &auc));
    assert_true(auc > 0.93333 && auc < 0.93334);
    assert_string_equal(text_at(top, "config"), "run: {name: a}");
    assert_null(strstr(tn_text_str(&page), "{{"));
}

TEST(readers_without_scripts_get_facts_and_metrics)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text page CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, true, "item");
    page_of(&k, NULL, &page);
    assert_has(&page, "<title>a on test</title>");
    assert_has(&page, "<h1>a on test</h1>");
    assert_has(&page, "<tr><td>weights</td><td>runs/a/ckpt-3</td><td></td></tr>");
    assert_has(&page, "<tr><td>trained</td><td></td><td>12 steps, 345 records</td></tr>");
    assert_has(&page, "<tr><td>auc</td><td>0.933333333</td><td>area under the ROC curve</td></tr>");
    tn_text_clear(&page);
    tn_metrics_clear(k.evaluation.metrics);
    page_of(&k, NULL, &page);
    assert_has(&page, "<tr><td>auc</td><td>n/a</td><td>area under the ROC curve</td></tr>");
}

TEST(a_page_loads_nothing_and_makes_no_markup_of_data)
{
    static const char *const never[] = {"https:",  "src=",      "href=",         "url(",
                                        "@import", "innerHTML", "outerHTML",     "document.write",
                                        "onload",  "fetch(",    "XMLHttpRequest"};
    static const char name_of_svg[] = "http://www.w3.org/2000/svg";
    resultkit k CLEANUP(resultkit_done);
    tn_text page CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, false, "item");
    page_of(&k, NULL, &page);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        assert_null(strstr(tn_text_str(&page), never[i]));
    }
    for (const char *at = tn_text_str(&page); (at = strstr(at, "http:")) != NULL; at++) {
        assert_memory_equal(at, name_of_svg, sizeof name_of_svg - 1);
    }
    assert_has(&page, "content=\"default-src 'none';");
}

TEST(names_and_configuration_are_text)
{
    static const char hostile[] = "</title></script><script>x</script><!--\"'&\xe4\xb8\xad";
    static const char config[] = "x: '</pre><SCRIPT>'\n\x01";
    resultkit k CLEANUP(resultkit_done);
    tn_text page CLEANUP(tn_text_done) = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    resultkit_make(&k, true, "<b>&\"'");
    k.run.run.name = hostile;
    k.findings.data = "a<b>.tsv";
    page_of(&k, config, &page);
    assert_has(&page, "<h1>&lt;/title&gt;&lt;/script&gt;&lt;script&gt;x&lt;/script&gt;&lt;!--"
                      "&quot;&#39;&amp;\xe4\xb8\xad on a&lt;b&gt;.tsv</h1>");
    uint32_t scripts = 0;
    for (const char *at = tn_text_str(&page); (at = strstr(at, "<script")) != NULL; at++) {
        scripts++;
    }
    assert_int_equal(scripts, 2);
    const tn_json *top = data_of(&page, arena);
    assert_memory_equal(text_at(top, "title"), hostile, sizeof hostile - 1);
    assert_string_equal(text_at(top, "config"), config);
    const tn_json *slot = tn_json_get(tn_json_item(tn_json_get(top, "slices"), 0), "table");
    assert_string_equal(tn_json_as_str(tn_json_item(tn_json_get(slot, "columns"), 0)), "<b>&\"'");
}

TEST(what_html_must_not_hold_is_replaced)
{
    resultkit k CLEANUP(resultkit_done);
    tn_text page CLEANUP(tn_text_done) = {0};
    resultkit_make(&k, false, "item");
    k.run.run.name = "a\x01z";
    page_of(&k, "\x02", &page);
    assert_has(&page, "<h1>a\xef\xbf\xbdz on test</h1>");
    assert_null(strpbrk(tn_text_str(&page), "\x01\x02"));
}

TEST(the_file_is_replaced_as_a_whole)
{
    char path[300];
    resultkit k CLEANUP(resultkit_done);
    tn_error err = {0};
    tn_text page CLEANUP(tn_text_done) = {0};
    tn_text file CLEANUP(tn_text_done) = {0};
    TMPDIR(dir);
    resultkit_make(&k, false, "item");
    page_of(&k, NULL, &page);
    assert_ptr_equal(tn_all_eval_pages[0], &tn_eval_page_html);
    (void)snprintf(path, sizeof path, "%s/r.html", dir);
    assert_int_equal(tn_file_replace(path, "old", 3, &err), TN_OK);
    assert_int_equal(tn_eval_page_write(&tn_eval_page_html, &k.findings, NULL, path, &err), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &file, &err), TN_OK);
    assert_string_equal(tn_text_str(&file), tn_text_str(&page));
    (void)snprintf(path, sizeof path, "%s/missing/r.html", dir);
    assert_int_equal(tn_eval_page_write(&tn_eval_page_html, &k.findings, NULL, path, &err),
                     TN_E_IO);
}
