/* served.c - folder, links, server, secrets. */
#include "support/served.h"

#include "base/core/text.h"
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 600 };

void served_write(const char *dir, const char *name, const void *data, size_t size)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

char *served_bytes(size_t size)
{
    char *data = malloc(size);
    uint32_t x = 1;
    assert_non_null(data);
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (char)(x >> 24);
    }
    return data;
}

void served_secrets(const served *s, const char *lines)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addf(&text, "[default]\nendpoint_url = http://127.0.0.1:%u\nwebhdfs_user = hdfs\n%s",
                 store_port(s->server), lines);
    served_write(s->dir, "secrets", text.data, text.size);
    assert_int_equal(chmod(s->secrets, 0600), 0);
}

void served_open(served *s, const char *links)
{
    char path[PATH_BYTES];
    tn_tmpdir_make(s->dir);
    for (size_t n = 0; *links != '\0'; links += n + (links[n] == ' ')) {
        n = strcspn(links, " ");
        (void)snprintf(path, sizeof path, "%s/%.*s", s->dir, (int)n, links);
        assert_int_equal(symlink(".", path), 0);
    }
    s->server = store_open(s->dir);
    assert_non_null(s->server);
    (void)snprintf(s->secrets, sizeof s->secrets, "%s/secrets", s->dir);
    served_secrets(s, "");
}

void served_close(served *s)
{
    store_close(s->server);
    tn_tmpdir_remove(s->dir);
}

void served_uri(const served *s, const char *form, char out[SERVED_URI])
{
    const char *mark = strchr(form, '%');
    char hosts[40] = "";
    const size_t before = mark != NULL ? (size_t)(mark - form) : strlen(form);
    if (mark != NULL && mark[1] == 'n') {
        (void)snprintf(hosts, sizeof hosts, "%u,127.0.0.1:%u", store_standby_port(s->server),
                       store_port(s->server));
    } else if (mark != NULL) {
        (void)snprintf(hosts, sizeof hosts, "%u", store_port(s->server));
    }
    (void)snprintf(out, SERVED_URI, "%.*s%s%s", (int)before, form, hosts,
                   mark != NULL ? mark + 2 : "");
}

void *served_stop_thread(void *stop)
{
    served_stop *t = stop;
    while (store_requests(t->s->server) < t->requests || store_held(t->s->server) < t->held) {
        (void)usleep(1000);
    }
    atomic_store(&t->stop, true);
    return NULL;
}

void served_silence(const char *divisor)
{
    (void)setenv("TNET_SILENCE", divisor, 1); /* NOLINT(concurrency-mt-unsafe): alone */
}
