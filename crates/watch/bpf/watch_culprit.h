/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Who ran on a CPU while a thread waited for it. Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_CULPRIT_H
#define PARALLAX_WATCH_CULPRIT_H

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
	/* Whether the function of a timer runs there now. */
	u32 in_timer;
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

	thread->has_suspects = 1;
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

/* In a storm of short-lived processes there are more culprits than the table has room for: the rest share one row. */
static __always_inline void charge_rest(u64 time)
{
	struct culprit_key key = {};
	struct culprit *rest = bpf_map_lookup_elem(&culprits, &key);

	if (!rest) {
		__sync_fetch_and_add(&losses.culprits, 1);
		return;
	}
	__sync_fetch_and_add(&rest->time, time);
	__sync_fetch_and_add(&rest->count, 1);
}

static __always_inline void charge(struct thread *thread, struct slice *slice, u64 time)
{
	struct culprit_key key = { .pid = slice->tgid };
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
		charge_rest(time);
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
	if (slice->pid == 0 || slice->pid == wait->pid || slice->end <= from)
		return 0;
	if (slice->tgid != wait->tgid)
		wait->thread->contended_ns += slice->end - from;
	charge(wait->thread, slice, slice->end - from);
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

#endif
