/* bench_hostile.c - what hostile peers cost those that keep the rules: rate and memory beside them.
 *
 *     bench_hostile [--json] [TURNS [ATTACK ..]]      9 turns, all attacks, over TCP and CURVE
 *     bench_hostile --flat ..                         attackers without a pause: for a look
 *
 * Two ranks ask a third, 16 requests of each under way, of 64 bytes and of 64 KB. Turns without and
 * with an attacker follow each other; it is a process of its own, which does as much as 500
 * connections or messages a second. "rate" is requests per processor second of the attacked process
 * beside it, in percent of those just before: an attacker comes with a processor of its own, which
 * this machine may not have to spare. "clock" is the same per second, whoever wants the processors.
 * "memory" is the most that the attacked process grew in a turn.
 */
#include "figure.h"
#include "machine.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "cluster/attacks.h"
#include "cluster/goodlinks.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 9, TURNS_MAX = 1000, IDLE = 1000, WAIT_S = 20, SETTLE_MS = 500, SIZES = 2 };

static const uint32_t sizes[SIZES] = {64, 64 << 10};
static const uint64_t turn_ns = 240000000;
static const uint64_t flood_ns = 2000000000;
static const uint64_t pause_ns = 2000000;

static _Noreturn void give_up(const char *why)
{
    (void)fprintf(stderr, "bench_hostile: %s\n", why);
    _Exit(1);
}

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        give_up(err->text);
    }
}

/* ---- the attacker's process ---- */

static attack_score *map_score(const char *dir)
{
    char path[TN_PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/score", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(attack_score)) != 0) {
        give_up("no score");
    }
    void *score = mmap(NULL, sizeof(attack_score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (score == MAP_FAILED) {
        give_up("no score");
    }
    (void)close(fd);
    return score;
}

static void load_keys(tn_security *out, const tn_zmq *z, const char *dir)
{
    char key[TN_PATH_SIZE];
    tn_error err = {0};
    (void)snprintf(key, sizeof key, "%s/rank-%u.key", dir, (unsigned)GOOD_OTHER);
    const tn_security_opts opts = {.key = key, .allow = dir};
    must(tn_security_init(out, z, &opts, &err), &err);
}

/* bench_hostile --attack NAME ADDRESS DIR KEYS PAUSE, until it is killed. */
static void attack_for_ever(char **argv)
{
    static const atomic_bool never = false;
    tn_zmq z;
    tn_error err = {0};
    tn_security member = {0};
    tn_security stranger = {0};
    const bool has_keys = strcmp(argv[3], "curve") == 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    must(tn_zmq_load(&z, &err), &err);
    attack_on on = {.z = &z,
                    .has_keys = has_keys,
                    .member = &member,
                    .stranger = &stranger,
                    .rank = GOOD_OTHER,
                    .size = GOOD_SEATS,
                    .job = GOOD_JOB,
                    .session = GOOD_SESSION,
                    .idle = IDLE,
                    .pause_ns = strtoull(argv[4], NULL, 10),
                    .stop = &never,
                    .score = map_score(argv[2])};
    must(tn_endpoint_read(argv[1], 0, &on.at, &err), &err);
    if (has_keys) {
        char theirs[TN_PATH_SIZE];
        load_keys(&member, &z, argv[2]);
        (void)snprintf(theirs, sizeof theirs, "%s/theirs", argv[2]);
        load_keys(&stranger, &z, theirs);
    } else {
        must(tn_security_init(&member, &z, NULL, &err), &err);
    }
    for (uint32_t i = 0; i < attack_count(); i++) {
        if (strcmp(attack_at(i)->name, argv[0]) == 0) {
            attack_at(i)->run(&on);
        }
    }
}

/* ---- the attacked ---- */

typedef struct ground {
    tn_zmq z;
    good_links *good;
    good_way way;
    char dir[64], at[TN_ENDPOINT_SIZE], pause[32];
    attack_score *score;
} ground;

static double rss_mb(void)
{
    char text[200] = "";
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fgets(text, sizeof text, f) == NULL) {
        give_up("no /proc/self/statm");
    }
    (void)fclose(f);
    char *rest = text;
    (void)strtoull(text, &rest, 10);
    return (double)strtoull(rest, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* Copies the server's key beside one that nobody lists. */
static void make_stranger(const ground *b)
{
    char path[3][TN_PATH_SIZE];
    tn_curve_pair pair;
    tn_text text = {0};
    tn_error err = {0};
    (void)snprintf(path[0], TN_PATH_SIZE, "%s/theirs", b->dir);
    must(tn_dir_make(path[0], &err), &err);
    (void)snprintf(path[0], TN_PATH_SIZE, "%s/theirs/rank-%u.key", b->dir, (unsigned)GOOD_OTHER);
    (void)snprintf(path[1], TN_PATH_SIZE, "%s/theirs/rank-%u.pub", b->dir, (unsigned)GOOD_OTHER);
    must(tn_curve_make(&b->z, &pair, &err), &err);
    must(tn_curve_write(&b->z, &pair, path[0], path[1], &err), &err);
    (void)snprintf(path[0], TN_PATH_SIZE, "%s/rank-0.pub", b->dir);
    (void)snprintf(path[2], TN_PATH_SIZE, "%s/theirs/rank-0.pub", b->dir);
    must(tn_file_read_all(path[0], 1000, &text, &err), &err);
    must(tn_file_replace(path[2], text.data, text.size, &err), &err);
    tn_text_done(&text);
}

static void open_ground(ground *b, good_way way)
{
    tn_error err = {0};
    b->way = way;
    (void)snprintf(b->dir, sizeof b->dir, "/tmp/bench_hostile.XXXXXX");
    if (mkdtemp(b->dir) == NULL) {
        give_up("no folder in /tmp");
    }
    must(tn_zmq_load(&b->z, &err), &err);
    must(good_open(&b->good, &b->z, way, b->dir, &err), &err);
    tn_endpoint_write(&b->good->at, b->at);
    b->score = map_score(b->dir);
    if (way == GOOD_CURVE) {
        make_stranger(b);
    }
}

static void close_ground(ground *b)
{
    tn_error err = {0};
    good_close(b->good);
    (void)munmap(b->score, sizeof *b->score);
    must(tn_remove_tree(b->dir, &err), &err);
}

/* Returns when the attack is felt. */
static pid_t set_loose(ground *b, const attack *a)
{
    char self[] = "/proc/self/exe";
    char option[] = "--attack";
    char name[32];
    char way[16];
    pid_t pid = 0;
    (void)snprintf(name, sizeof name, "%s", a->name);
    (void)snprintf(way, sizeof way, "%s", good_way_name(b->way));
    char *const argv[] = {self, option, name, b->at, b->dir, way, b->pause, NULL};
    const uint64_t wanted = strcmp(a->name, "idle") == 0 ? IDLE : 1;
    const uint64_t until = tn_clock_ns() + WAIT_S * UINT64_C(1000000000);
    atomic_store(&b->score->strikes, 0);
    if (posix_spawn(&pid, self, NULL, NULL, argv, environ) != 0) {
        give_up("cannot start an attacker");
    }
    while (atomic_load(&b->score->strikes) < wanted && tn_clock_ns() < until) {
        (void)poll(NULL, 0, 1);
    }
    if (atomic_load(&b->score->strikes) < wanted) {
        (void)kill(pid, SIGKILL);
        give_up("the attacker does not get going");
    }
    if (wanted > 1) {
        (void)poll(NULL, 0, SETTLE_MS); /* connected is not yet accepted */
    }
    return pid;
}

static void call_off(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)poll(NULL, 0, 50); /* its connections are closed */
}

typedef struct pace {
    double clock, cpu; /* requests a second, and a processor second of this process */
    double most_mb;    /* memory */
} pace;

static pace measure_pace(const ground *b, uint32_t bytes, uint64_t ns)
{
    enum { SLICES = 12 };
    const double cpu = tn_machine_cpu_s();
    const uint64_t start = tn_clock_ns();
    uint64_t n = 0;
    pace p = {.most_mb = 0};
    for (uint32_t i = 0; i < SLICES; i++) {
        uint64_t got = 0;
        if (!good_ask_for(b->good, bytes, ns / SLICES, &got)) {
            give_up("good peers get no answers");
        }
        n += got;
        p.most_mb = fmax(p.most_mb, rss_mb());
    }
    p.clock = (double)n * 1e9 / (double)(tn_clock_ns() - start);
    p.cpu = (double)n / (tn_machine_cpu_s() - cpu);
    return p;
}

/* Of one attack and one size. */
typedef struct outcome {
    tn_samples rate, clock, growth, alone;
} outcome;

static void take_turn(ground *b, const attack *a, uint32_t bytes, outcome *o)
{
    const bool is_endless = strcmp(a->name, "endless") == 0; /* it takes time to fill a memory */
    const uint64_t ns = is_endless ? flood_ns : turn_ns;
    const pace alone = measure_pace(b, bytes, ns);
    const pid_t pid = set_loose(b, a);
    const pace beside = measure_pace(b, bytes, ns);
    call_off(pid);
    tn_sample(&o->rate, 100 * beside.cpu / alone.cpu);
    tn_sample(&o->clock, 100 * beside.clock / alone.clock);
    tn_sample(&o->growth, fmax(beside.most_mb - alone.most_mb, 0));
    tn_sample(&o->alone, alone.cpu / 1e3);
}

static void measure(ground *b, const attack *a, uint32_t bytes, uint32_t turns, bool json)
{
    static outcome o;
    memset(&o, 0, sizeof o);
    (void)measure_pace(b, bytes, turn_ns); /* buffers grow */
    for (uint32_t t = 0; t < turns; t++) {
        take_turn(b, a, bytes, &o);
    }
    if (!good_is_whole(b->good)) {
        give_up("a request was lost, or answered twice");
    }
    const tn_figure figures[] = {
        {.what = "rate",
         .unit = "%",
         .is = tn_spread_of(&o.rate),
         .yardstick = tn_spread_of(&o.alone).median,
         .yardstick_is = "thousand a processor second alone",
         .target = 90},
        {.what = "clock", .unit = "%", .is = tn_spread_of(&o.clock), .target = (double)NAN},
        {.what = "memory",
         .unit = "MB",
         .is = tn_spread_of(&o.growth),
         .target = 64,
         .at_most = true}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        char what[120];
        tn_figure f = figures[i];
        (void)snprintf(what, sizeof what, "%s, %u bytes, '%s': %s", good_way_name(b->way), bytes,
                       a->name, f.what);
        f.row = "C8";
        f.what = what;
        tn_figure_print(&f, json);
    }
}

static bool is_wanted(const attack *a, good_way way, int argc, char **argv)
{
    bool wanted = argc == 0;
    for (int i = 0; i < argc; i++) {
        wanted = wanted || strcmp(argv[i], a->name) == 0;
    }
    return wanted && (a->kind != ATTACK_UNLISTED || way == GOOD_CURVE);
}

/* Both ends of a thousand connections are files. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void measure_sizes(ground *b, const attack *a, uint32_t turns, bool json)
{
    for (uint32_t k = 0; k < SIZES; k++) {
        measure(b, a, sizes[k], turns, json);
    }
}

int main(int argc, char **argv)
{
    static ground b;
    tn_flush_denormals();
    allow_files();
    if (argc == 7 && strcmp(argv[1], "--attack") == 0) {
        attack_for_ever(argv + 2);
        return 0;
    }
    bool json = tn_json_wanted(&argc, argv);
    bool flat = argc > 1 && strcmp(argv[1], "--flat") == 0;
    argc -= flat;
    argv += flat;
    uint64_t turns = argc > 1 ? strtoull(argv[1], NULL, 10) : TURNS;
    turns = turns < 1 ? 1 : turns > TURNS_MAX ? TURNS_MAX : turns;
    (void)snprintf(b.pause, sizeof b.pause, "%llu", flat ? 0ULL : (unsigned long long)pause_ns);
    tn_machine_print(json);
    for (good_way way = GOOD_TCP; way <= GOOD_CURVE; way++) {
        open_ground(&b, way);
        for (uint32_t i = 0; i < attack_count(); i++) {
            if (is_wanted(attack_at(i), way, argc > 2 ? argc - 2 : 0, argv + 2)) {
                measure_sizes(&b, attack_at(i), (uint32_t)turns, json);
            }
        }
        close_ground(&b);
    }
    return 0;
}
