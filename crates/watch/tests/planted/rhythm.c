/*
 * rhythm HERTZ FILE: the same in every period, for ever: three quarters of it in burn_three, the rest in burn_one, by
 * the clock and not by work, so that the rhythm stays in step with a sampler of the same frequency. FILE holds the
 * nanoseconds on a CPU in each so far: where others take the CPU, that is not exactly 3 to 1.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile uint64_t *ran;

static uint64_t now(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static inline void burn_until(uint64_t end)
{
	while (now(CLOCK_MONOTONIC) < end)
		;
}

APART void burn_three(uint64_t end)
{
	burn_until(end);
	__asm__ volatile("");
}

APART void burn_one(uint64_t end)
{
	burn_until(end);
	__asm__ volatile("");
}

int main(int count, char **arguments)
{
	uint64_t period, from, before, between, after;
	int file;

	if (count != 3)
		return 2;
	period = 1e9 / strtod(arguments[1], NULL);
	file = open(arguments[2], O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, 4096))
		return 1;
	ran = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (ran == MAP_FAILED)
		return 1;
	before = now(CLOCK_THREAD_CPUTIME_ID);
	for (from = now(CLOCK_MONOTONIC);; from += period) {
		burn_three(from + period / 4 * 3);
		between = now(CLOCK_THREAD_CPUTIME_ID);
		burn_one(from + period);
		after = now(CLOCK_THREAD_CPUTIME_ID);
		ran[0] += between - before;
		ran[1] += after - between;
		before = after;
	}
}
