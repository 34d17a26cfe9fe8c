/* Objects that a forked child inherits. It must not use them: their descriptors and connections are the parent's. */
#ifndef RSC_PROCESS_H
#define RSC_PROCESS_H

/* The forks between the first rsc_process_current and this process. It changes only at the beginning of a child. */
extern unsigned rsc_forks;

/* Returns rsc_forks, for a new object, which is inherited as soon as rsc_forks is another number. Any thread may call
 * this. */
unsigned rsc_process_current(void);

#endif
