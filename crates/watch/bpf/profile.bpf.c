/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Where the threads of a process are: on a CPU by samples, asleep and waiting for a CPU by the time that passed, each
 * under the stack it was in.
 *
 * Everything is added up here: user space takes the sums when the profile ends, and nothing is sent on the way. A
 * thread sleeps and waits under the stack with which it left its CPU.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "profile.h"
#include "scheduler.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct control control SEC(".bss.control");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	/* Who forked it, or 0. */
	__type(value, u32);
} processes SEC(".maps");

struct stack {
	u64 frames[FRAMES];
};

/*
 * A place in a table of stacks is a hash of the stack, and the first that comes keeps it. A stack whose place is taken
 * goes to the second table, where few others are.
 */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct stack);
} more_stacks SEC(".maps");

/* By hash: stacks whose walk the kernel would end at the leaf, or go on from a chance value. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, s64);
	__type(value, struct stack);
} walked_stacks SEC(".maps");

enum {
	/* Words of the stack to look through: the C library's deepest wait has some 300 bytes of its own. */
	LOOK = 96,
	/* Functions of a library that stand above another. */
	STEPS = 8,
};

struct walk {
	u64 ip;
	u64 sp;
	u64 bp;
	u32 tgid;
	u32 depth;
	struct stack stack;
	u64 look[LOOK];
};

/* Nothing that uses it can be interrupted by what uses it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* By process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct libraries);
} libraries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES);
	__type(key, u32);
	__type(value, struct rule);
} rules SEC(".maps");

/* Allocated beforehand: a sample may interrupt an allocation. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct stack_key);
	__type(value, struct weight);
} weights SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct totals);
} totals SEC(".maps");

/* What only this program reads of a thread. */
struct task_struct___own {
	int on_cpu;
	u64 start_time;
} __attribute__((preserve_access_index));

enum doing { RUNS = 0, SLEEPS, WAITS, GONE };

struct thread {
	/* Everything before this instant has been counted. */
	u64 at;
	s64 user;
	s32 kernel;
	u32 doing;
	/* The scheduler's account of its running and of its waiting for a CPU when it was put on its CPU. */
	u64 ran;
	u64 delayed;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline bool is_watched(u32 tgid)
{
	u32 only = control.only_process;

	if (only)
		return tgid == only;
	return bpf_map_lookup_elem(&processes, &tgid) != NULL;
}

static __always_inline struct totals *sums(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

static __always_inline s32 stack_of(void *ctx, u64 flags, struct totals *sums)
{
	long id = bpf_get_stackid(ctx, &stacks, flags);

	if (id >= 0)
		return id;
	/* No frames: a kernel thread has none of user space, and one in user space has none of the kernel. */
	if (id == -14)
		return STACK_NONE;
	id = bpf_get_stackid(ctx, &more_stacks, flags);
	if (id >= 0)
		return id | SECOND_TABLE;
	if (id == -14)
		return STACK_NONE;
	sums->stacks_lost++;
	return STACK_LOST;
}

#include "profile_walk.h"

static __always_inline s64 user_stack_of(void *ctx, struct task_struct *task, struct totals *sums)
{
	s64 walked = walk_of(task);

	return walked ? walked : stack_of(ctx, BPF_F_USER_STACK, sums);
}

static __always_inline void add(struct totals *sums, struct task_struct *task, u32 picture, s64 user, s32 kernel,
				u64 count, u64 ns)
{
	struct stack_key key = {};
	struct weight first = { .count = count, .ns = ns };
	struct weight *weight;

	if (picture >= PICTURES)
		return;
	sums->weights[picture].count += count;
	sums->weights[picture].ns += ns;
	key.pid = task->tgid;
	key.tid = task->pid;
	key.user = user;
	key.kernel = kernel;
	key.picture = picture;
	bpf_probe_read_kernel(key.comm, sizeof(key.comm), task->comm);
	weight = bpf_map_lookup_elem(&weights, &key);
	if (!weight) {
		if (!bpf_map_update_elem(&weights, &key, &first, BPF_NOEXIST))
			return;
		/* Another CPU was first with a sleep of another process' thread of this number; or there is no room. */
		weight = bpf_map_lookup_elem(&weights, &key);
		if (!weight) {
			sums->weights_lost[picture] += count;
			return;
		}
	}
	__sync_fetch_and_add(&weight->count, count);
	__sync_fetch_and_add(&weight->ns, ns);
}

/* Puts the time until `now` where it belongs. */
static __always_inline void advance(struct totals *sums, struct thread *thread, struct task_struct *task, u64 now)
{
	u64 passed = now > thread->at ? now - thread->at : 0;

	thread->at += passed;
	if (thread->doing == RUNS)
		sums->on_cpu_ns += passed;
	else if (thread->doing == SLEEPS)
		add(sums, task, OFF_CPU, thread->user, thread->kernel, 1, passed);
	else if (thread->doing == WAITS)
		add(sums, task, RUN_QUEUE, thread->user, thread->kernel, 1, passed);
}

/* One that nothing is known of did until now what it was found doing, as long as it has been there. */
static __always_inline struct thread *thread_of(struct task_struct *task, struct totals *sums, u32 doing, u64 at)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	u64 born;

	if (thread)
		return thread;
	born = BPF_CORE_READ((struct task_struct___own *)task, start_time);
	if (at < born)
		at = born;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		sums->threads_lost++;
		return NULL;
	}
	thread->at = at;
	thread->doing = doing;
	thread->user = STACK_BEFORE;
	thread->kernel = STACK_NONE;
	thread->ran = task->se.sum_exec_runtime;
	thread->delayed = task->sched_info.run_delay;
	return thread;
}

/* A thread that slept has stood in the run queue since `at`, and nobody told. */
static __always_inline void wake_unseen(struct totals *sums, struct thread *thread, struct task_struct *task, u64 at)
{
	if (at > thread->at) {
		advance(sums, thread, task, at);
		sums->missed_switches++;
	}
	thread->doing = WAITS;
}

/* A thread that leaves its CPU was put on it without our being told. */
static __always_inline void heal_running(struct totals *sums, struct thread *thread, struct task_struct *task, u64 now)
{
	u64 began = now - (task->se.sum_exec_runtime - thread->ran);

	if (thread->doing == RUNS)
		return;
	if (thread->doing == SLEEPS)
		wake_unseen(sums, thread, task, began - (task->sched_info.run_delay - thread->delayed));
	advance(sums, thread, task, began);
	thread->doing = RUNS;
	sums->missed_switches++;
}

/* A thread that is put on a CPU left one without our being told, and did so under a stack that nobody saw. */
static __always_inline void heal_switched_out(struct totals *sums, struct thread *thread, struct task_struct *task)
{
	if (thread->doing != RUNS)
		return;
	advance(sums, thread, task, thread->at + (task->se.sum_exec_runtime - thread->ran));
	thread->doing = SLEEPS;
	thread->user = STACK_LOST;
	thread->kernel = STACK_NONE;
	sums->missed_switches++;
}

static __always_inline void put_on_cpu(struct totals *sums, struct task_struct *next, u64 now)
{
	/* One that is not known waited since before, or somebody has woken it and nobody told. */
	struct thread *thread = thread_of(next, sums, SLEEPS, control.began);
	u64 delay = delay_of(next);

	if (!thread)
		return;
	heal_switched_out(sums, thread, next);
	if (thread->doing == SLEEPS)
		wake_unseen(sums, thread, next, now - (delay - thread->delayed));
	advance(sums, thread, next, now);
	thread->doing = RUNS;
	thread->ran = next->se.sum_exec_runtime;
	thread->delayed = delay;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();
	struct totals *sum = sums();
	struct thread *thread;

	if (!sum || control.ended)
		return 0;
	if (prev->pid && is_watched(prev->tgid)) {
		thread = thread_of(prev, sum, RUNS, control.began);
		if (thread) {
			heal_running(sum, thread, prev, now);
			advance(sum, thread, prev, now);
			if (!preempt && prev_state & 0x80 /* TASK_DEAD */) {
				thread->doing = GONE;
			} else {
				thread->doing = !preempt && prev_state ? SLEEPS : WAITS;
				thread->kernel = stack_of(ctx, 0, sum);
				thread->user = user_stack_of(ctx, prev, sum);
			}
		}
	}
	if (next->pid && is_watched(next->tgid))
		put_on_cpu(sum, next, now);
	return 0;
}

static __always_inline int woken(struct task_struct *task)
{
	struct totals *sum = sums();
	struct thread *thread;

	if (!sum || control.ended || !is_watched(task->tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread) {
		/* Told of before it slept, unless it has been asleep since before. */
		if (!task->__state || BPF_CORE_READ((struct task_struct___own *)task, on_cpu))
			return 0;
		thread = thread_of(task, sum, SLEEPS, control.began);
	}
	if (!thread || thread->doing != SLEEPS)
		return 0;
	advance(sum, thread, task, bpf_ktime_get_ns());
	thread->doing = WAITS;
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	return woken(task);
}

/* For a thread that was still on its way off the CPU when it was told of first. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_start, struct task_struct *task)
{
	struct totals *sum = sums();
	struct thread *thread;

	if (!sum || control.ended || !is_watched(task->tgid))
		return 0;
	thread = thread_of(task, sum, WAITS, bpf_ktime_get_ns());
	if (thread)
		thread->user = STACK_NONE;
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct totals *sum = sums();
	u32 from = parent->tgid, tgid = child->tgid;
	struct libraries *known;

	if (!sum || tgid == from || !is_watched(from))
		return 0;
	if (bpf_map_update_elem(&processes, &tgid, &from, BPF_ANY))
		sum->processes_lost++;
	else
		control.only_process = 0;
	/* Until it executes something else. */
	known = bpf_map_lookup_elem(&libraries, &from);
	if (known)
		bpf_map_update_elem(&libraries, &tgid, known, BPF_ANY);
	return 0;
}

/* So many times a second on each CPU that is not idle. */
SEC("perf_event")
int on_sample(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct totals *sum = sums();
	s64 user;
	s32 kernel;

	if (!sum || control.ended || !task->pid || !is_watched(task->tgid))
		return 0;
	kernel = stack_of(ctx, 0, sum);
	user = user_stack_of(ctx, task, sum);
	add(sum, task, ON_CPU, user, kernel, 1, 0);
	return 0;
}

struct bpf_iter_meta {
	u64 session_id;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* What threads still do when the profile ends is counted up to then. */
SEC("iter/task")
int at_end(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct totals *sum = sums();
	struct thread *thread;

	if (!task || !sum || !control.ended || !is_watched(task->tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread) {
		/* It has not been switched to or from since before. */
		thread = thread_of(task, sum, task->__state ? SLEEPS : RUNS, control.began);
		if (!thread || task->__state & (0x80 | 0x10) /* TASK_DEAD, EXIT_DEAD */)
			return 0;
	}
	advance(sum, thread, task, control.ended);
	return 0;
}
