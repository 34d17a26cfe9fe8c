/* Reads the subject of a query: an EVM address in lower case and its network, in one pass over the usual query. It
 * refuses any other query, for which riskscreen.nginx.input has the rules. Nothing is allocated. */
#ifndef RSC_QUERY_H
#define RSC_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define RSC_QUERY_NAME_MAX     64   /* bytes of a parameter's name, or of a network's */
#define RSC_QUERY_PREFIX_MAX   128  /* bytes before the network in a key */
#define RSC_QUERY_NETWORKS_MAX 64   /* names of networks */
#define RSC_QUERY_LENGTH_MAX   1024 /* bytes of a query that is read */
#define RSC_QUERY_ADDRESS      42   /* bytes of an address */
#define RSC_QUERY_KEY_MAX      (RSC_QUERY_PREFIX_MAX + RSC_QUERY_NAME_MAX + 1 + RSC_QUERY_ADDRESS)

struct rsc_query_word {
    size_t length;
    char bytes[RSC_QUERY_NAME_MAX];
};

struct rsc_query_reader {
    struct rsc_query_word address, network; /* names of the parameters */
    size_t prefix_length;
    char prefix[RSC_QUERY_PREFIX_MAX];
    int network_count;
    struct {
        struct rsc_query_word name, canonical;
    } networks[RSC_QUERY_NETWORKS_MAX];
};

/* Zeroes the reader and sets the names of the parameters and the prefix of keys. Returns false for names that are alike
 * to each other or to lenient programs, and for texts that are too long. */
bool rsc_query_init(struct rsc_query_reader *reader, struct rsc_text address, struct rsc_text network,
                    struct rsc_text prefix);

/* Adds a name of a network whose addresses are EVM addresses, and its canonical name. Returns false without room. */
bool rsc_query_add_network(struct rsc_query_reader *reader, struct rsc_text name, struct rsc_text canonical);

/* The bytes of a key with the network of this number. */
size_t rsc_query_key_length(const struct rsc_query_reader *reader, int number);

/* Writes "<prefix><canonical network>:<address>" to `key`, which has RSC_QUERY_KEY_MAX bytes. Returns the number of
 * the network, from 1 in the order of their addition, or 0 for a query that it refuses. */
int rsc_query_read(const struct rsc_query_reader *reader, const char *query, size_t length, char *key);

#endif
