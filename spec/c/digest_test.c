/* SHA-256, HMAC with it, and Keccak-256 against the standards' test messages, and at every length around the block
 * sizes. The sanitizers watch for reads past the end. */
#include <string.h>

#include "base/keccak.h"
#include "base/sha256.h"
#include "check.h"

#define DIGEST_SIZE 32
#define LENGTHS     301 /* messages of 0 to 300 bytes */

typedef void digest_function(const void *bytes, size_t length, unsigned char digest[DIGEST_SIZE]);

static void check_digest(digest_function *function, const void *message, size_t length, const char *expected) {
    unsigned char digest[DIGEST_SIZE];
    char text[2 * DIGEST_SIZE + 1];
    function(message, length, digest);
    for (size_t i = 0; i < DIGEST_SIZE; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    CHECK(strcmp(text, expected) == 0, "%zu bytes gave %s", length, text);
}

/* Copies to an allocation of the exact size, so that a sanitizer finds a read past the end. */
static unsigned char *pattern(size_t length) {
    unsigned char *message = malloc(length > 0 ? length : 1);
    CHECK(message != NULL, "out of memory");
    for (size_t i = 0; i < length; i++) {
        message[i] = (unsigned char)(i % 251);
    }
    return message;
}

/* The digest of the digests of all lengths. The expected values come from independent implementations. */
static void check_all_lengths(digest_function *function, const char *expected) {
    static unsigned char digests[LENGTHS * DIGEST_SIZE];
    for (size_t length = 0; length < LENGTHS; length++) {
        unsigned char *message = pattern(length);
        function(message, length, digests + length * DIGEST_SIZE);
        free(message);
    }
    check_digest(function, digests, sizeof digests, expected);
}

static const struct {
    const char *message, *sha256, *keccak256;
} vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
     "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
     "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
     "45d3b367a6904e6e8d502ee04999a7c27647f91fa845d456525fd352ae3d7371"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
     "f519747ed599024f3882238e5ab43960132572b7345fbeb9a90769dafd21ad67"},
};

static void check_million(void) {
    static unsigned char million[1000000];
    memset(million, 'a', sizeof million);
    check_digest(rsc_sha256, million, sizeof million,
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    check_digest(rsc_keccak256, million, sizeof million,
                 "fadae6b49f129bbb812be8407b7b2894f34aecf6dbd1f9b0f0c7e9853098fc96");
}

/* RFC 4231 and independent implementations: the key, the message and the code. */
static void check_codes(void) {
    static const unsigned char long_key[131] = {0};
    static const struct {
        const void *key;
        size_t key_length;
        const char *message, *code;
    } codes[] = {
        {"Jefe", 4, "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {long_key, sizeof long_key, "Test", "3d30eea82ef1ca5d80f783de533ad970d4faa0d72aae2feb8785fa9ee2c2cb3e"},
        {NULL, 0, "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct rsc_hmac hmac;
        rsc_hmac_init(&hmac, codes[i].key, codes[i].key_length);
        struct rsc_sha256 hash = hmac.inner;
        unsigned char code[RSC_SHA256_SIZE];
        char text[2 * RSC_SHA256_SIZE + 1];
        rsc_sha256_add(&hash, codes[i].message, strlen(codes[i].message));
        rsc_hmac_end(&hmac, &hash, code);
        for (size_t j = 0; j < RSC_SHA256_SIZE; j++) {
            (void)snprintf(text + 2 * j, 3, "%02x", code[j]);
        }
        CHECK(strcmp(text, codes[i].code) == 0, "key %zu gave %s", i, text);
    }
}

/* A message in two parts has the digest of the whole one, wherever it is divided. */
static void check_parts(void) {
    unsigned char *message = pattern(LENGTHS);
    unsigned char whole[RSC_SHA256_SIZE];
    rsc_sha256(message, LENGTHS, whole);
    for (size_t length = 0; length <= LENGTHS; length++) {
        struct rsc_sha256 hash;
        unsigned char digest[RSC_SHA256_SIZE];
        rsc_sha256_begin(&hash);
        rsc_sha256_add(&hash, message, length);
        rsc_sha256_add(&hash, message + length, LENGTHS - length);
        rsc_sha256_end(&hash, digest);
        CHECK(memcmp(digest, whole, sizeof digest) == 0, "other digest after %zu bytes", length);
    }
    free(message);
}

int main(void) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        check_digest(rsc_sha256, vectors[i].message, strlen(vectors[i].message), vectors[i].sha256);
        check_digest(rsc_keccak256, vectors[i].message, strlen(vectors[i].message), vectors[i].keccak256);
    }
    check_digest(rsc_sha256, NULL, 0, vectors[0].sha256);
    check_digest(rsc_keccak256, NULL, 0, vectors[0].keccak256);
    check_all_lengths(rsc_sha256, "b90e35153500e9a471591550ee25a954527c6b4448afff95f7949a2ca93300ce");
    check_all_lengths(rsc_keccak256, "4ac8a3b6d9ae989d0806e1dc0dca107b1b963d4123c8eefa4743ee2e4db1af28");
    check_million();
    check_codes();
    check_parts();
    return 0;
}
