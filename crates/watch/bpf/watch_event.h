/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Events: what user space is told of a thread, and that its account starts anew then. Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_EVENT_H
#define PARALLAX_WATCH_EVENT_H

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

#endif
