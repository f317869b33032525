/* calls.c - which function called which, by thread: for programs built with -finstrument-functions.
 *
 *     cc -shared -fPIC -o calls.so calls.c;  TN_CALLS=FILE LD_PRELOAD=./calls.so PROGRAM ..
 *
 * FILE has a line for every different chain of calls, in the order of the first call, with tabs
 * between: thread, depth, address in the program, how often. test/way/run.sh reads it.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct call {
    uintptr_t function;
    unsigned long count;
    struct call *caller;
    struct call *first, *last; /* what it called */
    struct call *next;         /* what its caller called after it */
} call;

typedef struct thread {
    char name[16];
    call root;
    call *now;
    struct thread *next;
} thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static thread *threads; /* under `lock` */
static _Thread_local thread *self;

static void *zeroed(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (p == NULL) {
        abort();
    }
    return p;
}

static thread *this_thread(void)
{
    if (self == NULL) {
        self = zeroed(sizeof *self);
        self->now = &self->root;
        (void)pthread_getname_np(pthread_self(), self->name, sizeof self->name);
        pthread_mutex_lock(&lock);
        self->next = threads;
        threads = self;
        pthread_mutex_unlock(&lock);
    }
    return self;
}

static call *call_of(call *caller, uintptr_t function)
{
    for (call *c = caller->first; c != NULL; c = c->next) {
        if (c->function == function) {
            return c;
        }
    }
    call *c = zeroed(sizeof *c);
    c->function = function;
    c->caller = caller;
    *(caller->last != NULL ? &caller->last->next : &caller->first) = c;
    caller->last = c;
    return c;
}

typedef struct started {
    void *(*run)(void *);
    void *arg;
} started;

/* A thread is named from outside, soon after it is made: waits for that, at most a second. */
static void *run_named(void *arg)
{
    started s = *(started *)arg;
    char first[16] = "";
    char name[16] = "";
    free(arg);
    (void)pthread_getname_np(pthread_self(), first, sizeof first);
    for (int i = 0; i < 10000; i++) {
        (void)pthread_getname_np(pthread_self(), name, sizeof name);
        if (strcmp(name, first) != 0) {
            break;
        }
        (void)usleep(100);
    }
    return s.run(s.arg);
}

/* In the place of libc's. */
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved
int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    started *s = zeroed(sizeof *s);
    *s = (started){run, arg};
    int failure = real(id, attr, run_named, s);
    if (failure != 0) {
        free(s);
    }
    return failure;
}

/* The compiler calls these two around every function. */
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): its names
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    thread *t = this_thread();
    t->now = call_of(t->now, (uintptr_t)function);
    t->now->count++;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function, (void)site;
    thread *t = this_thread();
    t->now = t->now->caller != NULL ? t->now->caller : t->now;
}

static int take_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the program comes first */
}

static void print(FILE *to, const thread *t, uintptr_t base)
{
    int depth = 0;
    for (const call *c = t->root.first; c != NULL;) {
        fprintf(to, "%s\t%d\t0x%lx\t%lu\n", t->name, depth, (unsigned long)(c->function - base),
                c->count);
        if (c->first != NULL) {
            c = c->first;
            depth++;
            continue;
        }
        while (c != NULL && c->next == NULL) {
            c = c->caller;
            depth--;
        }
        c = c != NULL ? c->next : NULL;
    }
}

__attribute__((destructor)) static void print_all(void)
{
    const char *path = getenv("TN_CALLS"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    FILE *to = path != NULL ? fopen(path, "w") : NULL;
    if (to == NULL) {
        return;
    }
    uintptr_t base = 0;
    (void)dl_iterate_phdr(take_base, &base);
    for (const thread *t = threads; t != NULL; t = t->next) {
        print(to, t, base);
    }
    if (fclose(to) != 0) {
        abort();
    }
}
