/* test_manifest.c - MANIFEST as docs/formats.md writes it, and everything that must be refused. */
#include "support/test.h"

#include "base/codec/json.h"
#include "base/math/sha256.h"
#include "train/checkpoint/run_state.h"

static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/* The document of docs/formats.md, its blanks filled in. */
static const char example[] =
    "{\"format\":\"tnet-checkpoint\",\"version\":[1,0],\"kind\":\"full\",\"ordinal\":42,"
    "\"base\":null,\"run_id\":\"0102030405060708\",\"step\":12000,\"samples\":\"49152000\","
    "\"rows\":\"3145728\",\"clock\":20089,\"config\":{\"hash\":"
    "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\",\"structure\":"
    "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"},"
    "\"sparse\":{\"partitions\":1024,\"records\":[{\"segments\":[{\"name\":\"wide\",\"dim\":1,"
    "\"optimizer\":\"ftrl\",\"state\":[[\"z\",1],[\"n\",1]]},{\"name\":\"deep\",\"dim\":16,"
    "\"optimizer\":\"adam\",\"state\":[[\"m\",16],[\"v\",16],[\"t\",1,\"u32\"]]}]}],"
    "\"groups\":[{\"name\":\"user\",\"salt\":\"3da0fd9c44cfc9ee\",\"record\":0}]},"
    "\"dense\":{\"size\":423280,\"optimizer\":\"adam\",\"state\":[\"m\",\"v\"],\"scalars\":"
    "{\"t\":\"12000\"},\"params\":[{\"name\":\"deep.1.W\",\"shape\":[320,400],\"at\":0,"
    "\"train\":true}]},\"progress\":{\"epoch\":0,\"parts\":[[0,\"0\",\"268435456\",\"done\"],"
    "[0,\"268435456\",\"536870912\",\"dealt\",0,\"102400\"],"
    "[1,\"0\",\"268435456\",\"free\",0,\"0\"]]},\"seed\":\"00000000000000ff\","
    "\"requests\":[],\"metrics\":{\"best\":{\"name\":\"auc\",\"value\":0.7911,"
    "\"step\":11000},\"bad_evals\":1,\"lr_scale\":1},\"logs\":{},"
    "\"host\":{\"cpu\":\"x86-64-v4\",\"blas\":\"0.3.21 Cooperlake\"},"
    "\"files\":[{\"name\":\"config.yaml\",\"type\":\"config\",\"bytes\":\"100\","
    "\"crc32c\":\"0000000b\"},{\"name\":\"sparse-0000-1023.tns\",\"type\":\"sparse\","
    "\"bytes\":\"268435456\",\"crc32c\":\"0000000a\",\"rows\":\"3145728\","
    "\"partitions\":[0,1023]}],";

static const tn_row_record record = {
    .n_segments = 2,
    .segment = {{.name = "wide",
                 .dim = 1,
                 .optimizer = "ftrl",
                 .n_states = 2,
                 .state = {{"z", 1, false}, {"n", 1, false}}},
                {.name = "deep",
                 .dim = 16,
                 .optimizer = "adam",
                 .n_states = 3,
                 .state = {{"m", 16, false}, {"v", 16, false}, {"t", 1, true}}}}};
static const tn_row_group group = {"user", 0x3da0fd9c44cfc9ee, 0};
static const tn_manifest_param param = {"deep.1.W", 2, {320, 400}, 0, true};
static tn_epoch_part part[3] = {{0, 0, 268435456, TN_PART_DONE, 0, 0},
                                {0, 268435456, 536870912, TN_PART_DEALT, 0, 102400},
                                {1, 0, 268435456, TN_PART_FREE, 0, 0}};
static const tn_manifest_file file[2] = {
    {.name = "config.yaml", .type = "config", .bytes = 100, .crc = 0xb},
    {.name = "sparse-0000-1023.tns",
     .type = "sparse",
     .bytes = 268435456,
     .rows = 3145728,
     .crc = 0xa,
     .last = 1023}};

/* A manifest and the sections that it points to. */
typedef struct sample {
    tn_manifest m;
    tn_run_sections run;
} sample;

static void fill(sample *s)
{
    s->m = (tn_manifest){
        .ordinal = 42,
        .run_id = 0x0102030405060708,
        .step = 12000,
        .samples = 49152000,
        .rows = 3145728,
        .clock = 20089,
        .config_hash = hash,
        .structure = hash,
        .sparse =
            {.partitions = 1024, .n_records = 1, .n_groups = 1, .record = &record, .group = &group},
        .dense = {.size = 423280,
                  .optimizer = "adam",
                  .n_states = 2,
                  .n_params = 1,
                  .state = {"m", "v"},
                  .t = 12000,
                  .param = &param},
        .sections = {tn_run_sections_rows, &s->run},
        .n_files = 2,
        .file = file,
    };
    s->run = (tn_run_sections){
        .progress = {.n_parts = 3, .part = part},
        .kept.patience = {.monitor = "auc",
                          .seen = true,
                          .best = 0.7911,
                          .counted = 0.7911,
                          .step = 11000,
                          .bad = 1,
                          .lr_scale = 1},
        .seed = 0xff,
        .cpu = "x86-64-v4",
        .blas = "0.3.21 Cooperlake",
    };
}

static void write_text(const sample *s, tn_text *text, uint32_t *crc)
{
    assert_int_equal(tn_manifest_write(&s->m, text, crc, NULL), TN_OK);
}

TEST(golden_manifest_members_in_order)
{
    sample m;
    fill(&m);
    tn_text text CLEANUP(tn_text_done) = {0};
    uint32_t crc = 0;
    write_text(&m, &text, &crc);
    assert_int_equal(text.size, strlen(example) + 21);
    for (size_t i = 0; i < strlen(example); i++) {
        fail_if(text.data[i] != example[i], "differs at %zu: %.40s, wanted %.40s", i, text.data + i,
                example + i);
    }
    char tail[32];
    (void)snprintf(tail, sizeof tail, "\"crc32c\":\"%08x\"}\n", crc);
    assert_string_equal(text.data + text.size - 21, tail);
}

TEST(golden_model_id_of_files)
{
    const tn_manifest_file files[] = {
        {.name = "config.yaml", .type = "config", .bytes = 9, .crc = 1},
        {.name = "dense-0000.safetensors", .type = "dense", .bytes = 120, .crc = 0xd06f75ab},
        {.name = "metrics.safetensors", .type = "metrics", .bytes = 9, .crc = 2},
        {.name = "sources.jsonl", .type = "sources", .bytes = 9, .crc = 3}};
    const tn_manifest m = {.n_files = 4,
                           .file = files,
                           .structure =
                               "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_manifest_add_learned(&text, &m);
    assert_string_equal(tn_text_str(&text),
                        "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\","
                        "[{\"name\":\"dense-0000.safetensors\",\"type\":"
                        "\"dense\",\"bytes\":\"120\",\"crc32c\":\"d06f75ab\"}]");
    tn_sha256 h;
    uint8_t digest[32];
    char hex[65];
    tn_sha256_init(&h);
    tn_sha256_add(&h, text.data, text.size);
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, hex);
    assert_memory_equal(hex, "c1665130c99209d740b70206fae732da", 32);
}

static tn_status read_text(const tn_text *text, tn_arena *arena, sample *out, tn_error *err)
{
    out->run = (tn_run_sections){0};
    out->m.sections = (tn_doc_part){tn_run_sections_rows, &out->run};
    return tn_manifest_read(&out->m, text, arena, "ckpt-42/MANIFEST", err);
}

TEST(what_was_written_is_read_back)
{
    sample m;
    fill(&m);
    sample back = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text again CLEANUP(tn_text_done) = {0};
    uint32_t crc = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    write_text(&m, &text, &crc);
    assert_int_equal(read_text(&text, arena, &back, NULL), TN_OK);
    assert_int_equal(back.m.crc, crc);
    assert_int_equal(back.m.base, 0);
    assert_int_equal(back.m.file[1].last, 1023);
    assert_int_equal(back.run.progress.part[1].position, 102400);
    assert_string_equal(back.m.sparse.record[0].segment[1].state[2].name, "t");
    assert_true(back.m.sparse.record[0].segment[1].state[2].count);
    write_text(&back, &again, &crc); /* every member came back, or this would differ */
    assert_int_equal(again.size, text.size);
    assert_memory_equal(again.data, text.data, text.size);
}

TEST(what_counts_for_a_stop_comes_back_where_it_is_not_the_best)
{
    static const struct {
        double counted;
        const char *words;
    } cases[] = {{0.7911, ",\"step\":11000},"},
                 {0.5, ",\"step\":11000,\"counted\":0.5},"},
                 {(double)NAN, ",\"step\":11000,\"counted\":null},"}};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    for (uint32_t i = 0; i < 3; i++) {
        sample m;
        fill(&m);
        sample got = {0};
        tn_text text CLEANUP(tn_text_done) = {0};
        uint32_t crc = 0;
        m.run.kept.patience.counted = cases[i].counted;
        write_text(&m, &text, &crc);
        assert_non_null(strstr(tn_text_str(&text), cases[i].words));
        assert_int_equal(read_text(&text, arena, &got, NULL), TN_OK);
        assert_true(isnan(cases[i].counted) ? isnan(got.run.kept.patience.counted)
                                            : got.run.kept.patience.counted == cases[i].counted);
    }
}

TEST(all_that_a_run_keeps_comes_back)
{
    static const char calibration[] = "{}";
    sample m;
    sample back = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text again CLEANUP(tn_text_done) = {0};
    uint32_t crc = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    fill(&m);
    m.run.progress.shared = true;
    m.run.progress.cut_for = 3;
    m.run.kept.epoch_step = 900;
    m.run.kept.begun = true;
    m.run.kept.begun_crc = 0xbe9;
    m.run.kept.days = (tn_learned_days){.used = true, .day = 20763};
    m.run.kept.export = (tn_publish_state){.due = true, .awaits = true, .calibration = calibration};
    m.run.kept.patience.lr_scale = 0.25;
    m.run.kept.eval_owed = true;
    write_text(&m, &text, &crc);
    assert_int_equal(read_text(&text, arena, &back, NULL), TN_OK);
    const tn_run_kept *kept = &back.run.kept;
    assert_int_equal(back.run.progress.cut_for, 3);
    assert_int_equal(kept->epoch_step, 900);
    assert_true(kept->begun && kept->begun_crc == 0xbe9);
    assert_true(kept->days.used && kept->days.day == 20763);
    assert_true(kept->export.due && kept->export.awaits);
    assert_string_equal(kept->export.calibration, calibration);
    assert_true(kept->patience.seen && kept->patience.best == 0.7911);
    assert_true(kept->patience.bad == 1 && kept->patience.lr_scale == 0.25 && kept->eval_owed);
    write_text(&back, &again, &crc);
    assert_string_equal(tn_text_str(&again), tn_text_str(&text));
}

static void assert_days(const tn_learned_days *days, const char *want)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    sample m;
    fill(&m);
    sample got = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    uint32_t crc = 0;
    m.run.kept.days = tn_days_pack(days);
    write_text(&m, &text, &crc);
    assert_non_null(strstr(tn_text_str(&text), want));
    assert_int_equal(read_text(&text, arena, &got, NULL), TN_OK);
    assert_memory_equal(&got.run.kept.days, days, sizeof *days);
}

TEST(days_come_back)
{
    tn_learned_days days = {.used = true, .n = 2, .range = {{20758, 20760}, {20762, 20762}}};
    assert_days(&days, "\"days\":{\"learned\":[[20758,20760],[20762,20762]]},\"seed\"");
    days.within = true;
    days.day = 20763;
    days.before = 41;
    days.samples = 5000;
    assert_days(
        &days,
        "[20762,20762]],\"day\":20763,\"epoch\":0,\"before\":41,\"samples\":\"5000\"},\"seed\"");
}

TEST(what_is_published_comes_back)
{
    static const char *const ids[] = {"", "c1665130c99209d740b70206fae732da"};
    for (uint32_t i = 0; i < 4; i++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
        sample m;
        fill(&m);
        sample got = {0};
        tn_text text CLEANUP(tn_text_done) = {0};
        uint32_t crc = 0;
        m.run.kept.export.due = i % 2 != 0;
        (void)snprintf(m.run.kept.export.newest, sizeof m.run.kept.export.newest, "%s", ids[i / 2]);
        write_text(&m, &text, &crc);
        assert_int_equal(strstr(tn_text_str(&text), "\"export\"") != NULL, i > 0);
        assert_int_equal(read_text(&text, arena, &got, NULL), TN_OK);
        assert_memory_equal(&got.run.kept.export, &m.run.kept.export, sizeof m.run.kept.export);
    }
}

/* It becomes a path. */
TEST(an_id_that_is_none_is_refused)
{
    static const char *const ids[] = {"c1665130c99209d740b70206fae732d",
                                      "../../../../../../../../etc/passw"};
    for (uint32_t i = 0; i < 2; i++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
        sample m;
        fill(&m);
        sample got = {0};
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_error err = {0};
        uint32_t crc = 0;
        m.run.kept.export.due = true;
        (void)snprintf(m.run.kept.export.newest, sizeof m.run.kept.export.newest, "%s", ids[i]);
        write_text(&m, &text, &crc);
        assert_int_equal(read_text(&text, arena, &got, &err), TN_E_CKPT);
        assert_non_null(strstr(err.text, "export.newest"));
    }
}

TEST(an_evaluation_that_is_owed_is_written_only_then)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    for (int owed = 0; owed < 2; owed++) {
        sample m;
        fill(&m);
        sample got = {0};
        tn_text text CLEANUP(tn_text_done) = {0};
        uint32_t crc = 0;
        m.run.kept.eval_owed = owed != 0;
        write_text(&m, &text, &crc);
        bool stands = strstr(tn_text_str(&text), ",\"lr_scale\":1,\"eval_owed\":true}") != NULL;
        assert_int_equal(stands, m.run.kept.eval_owed);
        assert_int_equal(read_text(&text, arena, &got, NULL), TN_OK);
        assert_int_equal(got.run.kept.eval_owed, m.run.kept.eval_owed);
    }
}

TEST(parts_that_several_stand_in_say_how_they_count)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    for (uint32_t shared = 0; shared < 2; shared++) {
        sample m;
        fill(&m);
        sample got = {0};
        tn_text text CLEANUP(tn_text_done) = {0};
        uint32_t crc = 0;
        m.run.progress.shared = shared != 0;
        m.run.progress.shuffle = 100;
        write_text(&m, &text, &crc);
        assert_int_equal(strstr(tn_text_str(&text), "]],\"shuffle\":100},") != NULL,
                         m.run.progress.shared);
        assert_int_equal(read_text(&text, arena, &got, NULL), TN_OK);
        assert_int_equal(got.run.progress.shared, m.run.progress.shared);
        assert_int_equal(got.run.progress.shuffle, m.run.progress.shared ? 100 : 0);
    }
}

TEST(a_delta_names_its_base)
{
    sample m;
    fill(&m);
    sample back = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    uint32_t crc = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    m.m.base = 41;
    m.m.base_crc = 0xabc;
    m.run.kept.patience.monitor = NULL; /* nobody watches it any more */
    write_text(&m, &text, &crc);
    assert_non_null(strstr(text.data, "\"kind\":\"delta\",\"ordinal\":42,"
                                      "\"base\":{\"ordinal\":41,\"crc32c\":\"00000abc\"}"));
    assert_non_null(strstr(text.data, "\"metrics\":{\"best\":null,"));
    assert_int_equal(read_text(&text, arena, &back, NULL), TN_OK);
    assert_int_equal(back.m.base, 41);
    assert_int_equal(back.m.base_crc, 0xabc);
    assert_false(back.run.kept.patience.seen);
}

TEST(every_cut_and_every_flipped_bit_is_detected)
{
    sample m;
    fill(&m);
    sample back = {.m.ordinal = 7};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    uint32_t crc = 0;
    write_text(&m, &text, &crc);
    size_t size = text.size;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ (1 << bit % 8));
        fail_if(read_text(&text, arena, &back, &err) == TN_OK, "bit %zu of byte %zu is not noticed",
                bit % 8, bit / 8);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ (1 << bit % 8));
    }
    for (text.size = 0; text.size < size; text.size++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
        assert_int_equal(read_text(&text, arena, &back, &err), TN_E_CKPT);
    }
    assert_int_equal(back.m.ordinal, 7); /* untouched */
}

static const struct {
    const char *from, *to;
} lies[] = {
    {"\"tnet-checkpoint\"", "\"tnet-model\""},
    {"[1,0]", "[0,0]"},
    {"[1,0]", "1"},
    {"\"full\"", "\"delta\""},
    {"\"full\"", "\"half\""},
    {"\"ordinal\":42", "\"ordinal\":0"},
    {"\"ordinal\":42", "\"ordinal\":-1"},
    {"\"ordinal\":42", "\"ordinal\":1.5"},
    {"\"run_id\":\"01", "\"run_id\":\"0g"},
    {"\"step\":12000", "\"stop\":12000"},
    {"\"samples\":\"4", "\"samples\":\"x"},
    {"\"rows\":\"3145728\",\"clock\"", "\"rows\":\"3145729\",\"clock\""},
    {"\"clock\":20089", "\"clock\":4294967296"},
    {"\"hash\":\"00", "\"hash\":\"0"},
    {"\"structure\":\"00", "\"structure\":\"0G"},
    {"\"partitions\":1024", "\"partitions\":0"},
    {"\"partitions\":1024", "\"partitions\":65537"},
    {"\"records\":[", "\"records\":1,\"x\":["},
    {"\"dim\":16", "\"dim\":4097"},
    {"\"dim\":16", "\"dim\":\"sixteen\""},
    {"[\"z\",1]", "[\"z\"]"},
    {"[\"z\",1]", "[\"z\",1,\"f32\"]"},
    {"[\"z\",1]", "[\"z\",1,\"u32\",1]"},
    {"[\"z\",1]", "[1,1]"},
    {"[\"z\",1]", "{\"z\":1,\"y\":2}"},
    {"[\"z\",1]", "[\"z\",4097]"},
    {"[[\"z\",1],", "[[\"a\",1],[\"b\",1],[\"c\",1],[\"d\",1],"},
    {"\"salt\":\"3da0", "\"salt\":\"3da"},
    {"\"record\":0", "\"record\":1"},
    {"\"size\":423280", "\"size\":127999"},
    {"\"at\":0", "\"at\":423281"},
    {"[320,400]", "[9223372036854775808,2]"},
    {"[320,400]", "[1,1,1,1,1,1,1,1,1]"},
    {"\"train\":true", "\"train\":1"},
    {"{\"t\":\"12000\"}", "{\"t\":\"many\"}"},
    {"\"state\":[\"m\",\"v\"]", "\"state\":[\"m\",1]"},
    {"\"done\"", "\"done\",0,\"0\""},
    {"\"done\"", "\"gone\""},
    {"\"dealt\",0,", "\"dealt\","},
    {"\"free\",0,\"0\"", "\"free\",0,\"x\""},
    {"[1,\"0\",", "[1,\"268435457\","},
    {"\"seed\":", "\"seeds\":"},
    {"\"seed\":", "\"days\":{},\"seed\":"},
    {"\"seed\":", "\"days\":{\"learned\":[[2,1]]},\"seed\":"},
    {"\"seed\":", "\"days\":{\"learned\":[[1]]},\"seed\":"},
    {"\"seed\":", "\"days\":{\"learned\":[[1,2],[3,4]]},\"seed\":"}, /* one range */
    {"\"seed\":", "\"days\":{\"learned\":[[1,2],[0,0]]},\"seed\":"},
    {"\"seed\":", "\"days\":{\"learned\":[[1,2932897]]},\"seed\":"},
    {"\"seed\":", "\"days\":{\"learned\":[],\"day\":2932897,\"epoch\":0,\"before\":0,\"samples\":"
                  "\"0\"},\"seed\":"},
    {"\"seed\":",
     "\"days\":{\"learned\":[],\"day\":1,\"epoch\":99,\"before\":0,\"samples\":\"0\"},\"seed\":"},
    {"\"seed\":", "\"days\":{\"learned\":[],\"day\":1,\"epoch\":0},\"seed\":"},
    {"\"requests\":", "\"request\":"},
    {"\"value\":0.7911", "\"value\":\"high\""},
    {"\"best\":{", "\"worst\":{"},
    {"\"lr_scale\":1", "\"lr_scale\":null"},
    {"\"cpu\":", "\"gpu\":"},
    {"\"name\":\"config.yaml\"", "\"name\":\"../config.yaml\""},
    {"\"name\":\"config.yaml\"", "\"name\":\"..\""},
    {"\"name\":\"config.yaml\"", "\"name\":\"\""},
    {"\"name\":\"config.yaml\"", "\"name\":\"MANIFEST\""},
    {"\"name\":\"config.yaml\"", "\"name\":\"zonfig.yaml\""}, /* out of order */
    {"\"bytes\":\"100\"", "\"bytes\":\"18446744073709551615\""},
    {"\"crc32c\":\"0000000b\"", "\"crc32c\":\"b\""},
    {"\"partitions\":[0,1023]", "\"partitions\":[0,1022]"},
    {"\"partitions\":[0,1023]", "\"partitions\":[1,1023]"},
    {"\"partitions\":[0,1023]", "\"partitions\":[0,1024]"},
    {"\"partitions\":[0,1023]", "\"partitions\":[1023,0]"},
    {"\"partitions\":[0,1023]", "\"partitions\":[0]"},
    {"\"rows\":\"3145728\",\"partitions\"", "\"rows\":\"1\",\"partitions\""},
    {"\"host\":{", "\"host\":{},\"host\":{"},
};

TEST(right_checksums_do_not_make_a_manifest_right)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        const char *at = strstr(example, lies[i].from);
        assert_non_null(at);
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_error err = {0};
        sample back = {0};
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
        tn_text_add(&text, example, (size_t)(at - example));
        tn_text_adds(&text, lies[i].to);
        tn_text_adds(&text, at + strlen(lies[i].from));
        tn_json_close_with_crc(&text);
        fail_if(read_text(&text, arena, &back, &err) != TN_E_CKPT, "accepted: %s", lies[i].to);
        assert_non_null(strstr(err.text, "ckpt-42/MANIFEST"));
    }
}

TEST(members_of_a_later_minor_version_are_ignored)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    sample back = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_text_adds(&text, example);
    char *minor = strstr(text.data, "[1,0]");
    minor[3] = '7';
    tn_text_adds(&text, "\"news\":[{\"a\":1}]");
    tn_json_close_with_crc(&text);
    assert_int_equal(read_text(&text, arena, &back, NULL), TN_OK);
    assert_int_equal(back.m.ordinal, 42);
}

TEST(a_later_version_is_whole_and_yet_not_read)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    sample back = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_text_adds(&text, example);
    strstr(text.data, "[1,0]")[1] = '2';
    tn_text_adds(&text, "\"news\":1");
    tn_json_close_with_crc(&text);
    assert_int_equal(read_text(&text, arena, &back, &err), TN_E_LIMIT);
    assert_string_equal(err.text, "'ckpt-42/MANIFEST' was written by a newer version");
    text.data[20] ^= 1; /* then its version says nothing either */
    assert_int_equal(read_text(&text, arena, &back, &err), TN_E_CKPT);
}

TEST(structure_is_the_hash_of_three_texts)
{
    sample m;
    fill(&m);
    char got[65];
    char want[65];
    uint8_t digest[32];
    uint8_t schema[TN_SNAPSHOT_SCHEMA_BYTES];
    const char *sparse = strstr(example, "\"sparse\":") + strlen("\"sparse\":");
    const char *sparse_end = strstr(sparse, ",\"dense\":");
    const char *params = strstr(example, "\"params\":") + strlen("\"params\":");
    const char *params_end = strstr(params, "},\"progress\"");
    tn_sha256 h;
    tn_sha256_init(&h);
    tn_sha256_add(&h, sparse, (size_t)(sparse_end - sparse));
    tn_sha256 only_sparse = h;
    tn_sha256_add(&h, params, (size_t)(params_end - params));
    tn_sha256_add(&h, "[]", 2);
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, want);
    assert_int_equal(tn_manifest_structure(&m.m, "[]", got, NULL), TN_OK);
    assert_string_equal(got, want);
    tn_sha256_end(&only_sparse, digest);
    assert_int_equal(tn_row_schema_hash(&m.m.sparse, schema, NULL), TN_OK);
    assert_memory_equal(schema, digest, sizeof schema);
}
