/* test_sha256.c - vectors of FIPS 180-4 and of docs/formats.md. */
#include "base/math/sha256.h"
#include "support/test.h"

static void hashes_to(const char *text, const char *expected)
{
    tn_sha256 h;
    uint8_t digest[32];
    char hex[65];
    tn_sha256_init(&h);
    tn_sha256_add(&h, text, strlen(text));
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, hex);
    assert_string_equal(hex, expected);
}

TEST(golden_sha256)
{
    hashes_to("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hashes_to("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hashes_to("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(golden_model_id)
{
    const char files[] = "[{\"name\":\"dense-0000.safetensors\",\"type\":\"dense\",\"bytes\":"
                         "\"120\",\"crc32c\":\"d06f75ab\"}]";
    tn_sha256 h;
    uint8_t digest[32];
    char hex[65];
    tn_sha256_init(&h);
    tn_sha256_add(&h, files, sizeof files - 1);
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, hex);
    assert_memory_equal(hex, "001ff2044284a99c25fd62a9204473cc", 32);
}

TEST(a_million_letters_in_pieces_of_every_size)
{
    char letters[200];
    memset(letters, 'a', sizeof letters);
    tn_sha256 h;
    uint8_t digest[32];
    char hex[65];
    tn_sha256_init(&h);
    size_t left = 1000000;
    for (size_t piece = 0; left > 0; piece = (piece + 1) % sizeof letters) {
        size_t size = piece < left ? piece : left;
        tn_sha256_add(&h, letters, size);
        left -= size;
    }
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(padding_is_right_around_the_block_boundary)
{
    /* Reference: hashlib of Python over 55, 56, 63, 64, 65 and 119 times 'x'. */
    const struct {
        size_t size;
        const char *hex;
    } vector[] = {
        {55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
        {56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
        {63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
        {64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
        {65, "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"},
        {119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c"},
    };
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        char text[128] = {0};
        memset(text, 'x', vector[i].size);
        hashes_to(text, vector[i].hex);
    }
}
