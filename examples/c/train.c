/* train.c - trains a model from a configuration, tells how it goes, and exports it.
 *
 *     cc train.c $(pkg-config --cflags --libs tnet-train) -o train
 *     ./train configs/widedeep.yaml export train.epochs=2
 */
#include <tnet_train.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static tnet_run *run;

static void stop(int signal)
{
    (void)signal;
    tnet_run_stop(run); /* the model is kept */
}

static void show(void *arg, int level, const char *text, int transient)
{
    (void)arg;
    (void)level;
    (void)fprintf(stderr, transient ? "\r%s" : "%s\n", text);
}

static int scores(void *arg, uint64_t step, const tnet_value *values, size_t n)
{
    (void)arg;
    for (size_t i = 0; i < n; i++) {
        (void)printf("step %llu: %s %s %.6f\n", (unsigned long long)step, values[i].data,
                     values[i].metric, values[i].value);
    }
    return 0;
}

int main(int argc, char **argv)
{
    tnet_error err;
    char id[33];
    if (argc < 3) {
        (void)fprintf(stderr, "usage: train CONFIG FOLDER [key=value ..]\n");
        return TNET_E_USAGE;
    }
    const tnet_hooks hooks = {.size = sizeof hooks, .line = show, .evaluated = scores};
    const tnet_run_opts opts = {.size = sizeof opts,
                                .path = argv[1],
                                .overrides = (const char *const *)argv + 3,
                                .n_overrides = (size_t)argc - 3,
                                .hooks = &hooks};
    int code = tnet_run_new(&opts, &run, &err);
    if (code == TNET_OK) {
        (void)signal(SIGINT, stop);
        code = tnet_run_train(run, &err);
    }
    if (code == TNET_OK) {
        code = tnet_run_export(run, argv[2], id, &err);
    }
    if (code == TNET_OK) {
        (void)printf("%s/%s\n", argv[2], id);
    } else {
        (void)fprintf(stderr, "train: error: %s\n", err.text);
    }
    tnet_run_free(run);
    return code;
}
