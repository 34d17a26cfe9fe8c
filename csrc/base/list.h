/* An intrusive, circular, doubly linked list.
 *
 * The caller owns the head and the links, and initializes them before use. A link outside any list points to itself, so
 * removing it twice is harmless. */
#ifndef RSC_LIST_H
#define RSC_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rsc_link {
    struct rsc_link *next, *previous;
};

/* The struct of `type` that contains `link` as its `member`. */
#define RSC_CONTAINER(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void rsc_link_init(struct rsc_link *link) {
    link->next = link->previous = link;
}

static inline bool rsc_list_empty(const struct rsc_link *head) {
    return head->next == head;
}

static inline void rsc_list_append(struct rsc_link *head, struct rsc_link *link) {
    link->previous = head->previous;
    link->next = head;
    head->previous->next = link;
    head->previous = link;
}

static inline void rsc_list_prepend(struct rsc_link *head, struct rsc_link *link) {
    rsc_list_append(head->next, link); /* before the first */
}

static inline void rsc_list_remove(struct rsc_link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
    rsc_link_init(link);
}

#endif
