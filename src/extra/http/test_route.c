/* test_route.c - which paths are answered, and what they name. */
#include "extra/http/route.h"
#include "support/test.h"

static const tn_route_aliases no_aliases = {NULL, NULL};

/* "predict ads 6636": route, name and version of a path. */
static const char *found(const char *path, const tn_route_aliases *aliases)
{
    static char text[200];
    const tn_route_match m = tn_route_find(path, aliases);
    (void)snprintf(text, sizeof text, "%s%s %.*s %.*s", m.post ? "POST " : "",
                   tn_route_word(m.route), (int)m.name.size, m.name.size > 0 ? m.name.data : "",
                   (int)m.version.size, m.version.size > 0 ? m.version.data : "");
    return text;
}

TEST(paths_of_other_servers_are_known)
{
    static const char *const pairs[][2] = {
        {"/v1/models/ads:predict", "POST predict ads "},
        {"/v1/models/ads/versions/6636c5aa:predict", "POST predict ads 6636c5aa"},
        {"/v1/models/a.b_c-d:regress", "POST regress a.b_c-d "},
        {"/v1/models/ads:classify", "POST classify ads "},
        {"/v1/models/ads", "status ads "},
        {"/v1/models/ads/versions/6636c5aa", "status ads 6636c5aa"},
        {"/v1/models/ads/metadata", "metadata ads "},
        {"/v1/models", "models  "},
        {"/v2/models/ads/infer", "POST infer ads "},
        {"/v2/models/ads/versions/7/infer", "POST infer ads 7"},
        {"/v2/repository/models/ads/load", "POST v2_load ads "},
        {"/v2/models/ads/ready", "v2_model_ready ads "},
        {"/v2/health/live", "health  "},
        {"/invocations", "POST invocations  "},
        {"/ping", "ready  "},
        {"/score", "POST score  "},
        {"/monitoring/prometheus/metrics", "metrics  "},
        {"/", "root  "},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_string_equal(found(pairs[i][0], &no_aliases), pairs[i][1]);
    }
}

TEST(other_paths_are_none)
{
    static const char *const paths[] = {"",
                                        "/v1",
                                        "/v1/models/",
                                        "/v1/models/:predict",
                                        "/v1/models/ads:explain",
                                        "/v1/models/ads/versions/",
                                        "/v1/models/ads/versions/7/8",
                                        "/v1/models/ads:predict/",
                                        "/score/",
                                        "//score"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_string_equal(found(paths[i], &no_aliases), "none  ");
    }
}

TEST(a_platform_may_name_paths_of_its_own)
{
    const tn_route_aliases vertex = {"/v1/endpoints/1:predict", "/v1/endpoints/1"};
    assert_string_equal(found("/v1/endpoints/1:predict", &vertex), "POST invocations  ");
    assert_string_equal(found("/v1/endpoints/1", &vertex), "ready  ");
    assert_string_equal(found("/score", &vertex), "POST score  ");
}
