/*
 * One thread holds a spinlock asleep, one named "spinner" spins for it, and one named "worker" works.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_spinlock_t taken;
static volatile unsigned long sink;

static void *spin(void *unused)
{
	pthread_setname_np(pthread_self(), "spinner");
	pthread_spin_lock(&taken);
	return unused;
}

static void *work(void *unused)
{
	pthread_setname_np(pthread_self(), "worker");
	for (;;)
		sink = sink * 6364136223846793005ul + 1;
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_spin_init(&taken, 0);
	pthread_spin_lock(&taken);
	pthread_create(&thread, NULL, spin, NULL);
	pthread_create(&thread, NULL, work, NULL);
	for (;;)
		sleep(1);
}
