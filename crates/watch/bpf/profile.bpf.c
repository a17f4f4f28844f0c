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
struct task_struct___cpu {
	int on_cpu;
} __attribute__((preserve_access_index));

enum doing { RUNS = 0, SLEEPS, WAITS, GONE };

struct thread {
	/* Everything before this instant has been counted. */
	u64 at;
	s64 user;
	s32 kernel;
	u32 doing;
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

#if defined(__TARGET_ARCH_x86)

/* Where a function with a frame pointer keeps its caller's. */
struct frame {
	u64 next;
	u64 back;
};

struct pt_regs___frame {
	unsigned long bp;
	unsigned long ip;
	unsigned long sp;
} __attribute__((preserve_access_index));

enum {
	/* From a frame to the next, at most. */
	FAR = 1 << 20,
	/* From a saved frame pointer to its frame, at most. */
	NEAR = 1 << 14,
};

/* Reads the frame at `at`, above `below`. */
static __always_inline bool read_frame(struct frame *frame, u64 at, u64 below, u64 reach)
{
	if (at < below || at - below > reach || at & 7)
		return false;
	if (bpf_probe_read_user(frame, sizeof(*frame), (void *)at))
		return false;
	return frame->back >= 65536 && frame->back >> 47 == 0;
}

/* Of what may be a frame by chance: it does not lead back to the stack. Code of a run time may lie as near. */
static __always_inline bool leads_away(struct frame *frame, u64 at)
{
	return frame->back - at + FAR > 9 * FAR;
}

/*
 * The functions that are not `static` are checked by the kernel one at a time: their loops within each other would
 * be more than it looks at.
 */

/* The last rule that begins at or before `at`. */
__noinline u64 rule_of(u32 first, u32 count, u32 at)
{
	u32 low = 0, high = count, n;
	union {
		struct rule rule;
		u64 raw;
	} found = {};

	for (n = 0; n < 18 && low < high; n++) {
		u32 middle = low + (high - low) / 2, place = first + middle;
		struct rule *rule = bpf_map_lookup_elem(&rules, &place);

		if (!rule)
			break;
		if (rule->at > at) {
			high = middle;
		} else {
			found.rule = *rule;
			low = middle + 1;
		}
	}
	return found.raw;
}

static __always_inline struct library *library_of(struct walk *walk)
{
	struct libraries *known = bpf_map_lookup_elem(&libraries, &walk->tgid);
	u32 n;

	for (n = 0; known && n < LIBRARIES; n++)
		if (walk->ip >= known->of[n].start && walk->ip < known->of[n].end)
			return &known->of[n];
	return NULL;
}

static __always_inline void push(struct walk *walk, u64 ip)
{
	u32 depth = walk->depth;

	if (depth < FRAMES) {
		walk->stack.frames[depth] = ip;
		walk->depth = depth + 1;
	}
}

enum { OUTSIDE = 0, STEPPED, ENDS };

/* From a function of a library to its caller, by the library's own rules. */
__noinline int step(struct walk *walk)
{
	struct library *library;
	u64 at, top, back, saved;
	union {
		u64 raw;
		struct rule rule;
	} found;

	if (!walk)
		return ENDS;
	library = library_of(walk);
	if (!library)
		return OUTSIDE;
	/* Where a call returns to may be past the end of the function. */
	at = walk->ip - library->bias - (walk->depth > 1);
	found.raw = rule_of(library->first, library->count, at);
	if (found.rule.base == BASE_UNKNOWN)
		return ENDS;
	top = (found.rule.base == BASE_STACK ? walk->sp : walk->bp) + 8 * found.rule.words;
	if (top <= walk->sp || bpf_probe_read_user(&back, sizeof(back), (void *)(top - 8)) || back < 65536)
		return ENDS;
	if (found.rule.saved) {
		if (bpf_probe_read_user(&saved, sizeof(saved), (void *)(top - 8 * found.rule.saved)))
			return ENDS;
		walk->bp = saved;
	}
	walk->sp = top;
	walk->ip = back;
	push(walk, back);
	return STEPPED;
}

/* The place of a saved frame pointer that leads on, near the end of the stack; or 0. */
__noinline u64 look_through(struct walk *walk)
{
	struct frame frame, next;
	u32 n;

	if (!walk || bpf_probe_read_user(walk->look, sizeof(walk->look), (void *)walk->sp))
		return 0;
	for (n = 0; n < LOOK; n++) {
		u64 saved = walk->look[n];

		/* Compiled C leaves it so; what else lies there mostly does not. */
		if (saved & 15 || !read_frame(&frame, saved, walk->sp + 8 * n + 16, NEAR) ||
		    !leads_away(&frame, saved))
			continue;
		/* A frame by chance is not likely to lead to another one. */
		if (frame.next > 1 && !read_frame(&next, frame.next, saved + 16, FAR))
			continue;
		return saved;
	}
	return 0;
}

/* By frame pointers, as far as they lead. False when they lead nowhere. */
__noinline int follow(struct walk *walk)
{
	struct frame frame;
	u64 at, below;
	u32 n;

	if (!walk)
		return 0;
	at = walk->bp;
	below = walk->sp;
	for (n = 0; n < FRAMES; n++) {
		if (!read_frame(&frame, at, below, FAR))
			break;
		push(walk, frame.back);
		below = at + 16;
		at = frame.next;
	}
	return n > 0;
}

/* Gives the stack a place among those that were walked here, or 0. */
__noinline s64 keep(struct walk *walk, s64 guessed)
{
	u64 hash = 0xcbf29ce484222325ULL;
	s64 key;
	u32 n;

	if (!walk)
		return 0;
	for (n = 0; n < FRAMES; n++) {
		if (n >= walk->depth)
			walk->stack.frames[n] = 0;
		hash = (hash ^ walk->stack.frames[n]) * 0x100000001b3ULL;
		hash ^= hash >> 29;
	}
	key = (s64)(hash & (GUESSED - 1)) | WALKED | guessed;
	if (bpf_map_lookup_elem(&walked_stacks, &key))
		return key;
	return bpf_map_update_elem(&walked_stacks, &key, &walk->stack, BPF_ANY) ? 0 : key;
}

/*
 * The stack of a thread that is in a function which uses the frame pointer's register for something else. The C
 * library does, in its waits above all: its own rules lead to its caller, and frame pointers on from there. Where
 * the caller has none either, it has saved that of the last one which does, near the end of the stack. 0 when the
 * kernel's own walk will do, or nothing better is found.
 */
static __always_inline s64 walk_of(struct task_struct *task)
{
	struct pt_regs___frame *regs = (void *)bpf_task_pt_regs(task);
	struct frame frame;
	struct walk *walk;
	int went = STEPPED;
	u32 zero = 0, n;

	if (task->flags & PF_KTHREAD)
		return 0;
	walk = bpf_map_lookup_elem(&walks, &zero);
	if (!walk)
		return 0;
	walk->ip = BPF_CORE_READ(regs, ip);
	walk->sp = BPF_CORE_READ(regs, sp);
	walk->bp = BPF_CORE_READ(regs, bp);
	walk->tgid = task->tgid;
	walk->depth = 0;
	push(walk, walk->ip);
	for (n = 0; n < STEPS && went == STEPPED; n++)
		went = step(walk);
	if (walk->depth > 1 && (went == ENDS || follow(walk)))
		return keep(walk, 0);
	if (walk->depth == 1 && read_frame(&frame, walk->bp, walk->sp, FAR))
		return 0;
	walk->bp = look_through(walk);
	if (follow(walk))
		return keep(walk, GUESSED);
	return walk->depth > 1 ? keep(walk, 0) : 0;
}

#else

/* Every function that calls another keeps the frame pointer there. */
static __always_inline s64 walk_of(struct task_struct *task)
{
	return 0;
}

#endif

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

/* One that nothing is known of did until now what it was found doing. */
static __always_inline struct thread *thread_of(struct task_struct *task, struct totals *sums, u32 doing, u64 at)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread)
		return thread;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		sums->threads_lost++;
		return NULL;
	}
	thread->at = at;
	thread->doing = doing;
	thread->user = STACK_BEFORE;
	thread->kernel = STACK_NONE;
	return thread;
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
	if (next->pid && is_watched(next->tgid)) {
		thread = thread_of(next, sum, WAITS, control.began);
		if (thread) {
			if (thread->doing == SLEEPS)
				sum->wakes_unseen++;
			advance(sum, thread, next, now);
			thread->doing = RUNS;
		}
	}
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
		if (!task->__state || BPF_CORE_READ((struct task_struct___cpu *)task, on_cpu))
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
