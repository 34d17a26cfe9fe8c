#include "base/query.h"

#include <string.h>

enum {
    IN_NAME = 1, /* letters, digits, "_" and "-", which all programs keep in names */
    IN_VALUE = 2 /* visible ASCII without "&", ";", "?" and "#", where some programs divide a query */
};

#define N (IN_NAME | IN_VALUE)
#define V IN_VALUE

static const unsigned char classes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* controls */
    0, V, V, 0, V, V, 0, V, V, V, V, V, V, N, V, V, N, N, N, N, N, N, N, N, N, N, V, 0, V, V, V, 0, /* space … "?" */
    V, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, V, V, V, V, N, /* "@" … "_" */
    V, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, V, V, V, V, 0, /* "`" … DEL */
};

#undef N
#undef V

static bool has_class(char byte, unsigned char class) {
    return (classes[(unsigned char)byte] & class) != 0;
}

static bool is_same(const struct rsc_query_word *word, const char *bytes, size_t length) {
    return length == word->length && memcmp(word->bytes, bytes, length) == 0;
}

static char lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

static bool is_same_in_any_case(const struct rsc_query_word *word, const char *bytes, size_t length) {
    if (length != word->length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (lower(word->bytes[i]) != lower(bytes[i])) {
            return false;
        }
    }
    return true;
}

static bool set_word(struct rsc_query_word *word, struct rsc_text text) {
    if (text.length == 0 || text.length > sizeof word->bytes) {
        return false;
    }
    memcpy(word->bytes, text.bytes, text.length);
    word->length = text.length;
    return true;
}

/* Some programs take any run of separators in a name for one. */
static bool has_run(const char *name, size_t length) {
    for (size_t i = 1; i < length; i++) {
        if (name[i] == '_' && name[i - 1] == '_') {
            return true;
        }
    }
    return false;
}

static bool is_plain_name(const struct rsc_query_word *name) {
    for (size_t i = 0; i < name->length; i++) {
        if (!has_class(name->bytes[i], IN_NAME)) {
            return false;
        }
    }
    return name->bytes[0] != '_' && name->bytes[name->length - 1] != '_' && !has_run(name->bytes, name->length);
}

bool rsc_query_init(struct rsc_query_reader *reader, struct rsc_text address, struct rsc_text network,
                    struct rsc_text prefix) {
    memset(reader, 0, sizeof *reader);
    if (prefix.length > sizeof reader->prefix || !set_word(&reader->address, address) ||
        !set_word(&reader->network, network)) {
        return false;
    }
    memcpy(reader->prefix, prefix.bytes, prefix.length);
    reader->prefix_length = prefix.length;
    return is_plain_name(&reader->address) && is_plain_name(&reader->network) &&
           !is_same_in_any_case(&reader->address, network.bytes, network.length);
}

bool rsc_query_add_network(struct rsc_query_reader *reader, struct rsc_text name, struct rsc_text canonical) {
    int index = reader->network_count;
    if (index == RSC_QUERY_NETWORKS_MAX || !set_word(&reader->networks[index].name, name) ||
        !set_word(&reader->networks[index].canonical, canonical)) {
        return false;
    }
    reader->network_count++;
    return true;
}

size_t rsc_query_key_length(const struct rsc_query_reader *reader, int number) {
    return reader->prefix_length + reader->networks[number - 1].canonical.length + 1 + RSC_QUERY_ADDRESS;
}

static bool is_address(const char *bytes, size_t length) {
    if (length != RSC_QUERY_ADDRESS || bytes[0] != '0' || bytes[1] != 'x') {
        return false;
    }
    /* Without branches and tables, so that compilers use vectors. */
    unsigned char others = 0;
    for (size_t i = 2; i < RSC_QUERY_ADDRESS; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        others |= ((unsigned char)(byte - '0') > 9) & ((unsigned char)(byte - 'a') > 5);
    }
    return others == 0;
}

static int network_number(const struct rsc_query_reader *reader, struct rsc_text name) {
    for (int i = 0; i < reader->network_count; i++) {
        if (is_same(&reader->networks[i].name, name.bytes, name.length)) {
            return i + 1;
        }
    }
    return 0;
}

/* Whether another name could be taken for this parameter's. */
static bool is_alike(const struct rsc_query_reader *reader, const char *name, size_t length) {
    return is_same_in_any_case(&reader->address, name, length) || is_same_in_any_case(&reader->network, name, length) ||
           has_run(name, length);
}

static int write_key(const struct rsc_query_reader *reader, struct rsc_text address, struct rsc_text network,
                     char *key) {
    int number = is_address(address.bytes, address.length) ? network_number(reader, network) : 0;
    if (number == 0) {
        return 0;
    }
    const struct rsc_query_word *canonical = &reader->networks[number - 1].canonical;
    memcpy(key, reader->prefix, reader->prefix_length);
    key += reader->prefix_length;
    memcpy(key, canonical->bytes, canonical->length);
    key += canonical->length;
    *key++ = ':';
    memcpy(key, address.bytes, RSC_QUERY_ADDRESS);
    return number;
}

int rsc_query_read(const struct rsc_query_reader *reader, const char *query, size_t length, char *key) {
    struct rsc_text address = {NULL, 0}, network = {NULL, 0};
    const char *at = query, *end = query + length;
    if (length > RSC_QUERY_LENGTH_MAX) {
        return 0;
    }
    while (at < end) {
        const char *name = at;
        while (at < end && has_class(*at, IN_NAME)) {
            at++;
        }
        size_t name_length = (size_t)(at - name);
        if (name_length == 0 || at == end || *at != '=') {
            return 0;
        }
        const char *value = ++at;
        const char *ampersand = memchr(at, '&', (size_t)(end - at));
        at = ampersand == NULL ? end : ampersand;
        struct rsc_text text = {value, (size_t)(at - value)};
        if (address.bytes == NULL && is_same(&reader->address, name, name_length)) {
            address = text;
        } else if (network.bytes == NULL && is_same(&reader->network, name, name_length)) {
            network = text;
        } else if (is_alike(reader, name, name_length)) {
            return 0;
        } else {
            for (size_t i = 0; i < text.length; i++) {
                if (!has_class(value[i], IN_VALUE)) {
                    return 0;
                }
            }
        }
        at += ampersand != NULL;
    }
    return address.bytes == NULL || network.bytes == NULL ? 0 : write_key(reader, address, network, key);
}
