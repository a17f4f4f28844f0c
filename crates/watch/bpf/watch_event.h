/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Events: what user space is told of a thread, and that its account starts anew then. Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_EVENT_H
#define PARALLAX_WATCH_EVENT_H

/* Its head, all but its size: that is known. */
static __always_inline void fill(struct event *event, struct thread *thread, struct task_struct *task, u64 now,
				 u8 kind)
{
	event->at = now;
	event->socket = 0;
	event->on_cpu = thread->parts[ON_CPU];
	event->pid = task->tgid;
	event->tid = task->pid;
	event->length = 0;
	event->captured = 0;
	event->kind = kind;
	event->flags = 0;
	event->arrivals = 0;
}

static __always_inline void fill_account(struct account *account, struct thread *thread)
{
	__builtin_memcpy(account->parts, thread->parts, sizeof(account->parts));
	account->preempted_ns = thread->preempted_ns;
	account->preemptions = thread->preemptions;
	account->contended_us = thread->contended_ns / 1000;
	account->woken_at = thread->woken_at;
	__builtin_memcpy(account->woken_parts, thread->woken_parts, sizeof(account->woken_parts));
	account->sleep_ns = thread->sleep_ns;
	account->sleep_call = thread->sleep_call;
	account->sleep_fd = thread->sleep_fd;
}

/* Whether a thread has more to say than an event and an account hold. */
static __always_inline bool has_note(struct thread *thread)
{
	return thread->has_suspects || thread->wakes;
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

/* Fills a note; returns what lies behind it, if there is more. */
static __always_inline struct note_more *fill_note(struct note *note, struct thread *thread, bool has_more)
{
	struct note_more *more = (struct note_more *)(note + 1);

	note->wakes = thread->wakes;
	note->has_more = has_more;
	fill_culprit(note, thread);
	note->family = 0;
	if (!has_more)
		return NULL;
	__builtin_memcpy(more->woken_by_fellows, thread->woken_by_fellows, sizeof(more->woken_by_fellows));
	return more;
}

/* What was told is told: the account starts anew. */
static __always_inline void close_account(struct thread *thread)
{
	thread->parts[ON_CPU] = 0;
	if (!thread->did_more)
		return;
	__builtin_memset(thread->parts, 0, sizeof(thread->parts));
	thread->did_more = 0;
	thread->woken_at = 0;
	thread->sleep_ns = 0;
	thread->preempted_ns = 0;
	thread->contended_ns = 0;
	thread->preemptions = 0;
	thread->handed = 0;
	thread->wakes = 0;
	if (thread->has_suspects)
		__builtin_memset(thread->suspects, 0, sizeof(thread->suspects));
	thread->has_suspects = 0;
}

static __always_inline void tell_idle(struct thread *thread, struct task_struct *task, u64 now)
{
	bool noted = has_note(thread);
	u32 before = sizeof(struct event) + (thread->did_more ? sizeof(struct account) : 0);
	u32 more = thread->wakes ? sizeof(struct note_more) : 0;
	struct place place = take_place(before + (noted ? sizeof(struct note) + more : 0));

	if (!place.event)
		return;
	fill(place.event, thread, task, now, EVENT_IDLE);
	if (thread->did_more) {
		fill_account((struct account *)(place.event + 1), thread);
		place.event->flags |= EVENT_ACCOUNT;
	}
	if (noted) {
		fill_note((void *)place.event + before, thread, more != 0);
		place.event->flags |= EVENT_NOTED;
	}
	give(&place);
	close_account(thread);
	thread->idle_told = 1;
}

static __always_inline void tell_closed(struct conn *conn)
{
	struct place place = take_place(sizeof(struct event));

	if (!place.event)
		return;
	/* No thread's doing. */
	__builtin_memset(&place.event->at, 0, sizeof(struct event) - __builtin_offsetof(struct event, at));
	place.event->words = sizeof(struct event) / 8;
	place.event->at = bpf_ktime_get_ns();
	place.event->socket = conn->cookie;
	place.event->on_cpu = conn->read_bytes;
	place.event->arrived_end = conn->turns;
	place.event->kind = EVENT_CLOSED;
	give(&place);
}

/* No edge: the account goes on. */
static __always_inline void tell_classified(struct thread *thread, struct task_struct *task, u64 now, long value)
{
	struct place place = take_place(sizeof(struct event));

	if (!place.event)
		return;
	fill(place.event, thread, task, now, EVENT_CLASSIFIED);
	place.event->socket = thread->classifies;
	place.event->on_cpu = value;
	place.event->arrived_at = thread->classifies_since;
	give(&place);
}

/*
 * Done for a thread, not by it: it will learn of the bytes later. io_uring reads in a thread of its own, or in the
 * server's on its way out of the kernel, from whatever system call or interrupt that is.
 */
static __always_inline bool is_asynchronous(struct task_struct *task, struct pt_regs *regs)
{
	long call = CALL_NUMBER(regs);

	if ((task->flags & PF_IO_WORKER) || call < 0 || call >= CALLS)
		return true;
	return settings.moves[call & (CALLS - 1)] == MOVE_NONE;
}

/*
 * Whether all that follows is copied, judged by what a client sends first: a list of Redis commands must be seen to its
 * end to be counted, and of HTTP/2 no header may be missed.
 */
static __always_inline bool must_be_whole(const u8 *bytes)
{
	return bytes[0] == '*' || (bytes[0] == 'P' && bytes[1] == 'R' && bytes[2] == 'I');
}

/* Tells of a read or a write; false when there is no room for it. */
static __always_inline bool tell_moved(struct thread *thread, struct task_struct *task, u64 now, struct conn *conn,
				       struct sock *sk, u32 length, u8 kind)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	bool several = kind == EVENT_READ && conn->tail - conn->head > 1;
	bool has_more = several || thread->wakes;
	bool noted = !conn->told || conn->missed || has_note(thread) || has_more;
	u32 account = thread->did_more ? sizeof(struct account) : 0;
	u32 before = sizeof(struct event) + account;
	/* What comes first says what is needed of all that follows, and may be a long list itself. */
	u32 most = conn->whole || !conn->told ? CAPTURE : settings.capture;
	struct note_more *more = NULL;
	struct note *note = NULL;
	struct event *event;
	struct place place;
	u8 *bytes;

	if (noted)
		before += sizeof(struct note) + (has_more ? sizeof(struct note_more) : 0);
	if (most > length)
		most = length;
	if (most > CAPTURE)
		most = CAPTURE;
	place = take_place(before + most);
	event = place.event;
	if (!event)
		return false;
	fill(event, thread, task, now, kind);
	event->socket = conn->cookie;
	event->length = length;
	if (is_asynchronous(task, regs))
		event->flags |= EVENT_ASYNC;
	if (conn->missed)
		event->flags |= EVENT_MISSED;
	if (conn->turned)
		event->flags |= EVENT_TURN;
	if (account) {
		event->flags |= EVENT_ACCOUNT;
		fill_account((struct account *)(event + 1), thread);
	}
	if (noted) {
		event->flags |= EVENT_NOTED;
		note = (void *)(event + 1) + account;
		more = fill_note(note, thread, has_more);
		note->turns = conn->turns;
		note->read_bytes = conn->read_bytes;
	}
	if (!conn->told && note) {
		event->flags |= EVENT_NEW;
		if (conn->fresh || is_beginning(sk, length, kind == EVENT_READ))
			event->flags |= EVENT_FRESH;
		fill_ends(note, conn, sk);
	}
	if (kind == EVENT_READ)
		take_arrivals(conn, sk, event, more, length);
	else if (is_held_back(sk))
		event->flags |= EVENT_HELD_BACK;
	bytes = (u8 *)event + before;
	event->captured = copy_moved(bytes, regs, most);
	if (kind == EVENT_READ && event->captured && must_be_whole(bytes))
		conn->whole = 1;
	give(&place);
	return true;
}

#endif
