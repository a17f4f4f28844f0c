/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What the scheduler itself keeps of a thread: the truth where we were not told. A kernel may run no programs in the
 * context of some threads (of a virtual machine's first process, seen with 6.18): whom an interrupt wakes there, and
 * who follows such a thread on its CPU, goes unseen.
 */
#ifndef PARALLAX_SCHEDULER_H
#define PARALLAX_SCHEDULER_H

/* The run queue of the CPU that a thread runs on. Every thread has a place in a fair queue, real-time ones too. */
static __always_inline struct rq *queue_of(struct task_struct *task)
{
	struct cfs_rq *fair = task->se.cfs_rq;

	return fair && bpf_core_field_exists(fair->rq) ? fair->rq : NULL;
}

/*
 * How long a thread that is being put on a CPU has stood in run queues, ever. The scheduler adds its last wait just
 * after it told of the switch. The queue's clock is of this switch, or of the wake-up that led to it: what lies between
 * the two, some microseconds, the scheduler takes for running.
 */
static __always_inline u64 delay_of(struct task_struct *next)
{
	u64 delay = next->sched_info.run_delay;
	u64 queued = next->sched_info.last_queued;
	struct rq *queue = queue_of(next);

	if (queued && queue && queue->clock > queued)
		delay += queue->clock - queued;
	return delay;
}

#endif
