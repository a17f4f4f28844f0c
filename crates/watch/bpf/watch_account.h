/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Accounts of threads: every nanosecond since a thread was first put on a CPU under watch lies in exactly one part.
 * Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_ACCOUNT_H
#define PARALLAX_WATCH_ACCOUNT_H

enum waker { STRANGER = 0, FELLOW, READER };

struct suspect {
	u32 pid;
	u32 pad;
	u64 time;
	char comm[16];
};

/* What each edge of a busy server needs comes first: two cache lines. */
struct thread {
	/* Everything before this instant lies in `parts`. */
	u64 at;
	/* What was taken of its CPU when it was put on it, and since counted. */
	u64 taken;
	/* What it is doing: the part that time goes to. */
	u8 doing;
	/* Since its previous event it did more than run: an account goes with its next event. */
	u8 did_more;
	u8 idle_told;
	/* It read last: whom it wakes now, it hands its request to. */
	u8 has_read;
	/* A thread that had read has woken it. */
	u8 handed;
	/* Who woke it since it was last put on a CPU (enum waker). */
	u8 waker;
	/* How many times are in `woken_by_fellows`. */
	u8 wakes;
	/* There are suspects. */
	u8 has_suspects;
	/* Its account has just begun, with it on a CPU. */
	u8 is_new;
	/* It waits for a CPU because it was pushed off one. */
	u8 preempted;
	/* It is kept from running: by this signal, or by the freezer. */
	u8 stop;
	u32 preemptions;
	/* The window that all this is of. */
	u32 window;
	/* Since the thread's previous event. */
	u64 parts[PARTS];
	u64 preempted_ns;
	/* How long other processes ran while it waited for a CPU. */
	u64 contended_ns;
	/* The scheduler's account of its running and of its waiting for a CPU when it was put on its CPU. */
	u64 ran;
	u64 delayed;
	u64 wait_began;
	u64 throttled_before;
	/* Its last sleep on a disk: a thread that waits for this one meanwhile waits for the disk. */
	u64 disk_began;
	u64 disk_ended;
	/* The system call and its first argument that it sleeps in, and those of its longest sleep since its previous
	 * event. */
	u32 sleeps_in;
	s32 sleeps_on;
	u64 sleep_ns;
	u32 sleep_call;
	s32 sleep_fd;
	/* When it was last woken, by whom ever, and its parts until then. */
	u64 woken_at;
	u64 woken_parts[PARTS];
	/* Who ran while it waited since its previous event: the longest, as far as there is room. */
	struct suspect suspects[SUSPECTS];
	/* When fellow threads woke it. */
	struct wake woken_by_fellows[WAKES];
	/* The connection that it read from last; the one of which it served a request when it entered the function that
	 * classifies, or 0 outside of it, and when that was. */
	u64 read_from;
	u64 classifies;
	u64 classifies_since;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* What the hypervisor took of a CPU so far: its first word (arch/x86/include/uapi/asm/kvm_para.h). 0: not known. */
static __always_inline u64 steal_until_now(struct rq *queue)
{
	u64 steal;

	if (!settings.steal || bpf_probe_read_kernel(&steal, sizeof(steal), (void *)queue + settings.steal))
		return 0;
	return steal;
}

/*
 * What the hypervisor and, where the kernel counts it, interrupts took so far of the CPU that a thread runs on. The
 * kernel's own count is of its last tick, switch or wake-up on that CPU: up to 10 ms old.
 */
static __always_inline u64 taken_of(struct task_struct *task)
{
	struct rq *queue = queue_of(task);
	u64 taken;

	if (!queue)
		return 0;
	taken = steal_until_now(queue);
	if (bpf_core_field_exists(queue->prev_steal_time_rq) && queue->prev_steal_time_rq > taken)
		taken = queue->prev_steal_time_rq;
	if (bpf_core_field_exists(queue->prev_irq_time))
		taken += queue->prev_irq_time;
	return taken;
}

/* Puts the time until `now` where it belongs. The only place that adds to `parts`. */
static __always_inline void advance(struct thread *thread, struct task_struct *task, u64 now)
{
	u64 passed = now > thread->at ? now - thread->at : 0;
	u32 doing = thread->doing;

	/* What is compared below and what is used there stay one register: the verifier knows no copies. */
	barrier_var(doing);
	thread->at += passed;
	if (doing == ON_CPU) {
		u64 taken = taken_of(task);
		u64 stolen = taken > thread->taken ? taken - thread->taken : 0;

		/* More than passed was taken before the kernel counted it: the rest goes to what comes next. */
		if (stolen > passed)
			stolen = passed;
		thread->parts[ON_CPU] += passed - stolen;
		if (stolen) {
			thread->taken += stolen;
			thread->parts[STOLEN] += stolen;
			thread->did_more = 1;
		}
		return;
	}
	thread->did_more = 1;
	if (doing < PARTS)
		thread->parts[doing] += passed;
}

static __always_inline void set_going(struct thread *thread, struct task_struct *task)
{
	thread->doing = ON_CPU;
	thread->taken = taken_of(task);
	thread->ran = task->se.sum_exec_runtime;
	thread->delayed = task->sched_info.run_delay;
}

/* The account of a thread, if that has begun in this window. */
static __always_inline struct thread *known_thread(struct task_struct *task)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	return thread && thread->window == window ? thread : NULL;
}

/* The account of a thread of the server, which begins here if it has none; NULL of a thread of another process. */
static __always_inline struct thread *watched_thread(struct task_struct *task, u64 now)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread && thread->window == window)
		return thread;
	if (!is_watched(task->tgid))
		return NULL;
	if (thread) {
		/* What it did since the window of its account was not seen. */
		__builtin_memset(thread, 0, sizeof(*thread));
	} else {
		thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	}
	if (!thread) {
		__sync_fetch_and_add(&losses.threads, 1);
		return NULL;
	}
	thread->window = window;
	thread->at = now;
	thread->is_new = 1;
	set_going(thread, task);
	return thread;
}

/* A part for the file behind a descriptor that a thread sleeps on. */
static __always_inline u8 part_of_file(struct task_struct *task, u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = NULL;
	u16 mode;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return OTHER;
	files = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), &files[fd]) || !file)
		return OTHER;
	mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (mode == S_IFSOCK)
		return NETWORK;
	return mode == S_IFREG || mode == S_IFBLK ? DISK : OTHER;
}

/* Why this thread, the current one, goes to sleep. */
static __always_inline u8 reason_to_sleep(struct thread *thread, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long call = CALL_NUMBER(regs);

	thread->sleeps_in = call;
	thread->sleeps_on = CALL_ARG1(regs);
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return DISK;
	if (call < 0 || call >= CALLS)
		return OTHER;
	switch (settings.calls[call & (CALLS - 1)]) {
	case CALL_LOCK:
		return LOCK;
	case CALL_DISK:
		return DISK;
	case CALL_NETWORK:
		return NETWORK;
	case CALL_POLL:
		return IDLE;
	case CALL_FILE:
		return part_of_file(task, CALL_ARG1(regs));
	}
	return OTHER;
}

/* By how much the quota of the thread's group has held its CPU back so far. */
static __always_inline u64 throttled_so_far(struct task_struct *task)
{
	struct cfs_rq *queue = BPF_CORE_READ(task, se.cfs_rq);

	if (!queue || !bpf_core_field_exists(queue->throttled_clock_self_time))
		return 0;
	return BPF_CORE_READ(queue, throttled_clock_self_time);
}

static __always_inline bool is_throttled(struct task_struct *task)
{
	struct cfs_rq *queue;

	/* From 6.18 a thread itself leaves the queue when its group has used its quota; before, the group did. */
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	queue = BPF_CORE_READ(task, se.cfs_rq);
	return queue && BPF_CORE_READ(queue, throttle_count) > 0;
}

static __always_inline bool is_asleep(struct thread *thread)
{
	u8 doing = thread->doing;

	return doing != ON_CPU && doing != RUN_QUEUE && doing != YIELDED && doing != THROTTLED;
}

/*
 * One that had read hands over: what came before was for something else. Of other fellows the latest count, or, once
 * something was handed over, the first.
 */
static __always_inline void note_wake(struct thread *thread, u64 now)
{
	struct wake *wake;

	if (thread->waker == READER) {
		thread->wakes = 0;
		thread->handed = 1;
	}
	if (thread->wakes >= WAKES) {
		if (thread->handed)
			return;
		__builtin_memmove(&thread->woken_by_fellows[0], &thread->woken_by_fellows[1],
				  (WAKES - 1) * sizeof(struct wake));
		thread->wakes = WAKES - 1;
	}
	wake = &thread->woken_by_fellows[thread->wakes & (WAKES - 1)];
	wake->at = now;
	__builtin_memcpy(wake->parts, thread->parts, sizeof(wake->parts));
	thread->wakes++;
}

/* A thread that slept has stood in the run queue since `at`. */
static __always_inline void wake_up(struct thread *thread, struct task_struct *task, u64 at)
{
	u64 slept;

	advance(thread, task, at);
	slept = thread->at > thread->wait_began ? thread->at - thread->wait_began : 0;
	if (slept > thread->sleep_ns) {
		thread->sleep_ns = slept;
		thread->sleep_call = thread->sleeps_in;
		thread->sleep_fd = thread->sleeps_on;
	}
	if (thread->doing == DISK)
		thread->disk_ended = thread->at;
	thread->doing = RUN_QUEUE;
	thread->wait_began = thread->at;
	thread->woken_at = thread->at;
	__builtin_memcpy(thread->woken_parts, thread->parts, sizeof(thread->parts));
	if (thread->waker != STRANGER)
		note_wake(thread, thread->at);
}

/*
 * A thread that runs was put on its CPU without our being told: the kernel leaves a program out that runs already on
 * that CPU, in the context of some threads, and while others attach. It has run since as long as the scheduler says,
 * waited for that as long as the scheduler says, and did before what we knew.
 */
static __always_inline void heal_running(struct thread *thread, struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - thread->ran;
	u64 waited = task->sched_info.run_delay - thread->delayed;

	if (thread->doing == ON_CPU)
		return;
	if (is_asleep(thread) && thread->at + ran + waited < now)
		wake_up(thread, task, now - ran - waited);
	if (thread->at + ran < now)
		advance(thread, task, now - ran);
	thread->waker = STRANGER;
	set_going(thread, task);
	__sync_fetch_and_add(&losses.switches, 1);
}

/* A thread that is put on a CPU and never left one, as far as we were told, ran as long as the scheduler says. */
static __always_inline void heal_switched_out(struct thread *thread, struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - thread->ran;

	if (thread->doing != ON_CPU)
		return;
	if (thread->at + ran < now)
		advance(thread, task, thread->at + ran);
	thread->doing = OTHER;
	__sync_fetch_and_add(&losses.switches, 1);
}

#endif
