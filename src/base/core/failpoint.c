/* failpoint.c - a handful of rules, matched by name and counted. */
#include "base/core/failpoint.h"

#include <stdbool.h>
#include <string.h>

#if defined(TN_FAILPOINTS)

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { NAME_SIZE = 48, SLEEP_MS = 100, ERRNO_MAX = 133 };

/* Special values of an errno or TN_FAIL_SHORT in a rule; the last two make the point return 0. */
enum { KILL = -2, SLEEP = -3, STOP = -4 };

typedef struct rule {
    char name[NAME_SIZE];
    uint64_t nth;   /* the first pass that fires, from 1 */
    uint64_t every; /* passes between two that fire; 0: only the nth fires */
    int failure;    /* errno, TN_FAIL_SHORT, KILL, SLEEP or STOP */
    uint32_t sleep_ms;
    uint64_t passed;
} rule;

/* State of test builds only; a release has none of it. */
static pthread_once_t from_environment = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rules */
static rule rules[TN_FAIL_RULES_MAX];
static uint32_t n_rules;
static _Atomic bool armed; /* n_rules > 0 */
static _Atomic uint64_t passed_in_all;

/* Returns 0 when no errno has this name. */
static int errno_of(const char *name)
{
    for (int i = 1; i <= ERRNO_MAX; i++) {
        const char *known = strerrorname_np(i);
        if (known != NULL && strcmp(known, name) == 0) {
            return i;
        }
    }
    return 0;
}

static bool parse_action(const char *text, rule *r)
{
    static const struct {
        const char *name;
        int failure;
    } actions[] = {
        {"kill", KILL}, {"sleep", SLEEP}, {"stop", STOP}, {"short", TN_FAIL_SHORT}, {"error", EIO}};
    static const char sleep_for[] = "sleep=";
    r->failure = errno_of(text);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        r->failure = strcmp(text, actions[i].name) == 0 ? actions[i].failure : r->failure;
    }
    r->sleep_ms = SLEEP_MS;
    if (strncmp(text, sleep_for, sizeof sleep_for - 1) == 0) {
        char *end = NULL;
        unsigned long ms = strtoul(text + sizeof sleep_for - 1, &end, 10);
        r->sleep_ms = (uint32_t)ms;
        r->failure = *end == '\0' && ms <= 60000 ? SLEEP : 0;
    }
    return r->failure != 0;
}

/* Reads "#17", "#17+" or "%17" at the end of a rule and cuts it off. */
static bool parse_passes(char *text, rule *r)
{
    char *end = NULL;
    r->nth = strtoull(text + 1, &end, 10);
    r->every = *text == '%' ? r->nth : *end == '+';
    const bool is_number = end != text + 1 && r->nth != 0;
    end += *text == '#' && *end == '+';
    *text = '\0';
    return is_number && *end == '\0';
}

/* Reads one rule, e.g. "io#17+:EIO", and cuts `text` into pieces. */
static bool parse_rule(char *text, rule *r)
{
    *r = (rule){.nth = 1, .every = 1};
    char *colon = strchr(text, ':');
    if (colon == NULL || !parse_action(colon + 1, r)) {
        return false;
    }
    *colon = '\0';
    char *passes = strpbrk(text, "#%");
    if (passes != NULL && !parse_passes(passes, r)) {
        return false;
    }
    size_t size = strlen(text);
    if (size == 0 || size >= sizeof r->name) {
        return false;
    }
    memcpy(r->name, text, size + 1);
    return true;
}

static tn_status parse_rules(const char *text, rule *out, uint32_t *n, tn_error *err)
{
    *n = 0;
    while (text != NULL && *text != '\0') {
        char one[128];
        size_t size = strcspn(text, ",");
        if (size >= sizeof one || *n == TN_FAIL_RULES_MAX) {
            return tn_fail(err, TN_E_USAGE, "too long or too many failpoint rules in '%s'", text);
        }
        memcpy(one, text, size);
        one[size] = '\0';
        if (!parse_rule(one, &out[*n])) {
            return tn_fail(err, TN_E_USAGE, "not a failpoint rule: '%.*s'", (int)size, text);
        }
        ++*n;
        text += size + (text[size] == ',');
    }
    return TN_OK;
}

static tn_status set_rules(const char *text, tn_error *err)
{
    rule parsed[TN_FAIL_RULES_MAX] = {0};
    uint32_t n = 0;
    TN_TRY(parse_rules(text, parsed, &n, err));
    pthread_mutex_lock(&lock);
    memcpy(rules, parsed, sizeof rules);
    n_rules = n;
    atomic_store(&armed, n > 0);
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static void read_environment(void)
{
    const char *text = getenv("TNET_FAIL"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    tn_status status = set_rules(text, NULL);
    TN_ASSERT(status == TN_OK); /* TNET_FAIL does not parse */
}

tn_status tn_failpoint_set(const char *text, tn_error *err)
{
    pthread_once(&from_environment, read_environment);
    return set_rules(text, err);
}

static bool matches(const rule *r, const char *name)
{
    size_t size = strlen(r->name);
    return strncmp(name, r->name, size) == 0 && (name[size] == '\0' || name[size] == '.');
}

static bool fires(const rule *r)
{
    return r->passed == r->nth ||
           (r->every != 0 && r->passed > r->nth && (r->passed - r->nth) % r->every == 0);
}

/* Finds the first rule that fires. Every rule that matches counts the pass. */
static bool find_fired(const char *name, rule *out)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_rules; i++) {
        rule *r = &rules[i];
        if (matches(r, name)) {
            r->passed++;
            if (fires(r) && !found) {
                *out = *r;
                found = true;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int tn_failpoint(const char *name)
{
    pthread_once(&from_environment, read_environment);
    atomic_fetch_add_explicit(&passed_in_all, 1, memory_order_relaxed);
    rule fired = {0};
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || !find_fired(name, &fired)) {
        return 0;
    }
    if (fired.failure == KILL) {
        (void)raise(SIGKILL);
    }
    if (fired.failure == STOP) {
        return raise(SIGTERM); /* 0 */
    }
    if (fired.failure == SLEEP) {
        struct timespec pause = {.tv_sec = fired.sleep_ms / 1000,
                                 .tv_nsec = (long)(fired.sleep_ms % 1000) * 1000000};
        (void)nanosleep(&pause, NULL);
        return 0;
    }
    return fired.failure;
}

uint64_t tn_failpoint_passed(void)
{
    return atomic_load(&passed_in_all);
}

#endif
