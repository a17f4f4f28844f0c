/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What a server's threads do, and what its sockets carry.
 *
 * Each thread of a watched process has an account in which every nanosecond since its first event lies in exactly one
 * part. At each edge of a request (a read, a write) the account since the thread's previous edge goes to user space
 * with the bytes that were moved; user space adds accounts up to requests. So the parts of a request sum to its time
 * by construction, and no wake-up is ever paid for by the server: user space looks into the ring when it likes.
 *
 * Cost, by the kernel's own statistics of programs: see bench/README.md.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "watch.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What user space decides before loading. */
const volatile struct settings settings SEC(".rodata.settings");
/* The one process that is watched, or 0 when there are more: then `processes` says. */
u32 only_process SEC(".bss.process");
/* Local ports whose connections are the server's, by number. */
u8 ports[65536] SEC(".bss.ports");
/* Set when `old_sockets` is complete: from then on a socket that is not in it was made under watch. */
u32 knows_old SEC(".bss.old");
struct losses losses SEC(".bss.losses");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} processes SEC(".maps");

/* By inode: the server's Unix sockets that were there before. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u8);
} old_sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} ring SEC(".maps");

/* ---- what is kept of threads and sockets -------------------------------------------------------------------- */

enum waker { STRANGER = 0, FELLOW, READER };

struct suspect {
	u32 pid;
	u32 pad;
	u64 time;
	char comm[16];
};

struct thread {
	/* Everything before this instant lies in `parts`. */
	u64 at;
	/* Since the thread's previous event. */
	u64 parts[PARTS];
	/* What it is doing: the part that time goes to. */
	u8 doing;
	/* It waits for a CPU because it was pushed off one. */
	u8 preempted;
	u8 classified;
	u8 idle_told;
	/* What was taken of its CPU when it was put on it, and since counted. */
	u64 taken;
	/* The scheduler's account of its running when it was put on its CPU. */
	u64 ran;
	u64 wait_began;
	u64 throttled_before;
	u64 preempted_ns;
	u32 preemptions;
	/* Who ran while it waited since its previous event: the longest, as far as there is room. */
	struct suspect suspects[SUSPECTS];
	/* It read last: whom it wakes now, it hands its request to. */
	u8 has_read;
	/* A thread that had read has woken it. */
	u8 handed;
	/* Who wakes it just now (enum waker). */
	u8 waker;
	u8 wakes;
	/* Its account has just begun, with it on a CPU. */
	u8 is_new;
	/* Its last sleep on a disk: a thread that waits for this one meanwhile waits for the disk. */
	u64 disk_began;
	u64 disk_ended;
	s64 class;
	/* When it was last woken, by whom ever, and its parts until then. */
	u64 woken_at;
	u64 woken_parts[PARTS];
	/* When fellow threads woke it. */
	struct wake woken_by_fellows[WAKES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct waiting {
	u32 end;
	u32 pad;
	u64 at;
};

struct conn {
	u64 cookie;
	/* Bytes that arrived and were not read yet: where each lot ends in the stream, and when it came. */
	struct waiting waiting[ARRIVALS];
	u32 head;
	u32 tail;
	u8 told;
	/* Everything it reads and writes is copied. */
	u8 whole;
	/* An event of it found the ring full. */
	u8 missed;
	/* It was accepted under watch. */
	u8 fresh;
	u16 family;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

struct slice {
	u64 begin;
	u64 end;
	u32 pid;
	u32 tgid;
	char comm[16];
};

struct slices {
	u64 since;
	u32 next;
	u32 pad;
	struct slice ran[SLICES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are CPUs: set before loading */
	__type(key, u32);
	__type(value, struct slices);
} ran SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct culprit_key);
	__type(value, struct culprit);
} culprits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are CPUs: set before loading */
	__type(key, u32);
	__type(value, struct event);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* as many as there are CPUs: set before loading */
	__type(key, u32);
	__type(value, struct note);
} notes SEC(".maps");

/* ---- accounts of threads ------------------------------------------------------------------------------------ */

static __always_inline bool is_watched(u32 tgid)
{
	u32 only = only_process;

	if (only)
		return tgid == only;
	return bpf_map_lookup_elem(&processes, &tgid) != NULL;
}

/*
 * What the hypervisor and, where the kernel counts it, interrupts took so far of the CPU that a thread runs on. Kept
 * by the kernel up to its last tick, switch or wake-up on that CPU. Every thread has a place in a fair queue, real-time
 * ones too.
 */
static __always_inline u64 taken_of(struct task_struct *task)
{
	struct cfs_rq *fair = task->se.cfs_rq;
	struct rq *queue;
	u64 taken = 0;

	if (!fair || !bpf_core_field_exists(fair->rq))
		return 0;
	queue = fair->rq;
	if (!queue)
		return 0;
	if (bpf_core_field_exists(queue->prev_steal_time_rq))
		taken += queue->prev_steal_time_rq;
	if (bpf_core_field_exists(queue->prev_irq_time))
		taken += queue->prev_irq_time;
	return taken;
}

/* Puts the time until `now` where it belongs. The only place that adds to `parts`. */
static __always_inline void advance(struct thread *thread, struct task_struct *task, u64 now)
{
	u64 passed = now > thread->at ? now - thread->at : 0;
	u32 doing = thread->doing;

	thread->at += passed;
	if (doing == ON_CPU) {
		u64 taken = taken_of(task);
		u64 stolen = taken > thread->taken ? taken - thread->taken : 0;

		/* More than passed was taken before the kernel counted it: the rest goes to what comes next. */
		if (stolen > passed)
			stolen = passed;
		thread->taken += stolen;
		thread->parts[STOLEN] += stolen;
		thread->parts[ON_CPU] += passed - stolen;
		return;
	}
	if (doing < PARTS)
		thread->parts[doing] += passed;
}

static __always_inline void set_going(struct thread *thread, struct task_struct *task)
{
	thread->doing = ON_CPU;
	thread->taken = taken_of(task);
	thread->ran = task->se.sum_exec_runtime;
}

static __always_inline struct thread *this_thread(struct task_struct *task, u64 now)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread)
		return thread;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		__sync_fetch_and_add(&losses.threads, 1);
		return NULL;
	}
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
static __always_inline u8 reason_to_sleep(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long call = CALL_NUMBER(regs);

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

/*
 * A thread that runs was put on its CPU without our being told: the kernel leaves a program out that runs already on
 * that CPU, and while others attach. It has run since as long as the scheduler says, and did before what we knew.
 */
static __always_inline void heal_running(struct thread *thread, struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - thread->ran;

	if (thread->doing == ON_CPU)
		return;
	if (thread->at + ran < now)
		advance(thread, task, now - ran);
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

/* ---- events -------------------------------------------------------------------------------------------------- */

static __always_inline void fill(struct event *event, struct thread *thread, struct task_struct *task, u64 now,
				 u8 kind)
{
	event->at = now;
	event->socket = 0;
	event->pid = task->tgid;
	event->tid = task->pid;
	event->kind = kind;
	event->flags = 0;
	event->arrivals = 0;
	event->length = 0;
	event->captured = 0;
	event->preemptions = thread->preemptions;
	event->preempted_ns = thread->preempted_ns;
	__builtin_memcpy(event->parts, thread->parts, sizeof(event->parts));
}

/* Whether a thread has more to say than an event holds. */
static __always_inline bool has_note(struct thread *thread)
{
	return thread->suspects[0].pid || thread->woken_at || thread->classified;
}

static __always_inline void fill_culprit(struct note *note, struct thread *thread)
{
	u32 most = 0, i;

	for (i = 1; i < SUSPECTS; i++)
		if (thread->suspects[i].time > thread->suspects[most & (SUSPECTS - 1)].time)
			most = i;
	most &= SUSPECTS - 1;
	note->culprit = thread->suspects[most].pid;
	note->culprit_ns = thread->suspects[most].time;
	__builtin_memcpy(note->culprit_comm, thread->suspects[most].comm, 16);
}

static __always_inline void fill_note(struct note *note, struct event *event, struct thread *thread)
{
	note->at = event->at;
	note->socket = event->socket;
	note->pid = event->pid;
	note->tid = event->tid;
	note->kind = EVENT_NOTE;
	note->classified = thread->classified;
	note->class = thread->class;
	note->wakes = thread->wakes;
	__builtin_memcpy(note->woken_by_fellows, thread->woken_by_fellows, sizeof(note->woken_by_fellows));
	fill_culprit(note, thread);
	note->woken_at = thread->woken_at;
	__builtin_memcpy(note->woken_parts, thread->woken_parts, sizeof(note->woken_parts));
	note->family = 0;
}

/* What was told is told: the account starts anew. */
static __always_inline void close_account(struct thread *thread)
{
	__builtin_memset(thread->parts, 0, sizeof(thread->parts));
	thread->woken_at = 0;
	thread->preempted_ns = 0;
	thread->preemptions = 0;
	thread->handed = 0;
	thread->wakes = 0;
	if (thread->suspects[0].pid)
		__builtin_memset(thread->suspects, 0, sizeof(thread->suspects));
}

/* Never wakes the reader: that would cost the server ten times as much as the event. */
static __always_inline bool tell(void *event, u32 size)
{
	if (bpf_ringbuf_output(&ring, event, size, BPF_RB_NO_WAKEUP) == 0)
		return true;
	__sync_fetch_and_add(&losses.ring_full, 1);
	return false;
}

static __always_inline void tell_idle(struct thread *thread, struct task_struct *task, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct event *event = bpf_map_lookup_elem(&scratch, &cpu);
	struct note *note = bpf_map_lookup_elem(&notes, &cpu);

	if (!event || !note)
		return;
	fill(event, thread, task, now, EVENT_IDLE);
	if (has_note(thread)) {
		fill_note(note, event, thread);
		if (!tell(note, sizeof(*note)))
			return;
		event->flags |= EVENT_NOTED;
	}
	if (tell(event, EVENT_HEAD)) {
		close_account(thread);
		thread->idle_told = 1;
	}
}

/* ---- the scheduler ------------------------------------------------------------------------------------------- */

static __always_inline void note_slice(struct slices *slices, struct task_struct *prev, u64 now)
{
	struct slice *slice = &slices->ran[slices->next & (SLICES - 1)];

	slice->begin = slices->since;
	slice->end = now;
	slice->pid = prev->pid;
	slice->tgid = prev->tgid;
	__builtin_memcpy(slice->comm, prev->comm, 16);
	slices->next++;
	slices->since = now;
}

/*
 * Adds to the one who is known, or takes the place of the least with what that one had: of a few who took most, none is
 * missed (the space-saving sketch: Metwally, Agrawal and El Abbadi, ICDT 2005).
 */
static __always_inline void suspect(struct thread *thread, struct slice *slice, u64 time)
{
	u32 least = 0, i;

	for (i = 0; i < SUSPECTS; i++) {
		if (thread->suspects[i].pid == slice->tgid) {
			thread->suspects[i].time += time;
			return;
		}
		if (thread->suspects[i].time < thread->suspects[least & (SUSPECTS - 1)].time)
			least = i;
	}
	least &= SUSPECTS - 1;
	thread->suspects[least].pid = slice->tgid;
	thread->suspects[least].time += time;
	__builtin_memcpy(thread->suspects[least].comm, slice->comm, 16);
}

static __always_inline void charge(struct thread *thread, u32 victim, struct slice *slice, u64 time)
{
	struct culprit_key key = { .victim = victim, .pid = slice->tgid };
	struct culprit *culprit;

	__builtin_memcpy(key.comm, slice->comm, 16);
	suspect(thread, slice, time);
	culprit = bpf_map_lookup_elem(&culprits, &key);
	if (culprit) {
		__sync_fetch_and_add(&culprit->time, time);
		__sync_fetch_and_add(&culprit->count, 1);
		return;
	}
	struct culprit first = { .time = time, .count = 1 };

	if (bpf_map_update_elem(&culprits, &key, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&losses.culprits, 1);
}

struct wait {
	struct slices *slices;
	struct thread *thread;
	u32 pid;
	u32 tgid;
	u64 began;
	u32 newest;
	bool is_whole;
};

static long charge_slice(u32 i, struct wait *wait)
{
	struct slice *slice = &wait->slices->ran[(wait->newest - 1 - i) & (SLICES - 1)];
	u64 from = slice->begin > wait->began ? slice->begin : wait->began;

	if (slice->end <= wait->began) {
		wait->is_whole = true;
		return 1;
	}
	if (slice->pid != 0 && slice->pid != wait->pid && slice->end > from)
		charge(wait->thread, wait->tgid, slice, slice->end - from);
	return 0;
}

/* Who ran on this CPU from `began` on while the thread waited for it: newest first. */
static __always_inline void charge_wait(struct slices *slices, struct thread *thread, struct task_struct *task,
					u64 began)
{
	struct wait wait = {
		.slices = slices,
		.thread = thread,
		.pid = task->pid,
		.tgid = task->tgid,
		.began = began,
		.newest = slices->next,
	};

	bpf_loop(SLICES, charge_slice, &wait, 0);
	if (!wait.is_whole)
		__sync_fetch_and_add(&losses.slices, 1);
}

static __always_inline void switch_out(struct task_struct *prev, bool preempt, u32 prev_state, u64 now)
{
	struct thread *thread = bpf_task_storage_get(&threads, prev, 0, 0);
	struct pt_regs *regs;

	if (!thread)
		return;
	thread->is_new = 0;
	heal_running(thread, prev, now);
	advance(thread, prev, now);
	thread->ran = prev->se.sum_exec_runtime;
	thread->wait_began = now;
	thread->preempted = 0;
	if (!preempt && prev_state != 0) {
		thread->doing = reason_to_sleep(prev);
		if (thread->doing == DISK) {
			thread->disk_began = now;
			thread->disk_ended = 0;
		}
		/* Told once: a thread that polls again without work in between has nothing to add. */
		if (thread->doing == IDLE && !thread->idle_told)
			tell_idle(thread, prev, now);
		return;
	}
	if (is_throttled(prev)) {
		thread->doing = THROTTLED;
		thread->throttled_before = throttled_so_far(prev);
		return;
	}
	regs = (struct pt_regs *)bpf_task_pt_regs(prev);
	if (!preempt && CALL_NUMBER(regs) == settings.yield_call) {
		thread->doing = YIELDED;
		return;
	}
	thread->doing = RUN_QUEUE;
	thread->preempted = 1;
	thread->preemptions++;
}

static __always_inline void switch_in(struct task_struct *next, struct slices *slices, u64 now)
{
	/* Every thread of the server has an account: what is handed to one must not be its first edge. */
	struct thread *thread = this_thread(next, now);
	u64 began;

	if (!thread || thread->is_new) {
		if (thread)
			thread->is_new = 0;
		return;
	}
	heal_switched_out(thread, next, now);
	began = thread->wait_began;
	if (thread->doing == THROTTLED) {
		/* Held back for so long; then it waited for a CPU as any other. */
		u64 held = throttled_so_far(next) - thread->throttled_before;

		if (held > 0 && began + held < now) {
			advance(thread, next, began + held);
			thread->doing = RUN_QUEUE;
			began += held;
		}
	}
	if (thread->doing == DISK)
		thread->disk_ended = now;
	advance(thread, next, now);
	if (thread->doing == RUN_QUEUE) {
		if (thread->preempted)
			thread->preempted_ns += now - began;
		if (slices)
			charge_wait(slices, thread, next, began);
	}
	set_going(thread, next);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct slices *slices = bpf_map_lookup_elem(&ran, &cpu);

	if (slices)
		note_slice(slices, prev, now);
	if (prev->pid && is_watched(prev->tgid))
		switch_out(prev, preempt, prev_state, now);
	if (next->pid && is_watched(next->tgid))
		switch_in(next, slices, now);
	return 0;
}

/* A thread that waited for one that slept on a disk waited for the disk: a follower of a group commit, say. */
static __always_inline void blame_disk(struct thread *thread, struct task_struct *task, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct thread *other;
	u64 from, to;

	if (thread->doing != LOCK && thread->doing != OTHER)
		return;
	other = bpf_task_storage_get(&threads, waker, 0, 0);
	if (!other || !other->disk_ended)
		return;
	from = other->disk_began > thread->at ? other->disk_began : thread->at;
	to = other->disk_ended < now ? other->disk_ended : now;
	if (to <= from)
		return;
	advance(thread, task, from);
	thread->parts[DISK] += to - from;
	thread->at = to;
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

static __always_inline bool is_asleep(struct thread *thread)
{
	u8 doing = thread->doing;

	return doing != ON_CPU && doing != RUN_QUEUE && doing != YIELDED && doing != THROTTLED;
}

/* In the waker's context: it is known who woke. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct thread *thread, *waker;

	if (!is_watched(task->tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread || !is_asleep(thread))
		return 0;
	blame_disk(thread, task, bpf_ktime_get_ns());
	waker = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	thread->waker = !waker ? STRANGER : waker->has_read ? READER : FELLOW;
	return 0;
}

/* On the run queue from here on, as the kernel's own account has it. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct thread *thread;
	u64 now;

	if (!is_watched(task->tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	/* Woken before it slept. */
	if (!thread || !is_asleep(thread))
		return 0;
	now = bpf_ktime_get_ns();
	if (thread->doing == DISK)
		thread->disk_ended = now;
	advance(thread, task, now);
	thread->doing = RUN_QUEUE;
	thread->wait_began = now;
	thread->woken_at = now;
	__builtin_memcpy(thread->woken_parts, thread->parts, sizeof(thread->parts));
	if (thread->waker != STRANGER)
		note_wake(thread, now);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = child->tgid;
	u8 yes = 1;

	if (child->tgid == parent->tgid || !is_watched(parent->tgid))
		return 0;
	if (bpf_map_update_elem(&processes, &tgid, &yes, BPF_ANY))
		__sync_fetch_and_add(&losses.processes, 1);
	else
		only_process = 0;
	return 0;
}

/* ---- sockets -------------------------------------------------------------------------------------------------- */

/* Whether this is a connection that the server accepted. */
static __always_inline bool is_served(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	if (family == AF_INET || family == AF_INET6)
		return sk->__sk_common.skc_state != TCP_LISTEN && ports[sk->__sk_common.skc_num];
	/* An accepted one has the address of its listener; one that connects has none. */
	if (family == AF_UNIX)
		return BPF_CORE_READ((struct unix_sock *)sk, addr) != NULL;
	return false;
}

/* Whether a Unix socket was made under watch; of TCP the change of state says it. */
static __always_inline bool is_fresh(struct sock *sk)
{
	u64 inode;

	if (sk->__sk_common.skc_family != AF_UNIX || !knows_old)
		return false;
	inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	return inode && !bpf_map_lookup_elem(&old_sockets, &inode);
}

static __always_inline struct conn *conn_of(struct sock *sk)
{
	struct conn *conn = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (conn || !is_served(sk))
		return conn;
	conn = bpf_sk_storage_get(&conns, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!conn) {
		__sync_fetch_and_add(&losses.conns, 1);
		return NULL;
	}
	conn->cookie = bpf_get_socket_cookie(sk);
	conn->family = sk->__sk_common.skc_family;
	conn->fresh = is_fresh(sk);
	return conn;
}

/* Bytes have arrived: in the context of whoever brought them. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_arrival, struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;
	struct tcp_sock *tcp;
	struct waiting *last;
	struct conn *conn;
	u32 end = 0;

	if (family == AF_INET || family == AF_INET6) {
		if (!ports[sk->__sk_common.skc_num] || sk->__sk_common.skc_state == TCP_LISTEN)
			return 0;
		conn = conn_of(sk);
		tcp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
		end = tcp ? tcp->rcv_nxt : 0;
	} else {
		/* Known from its first read on: before, nobody can tell whose it is. */
		conn = bpf_sk_storage_get(&conns, sk, 0, 0);
	}
	if (!conn)
		return 0;
	if (conn->tail - conn->head >= ARRIVALS) {
		/* The newest lots become one, as old as the newest byte. */
		__sync_fetch_and_add(&losses.arrivals, 1);
		conn->tail--;
	}
	last = &conn->waiting[conn->tail & (ARRIVALS - 1)];
	last->end = end;
	last->at = bpf_ktime_get_ns();
	conn->tail++;
	return 0;
}

/* Where the reader of a TCP connection stands, and how far its bytes have come. */
static __always_inline u32 read_up_to(struct sock *sk)
{
	struct tcp_sock *tcp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);

	return tcp ? tcp->copied_seq : 0;
}

/* Moves what was read from the connection's lots to the note; of one lot only, to the event. */
static __always_inline void take_arrivals(struct conn *conn, struct sock *sk, struct event *event, struct note *note,
					  u32 length)
{
	bool has_bytes = conn->family != AF_UNIX;
	u32 read_to = has_bytes ? read_up_to(sk) : 0;
	u32 began = read_to - length;
	u32 n = 0, i;

	for (i = 0; i < ARRIVALS; i++) {
		struct waiting *lot;
		struct arrival *arrival;

		if (conn->head == conn->tail)
			break;
		lot = &conn->waiting[conn->head & (ARRIVALS - 1)];
		arrival = &note->arrived[n & (ARRIVALS - 1)];
		arrival->at = lot->at;
		arrival->end = has_bytes ? lot->end - began : length;
		/* A lot that ends before this read began was read before the watch did, or by another way. */
		if (!has_bytes || (s32)(lot->end - began) > 0)
			n++;
		if (has_bytes && (s32)(lot->end - read_to) > 0)
			break;
		conn->head++;
	}
	event->arrivals = n;
	event->arrived = note->arrived[0];
}

/* Copies what the current system call moved, as far as it lies in memory that the caller named. */
static __always_inline u32 copy_moved(struct event *event, struct task_struct *task, u32 length, u32 most)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	long call = CALL_NUMBER(regs);
	u64 vectors = 0, count = 0;
	u32 copied = 0, i;
	u8 how;

	if (call < 0 || call >= CALLS)
		return 0;
	if (most > length)
		most = length;
	how = settings.moves[call & (CALLS - 1)];
	if (how == MOVE_BUFFER) {
		if (most > CAPTURE)
			most = CAPTURE;
		if (bpf_probe_read_user(event->bytes, most & (2 * CAPTURE - 1), (void *)CALL_ARG2(regs)))
			return 0;
		return most;
	}
	if (how == MOVE_VECTORS) {
		vectors = CALL_ARG2(regs);
		count = CALL_ARG3(regs);
	} else if (how == MOVE_MESSAGE) {
		struct user_message message;

		if (bpf_probe_read_user(&message, sizeof(message), (void *)CALL_ARG2(regs)))
			return 0;
		vectors = message.vectors;
		count = message.count;
	}
	for (i = 0; i < VECTORS && i < count && copied < most; i++) {
		struct user_vector vector;
		u32 part;

		if (bpf_probe_read_user(&vector, sizeof(vector), (void *)(vectors + i * sizeof(vector))))
			break;
		part = vector.length > most - copied ? most - copied : vector.length;
		if (copied >= CAPTURE || part > CAPTURE)
			break;
		if (bpf_probe_read_user(&event->bytes[copied & (CAPTURE - 1)], part & (2 * CAPTURE - 1),
					(void *)vector.base))
			break;
		copied += part;
	}
	return copied;
}

/* Where a connection leads. */
static __always_inline void fill_ends(struct note *note, struct conn *conn, struct sock *sk)
{
	note->family = conn->family;
	note->local_port = sk->__sk_common.skc_num;
	note->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (conn->family == AF_INET) {
		BPF_CORE_READ_INTO(&note->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO(&note->peer, sk, __sk_common.skc_daddr);
	} else if (conn->family == AF_INET6) {
		BPF_CORE_READ_INTO(&note->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&note->peer, sk, __sk_common.skc_v6_daddr);
	}
}

/* Tells of a read or a write; false when the ring has no room for it. */
static __always_inline bool tell_moved(struct event *event, struct note *note, struct thread *thread,
				       struct conn *conn, struct sock *sk)
{
	u32 copied = event->captured;

	if (conn->missed)
		event->flags |= EVENT_MISSED;
	if (!conn->told)
		event->flags |= conn->fresh ? EVENT_NEW | EVENT_FRESH : EVENT_NEW;
	if (!conn->told || event->arrivals > 1 || has_note(thread)) {
		fill_note(note, event, thread);
		if (!conn->told)
			fill_ends(note, conn, sk);
		if (!tell(note, sizeof(*note)))
			return false;
		event->flags |= EVENT_NOTED;
	}
	if (copied > CAPTURE)
		copied = CAPTURE;
	return tell(event, EVENT_HEAD + copied);
}

/* Done for a thread, not by it: it will learn of the bytes later. */
static __always_inline bool is_asynchronous(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return (task->flags & PF_IO_WORKER) || CALL_NUMBER(regs) == settings.ring_call;
}

static __always_inline void moved(struct sock *sk, s32 length, u8 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();
	struct thread *thread;
	struct event *event;
	struct conn *conn;
	struct note *note;
	u64 now;

	if (!is_watched(task->tgid))
		return;
	conn = conn_of(sk);
	if (!conn)
		return;
	now = bpf_ktime_get_ns();
	thread = this_thread(task, now);
	event = bpf_map_lookup_elem(&scratch, &cpu);
	note = bpf_map_lookup_elem(&notes, &cpu);
	if (!thread || !event || !note)
		return;
	thread->is_new = 0;
	heal_running(thread, task, now);
	advance(thread, task, now);
	if (kind == EVENT_READ)
		/* What a function returned for the request before says nothing of this one. */
		thread->classified = 0;
	fill(event, thread, task, now, kind);
	event->socket = conn->cookie;
	event->length = length;
	if (is_asynchronous(task))
		event->flags |= EVENT_ASYNC;
	if (kind == EVENT_READ)
		take_arrivals(conn, sk, event, note, length);
	event->captured = copy_moved(event, task, length, conn->whole ? CAPTURE : settings.capture);
	if (kind == EVENT_READ && event->captured && event->bytes[0] == '*')
		/* A list of Redis commands must be seen to its end to be counted. */
		conn->whole = 1;
	if (!tell_moved(event, note, thread, conn, sk)) {
		/* Its bytes are lost, its time is not: that goes with the thread's next event. */
		conn->missed = 1;
		return;
	}
	close_account(thread);
	thread->idle_told = 0;
	thread->has_read = kind == EVENT_READ;
	conn->told = 1;
	conn->missed = 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_read, struct sock *sk, int ret, int flags)
{
	if (ret > 0 && !(flags & MSG_PEEK))
		moved(sk, ret, EVENT_READ);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_write, struct sock *sk, int ret, int flags)
{
	if (ret > 0)
		moved(sk, ret, EVENT_WRITE);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int old, int new)
{
	struct gone gone = {};
	struct conn *conn;

	if (new == TCP_ESTABLISHED && ports[sk->__sk_common.skc_num]) {
		conn = conn_of(sk);
		if (conn)
			conn->fresh = 1;
		return 0;
	}
	if (new != TCP_CLOSE)
		return 0;
	conn = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!conn || !conn->told)
		return 0;
	gone.at = bpf_ktime_get_ns();
	gone.socket = conn->cookie;
	gone.kind = EVENT_CLOSED;
	if (bpf_ringbuf_output(&ring, &gone, sizeof(gone), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&losses.ring_full, 1);
	return 0;
}

/* What a function of the server returned is the class of the request that its thread serves. */
SEC("uretprobe")
int BPF_KRETPROBE(on_return, long value)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;

	if (!is_watched(task->tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (!thread)
		return 0;
	thread->class = value;
	thread->classified = 1;
	return 0;
}
