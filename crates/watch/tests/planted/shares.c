/*
 * Two functions of known CPU shares, a thread that sleeps, and one that waits for a lock that another holds asleep.
 *
 * shares THREE ONE: burns so many turns of a loop in burn_three, then so many in burn_one, for ever. A turn costs the
 * same in both, and a piece is far shorter than the time between two samples.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile unsigned long sink;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;

/* Each turn waits for the one before: it takes the same time wherever the compiler puts the loop. */
static inline unsigned long burn(unsigned long turns)
{
	unsigned long number = turns;

	while (turns--)
		number = number * 6364136223846793005ul + 1442695040888963407ul;
	return number;
}

APART void burn_three(unsigned long turns)
{
	sink = burn(turns);
}

APART void burn_one(unsigned long turns)
{
	sink = burn(turns);
}

APART void sleep_in_pieces(void)
{
	for (;;)
		usleep(2000);
}

/* Again and again: of one that waits since before the profile nobody could tell the stack. */
APART void wait_for_lock(void)
{
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1;
		pthread_mutex_timedlock(&taken, &until);
	}
}

static void *sleeper(void *unused)
{
	sleep_in_pieces();
	return unused;
}

static void *waiter(void *unused)
{
	wait_for_lock();
	return unused;
}

/* What burns calls nobody, so it has no frame, and hides who called it: this one. */
APART void serve(unsigned long three, unsigned long one)
{
	for (;;) {
		burn_three(three);
		burn_one(one);
	}
}

int main(int count, char **arguments)
{
	pthread_t thread;

	if (count != 3)
		return 2;
	pthread_mutex_lock(&taken);
	pthread_create(&thread, NULL, sleeper, NULL);
	pthread_create(&thread, NULL, waiter, NULL);
	serve(strtoul(arguments[1], NULL, 10), strtoul(arguments[2], NULL, 10));
	return 0;
}
