/* test_htmlfigures.c - figures: what stands where. */
#include "train/report/htmlfigures.h"

#include "support/test.h"

#include <math.h>
#include <string.h>

static const tn_chart_opts unit = {
    .title = "a < b", .x = {"x", 0, 1, false}, .y = {"y", 0, 1, false}};

TEST(corners_of_the_data_are_corners_of_the_plot)
{
    tn_text out = {0};
    tn_chart c = tn_chart_begin(&out, &unit);
    const tn_point line[] = {{0, 0}, {0.5, 0.5}, {1, 1}};
    tn_text_clear(&out);
    tn_chart_line(&c, "curve", line, 3);
    assert_string_equal(tn_text_str(&out),
                        "<path class=\"curve\" d=\"M52.0 328.0L202.0 178.0L352.0 28.0\"/>\n");
    tn_text_done(&out);
}

TEST(what_lies_outside_stands_on_the_edge)
{
    tn_text out = {0};
    tn_chart c = tn_chart_begin(&out, &unit);
    tn_text_clear(&out);
    tn_chart_dot(&c, "dot", (tn_point){7, -3}, 4, NULL);
    assert_string_equal(tn_text_str(&out),
                        "<circle class=\"dot\" cx=\"352.0\" cy=\"328.0\" r=\"4.0\"/>\n");
    tn_text_done(&out);
}

TEST(what_is_not_finite_is_left_out)
{
    tn_text out = {0};
    tn_chart c = tn_chart_begin(&out, &unit);
    tn_text_clear(&out);
    const tn_point line[] = {{0, (double)NAN}, {0, 0}, {(double)INFINITY, 1}, {1, 1}};
    tn_chart_line(&c, "curve", line, 4);
    assert_string_equal(tn_text_str(&out),
                        "<path class=\"curve\" d=\"M52.0 328.0L352.0 28.0\"/>\n");
    tn_text_clear(&out);
    tn_chart_dot(&c, "dot", (tn_point){(double)NAN, 0}, 4, "tip");
    tn_chart_bar(&c, "bar", (tn_point){0, 0}, (tn_point){1, (double)NAN}, NULL);
    assert_int_equal(out.size, 0);
    tn_text_done(&out);
}

TEST(a_bar_may_be_given_by_any_corners)
{
    static const char want[] = "<rect class=\"bar\" x=\"52.0\" y=\"178.0\" width=\"150.0\" "
                               "height=\"150.0\"><title>a &amp; b</title></rect>\n";
    tn_text out = {0};
    tn_chart c = tn_chart_begin(&out, &unit);
    tn_text_clear(&out);
    tn_chart_bar(&c, "bar", (tn_point){0, 0}, (tn_point){0.5, 0.5}, "a & b");
    assert_string_equal(tn_text_str(&out), want);
    tn_text_clear(&out);
    tn_chart_bar(&c, "bar", (tn_point){0.5, 0.5}, (tn_point){0, 0}, "a & b");
    assert_string_equal(tn_text_str(&out), want);
    tn_text_done(&out);
}

/* The middle of a logarithmic axis is its geometric mean. */
TEST(a_logarithmic_axis_halves_ratios)
{
    tn_text out = {0};
    tn_chart_opts opts = unit;
    opts.y = (tn_axis){"copc", 0.25, 4, true};
    tn_chart c = tn_chart_begin(&out, &opts);
    assert_non_null(strstr(tn_text_str(&out), ">0.25</text>"));
    tn_text_clear(&out);
    tn_chart_dot(&c, "dot", (tn_point){0, 1}, 4, NULL);
    assert_non_null(strstr(tn_text_str(&out), "cy=\"178.0\""));
    tn_text_clear(&out);
    tn_chart_dot(&c, "dot", (tn_point){0, 0}, 4, NULL); /* below all ratios */
    assert_non_null(strstr(tn_text_str(&out), "cy=\"328.0\""));
    tn_text_done(&out);
}

TEST(ticks_are_round_numbers)
{
    tn_text out = {0};
    tn_chart_opts opts = unit;
    opts.x = (tn_axis){"x", -3.3, 1.7, false};
    opts.y = (tn_axis){"y", 0, 12345, false};
    tn_chart c = tn_chart_begin(&out, &opts);
    tn_chart_end(&c);
    static const char *const want[] = {">-3<", ">0<", ">1<", ">5000<", ">10000<", "a &lt; b"};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_non_null(strstr(tn_text_str(&out), want[i]));
    }
    tn_text_done(&out);
}
