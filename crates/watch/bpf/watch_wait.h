/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What ended a long sleep of a thread, and how long another server took to answer it. Only sleeps of LONG_SLEEP and more
 * are told: what is shorter explains nothing, and so a busy server pays for a comparison. Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_WAIT_H
#define PARALLAX_WATCH_WAIT_H

/* In nanoseconds. A server that sleeps as long as this a request has 1000 requests a second to each thread at most. */
enum { LONG_SLEEP = 1000000 };

enum { TASK_STOPPED = 4, TASK_TRACED = 8, TASK_FROZEN = 0x8000, STOP_SIGNAL = 0xffff, BY_FREEZER = 0xff };

/* By what the current thread, about to sleep, is kept from running: a signal's number, BY_FREEZER, or 0 for nothing. */
static __always_inline u8 stopped_by(struct task_struct *task, u32 state)
{
	if (state & (TASK_STOPPED | TASK_TRACED)) {
		u32 signal = task->jobctl & STOP_SIGNAL;

		/* A tracer's stop has none. */
		return signal && signal < BY_FREEZER ? signal : 5;
	}
	if (state & TASK_FROZEN)
		return BY_FREEZER;
	if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen))
		return BY_FREEZER;
	return 0;
}

/* What wakes a thread now. An interrupt runs in the context of whatever thread it has interrupted. */
static __always_inline u8 woken_by(struct task_struct *waker)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct slices *slices = bpf_map_lookup_elem(&ran, &cpu);

	if (slices && slices->in_timer)
		return WOKEN_TIMER;
	return known_thread(waker) ? WOKEN_BY_FELLOW : WOKEN_FROM_OUTSIDE;
}

/* A thread that has slept since `from` is being woken, by the current thread or an interrupt on its CPU. */
static __always_inline void tell_waited(struct thread *thread, struct task_struct *task, u64 from, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct place place;
	struct waited *waited;

	place = take_place(sizeof(struct event) + sizeof(struct waited));
	if (!place.event)
		return;
	__builtin_memset(&place.event->at, 0, sizeof(struct event) - __builtin_offsetof(struct event, at));
	place.event->words = (sizeof(struct event) + sizeof(struct waited)) / 8;
	place.event->at = now;
	place.event->pid = task->tgid;
	place.event->tid = task->pid;
	place.event->kind = EVENT_WAITED;
	place.event->captured = sizeof(struct waited);
	waited = (void *)(place.event + 1);
	waited->from = from;
	waited->object = CALL_ARG1(regs);
	waited->by = woken_by(waker);
	waited->stop = thread->stop;
	waited->part = thread->doing;
	waited->pad = 0;
	waited->call = CALL_NUMBER(regs);
	regs = (struct pt_regs *)bpf_task_pt_regs(waker);
	waited->waker_call = CALL_NUMBER(regs);
	waited->pad2 = 0;
	waited->waker_pid = waker->tgid;
	waited->waker_tid = waker->pid;
	__builtin_memcpy(waited->waker_comm, waker->comm, 16);
	give(&place);
}

/* A connection of the server to another one: when it wrote there, until it reads from there. */
struct asked {
	u64 at;
	u32 window;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct asked);
} outgoing SEC(".maps");

static __always_inline void tell_answered(struct task_struct *task, struct sock *sk, u64 from, u64 now)
{
	struct place place = take_place(sizeof(struct event) + sizeof(struct answered));
	struct answered *answered;

	if (!place.event)
		return;
	__builtin_memset(&place.event->at, 0, sizeof(struct event) - __builtin_offsetof(struct event, at));
	place.event->words = (sizeof(struct event) + sizeof(struct answered)) / 8;
	place.event->at = now;
	place.event->pid = task->tgid;
	place.event->tid = task->pid;
	place.event->kind = EVENT_ANSWERED;
	place.event->captured = sizeof(struct answered);
	answered = (void *)(place.event + 1);
	__builtin_memset(answered, 0, sizeof(*answered));
	answered->from = from;
	answered->family = sk->__sk_common.skc_family;
	answered->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (answered->family == AF_INET)
		BPF_CORE_READ_INTO(&answered->peer, sk, __sk_common.skc_daddr);
	else if (answered->family == AF_INET6)
		BPF_CORE_READ_INTO(&answered->peer, sk, __sk_common.skc_v6_daddr);
	give(&place);
}

/* A thread moved bytes of a socket that no client of it has: of another server, maybe. */
static __always_inline void moved_elsewhere(struct sock *sk, struct task_struct *task, u8 kind)
{
	struct asked *asked;
	u64 now, from;

	if (!is_watched(task->tgid))
		return;
	asked = bpf_sk_storage_get(&outgoing, sk, 0, kind == EVENT_WRITE ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!asked)
		return;
	if (asked->window != window) {
		asked->window = window;
		asked->at = 0;
	}
	if (kind == EVENT_WRITE) {
		if (!asked->at)
			asked->at = bpf_ktime_get_ns();
		return;
	}
	from = asked->at;
	if (!from)
		return;
	asked->at = 0;
	now = bpf_ktime_get_ns();
	if (now - from >= LONG_SLEEP)
		tell_answered(task, sk, from, now);
}

/*
 * Whether the last bytes of what was written are held back: they fill no packet, and Nagle's algorithm waits for the
 * other side to acknowledge what was sent before.
 */
static __always_inline bool is_held_back(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);

	if (!tcp || tcp->write_seq == tcp->snd_nxt)
		return false;
	return tcp->write_seq - tcp->snd_nxt < tcp->mss_cache && tcp->packets_out && !BPF_CORE_READ_BITFIELD(tcp, nonagle);
}

#endif
