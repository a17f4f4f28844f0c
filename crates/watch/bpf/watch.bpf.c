/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What a server's threads do, and what its sockets carry.
 *
 * Each thread of a watched process has an account (watch_account.h). At each edge of a request (a read, a write) the
 * account since the thread's previous edge goes to user space with the bytes that were moved; user space adds accounts
 * up to requests. So the parts of a request sum to its time by construction, and no wake-up is ever paid for by the
 * server: user space looks into the lanes when it likes.
 *
 * What it costs the server is measured by bench/watch_cost.py, and by `parallax watch --self` wherever it runs.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "watch.h"
#include "scheduler.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What user space decides before loading. */
const volatile struct settings settings SEC(".rodata.settings");
/* The one process that is watched, or 0 when there are more: then `processes` says. */
u32 only_process SEC(".bss.process");
/* Local ports whose connections are the server's, by number. */
u8 ports[65536] SEC(".bss.ports");
/* Set when `old_sockets` is complete: from then on a socket that is not in it was made under watch. */
u32 knows_old SEC(".bss.old");
/* The number of the window in which the programs are attached: what was known in another one is out of date. */
u32 window SEC(".bss.window");
struct losses losses SEC(".bss.losses");

/* Since 6.2. */
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym;

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

static __always_inline bool is_watched(u32 tgid)
{
	u32 only = only_process;

	if (only)
		return tgid == only;
	return bpf_map_lookup_elem(&processes, &tgid) != NULL;
}

#include "watch_lane.h"
#include "watch_account.h"
#include "watch_culprit.h"
#include "watch_socket.h"
#include "watch_wait.h"
#include "watch_event.h"
#include "watch_tls.h"

/* ---- the scheduler ------------------------------------------------------------------------------------------- */

static __always_inline void switch_out(struct task_struct *prev, bool preempt, u32 prev_state, u64 now)
{
	/* Whose account has begun is watched. */
	struct thread *thread = known_thread(prev);
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
		thread->stop = stopped_by(prev, prev_state);
		thread->doing = reason_to_sleep(thread, prev);
		if (thread->stop) {
			/* It sleeps in no system call. */
			thread->sleeps_in = -1;
			thread->doing = OTHER;
		}
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
	struct thread *thread = watched_thread(next, now);
	u64 delay, began;

	if (!thread)
		return;
	delay = delay_of(next);
	if (thread->is_new) {
		thread->is_new = 0;
		thread->delayed = delay;
		return;
	}
	heal_switched_out(thread, next, now);
	if (is_asleep(thread)) {
		/* Woken, and nobody told. */
		wake_up(thread, next, now - (delay - thread->delayed));
		__sync_fetch_and_add(&losses.switches, 1);
	}
	thread->waker = STRANGER;
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
	advance(thread, next, now);
	if (thread->doing == RUN_QUEUE) {
		if (thread->preempted)
			thread->preempted_ns += now - began;
		if (slices)
			charge_wait(slices, thread, next, began);
	}
	set_going(thread, next);
	thread->delayed = delay;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct slices *slices = bpf_map_lookup_elem(&ran, &cpu);

	if (slices)
		note_slice(slices, prev, now);
	if (prev->pid)
		switch_out(prev, preempt, prev_state, now);
	if (next->pid)
		switch_in(next, slices, now);
	return 0;
}

/* A thread that waited for one that slept on a disk waited for the disk: a follower of a group commit, say. */
static __always_inline void blame_disk(struct thread *thread, struct task_struct *task, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct thread *other;
	u64 from, to;
	u8 doing;

	if (thread->doing != LOCK && thread->doing != OTHER)
		return;
	other = known_thread(waker);
	if (!other || !other->disk_ended)
		return;
	from = other->disk_began > thread->at ? other->disk_began : thread->at;
	to = other->disk_ended < now ? other->disk_ended : now;
	if (to <= from)
		return;
	doing = thread->doing;
	advance(thread, task, from);
	thread->doing = DISK;
	advance(thread, task, to);
	thread->doing = doing;
}

static __always_inline void set_in_timer(u32 in_timer)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct slices *slices = bpf_map_lookup_elem(&ran, &cpu);

	if (slices)
		slices->in_timer = in_timer;
}

/* As often as the tick and the host's sleeps, and all that says that a thread was woken by its timer. */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_timer)
{
	set_in_timer(1);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_timer_over)
{
	set_in_timer(0);
	return 0;
}

/* In the waker's context: it is known who woke. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct thread *thread, *waker;
	u64 now, from;

	thread = known_thread(task);
	if (!thread)
		return 0;
	/* One that runs, as far as we know, is on its way to sleep, or will not. */
	if (is_asleep(thread)) {
		now = bpf_ktime_get_ns();
		from = thread->at;
		blame_disk(thread, task, now);
		if (now - from >= LONG_SLEEP)
			tell_waited(thread, task, from, now);
	}
	waker = known_thread(bpf_get_current_task_btf());
	thread->waker = !waker ? STRANGER : waker->has_read ? READER : FELLOW;
	return 0;
}

/* On the run queue from here on, as the scheduler's own account has it. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct thread *thread = known_thread(task);

	/* Woken before it slept. */
	if (thread && is_asleep(thread))
		wake_up(thread, task, bpf_ktime_get_ns());
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

/* Bytes have arrived: in the context of whoever brought them. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_arrival, struct sock *sk)
{
	struct tcp_sock *tcp;
	struct waiting *last;
	struct conn *conn;
	u32 end = 0;

	if (is_internet(sk)) {
		conn = conn_of(sk);
		tcp = tcp_of(sk);
		end = tcp ? tcp->rcv_nxt : 0;
	} else {
		/* Known from its first read on: before, nobody can tell whose it is. */
		conn = known_conn(sk);
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

/* Counts what an event adds to its connection's turns and bytes. */
static __always_inline void count_moved(struct conn *conn, u32 length, u8 kind)
{
	conn->turned = kind == EVENT_READ && conn->responded;
	conn->responded = kind != EVENT_READ;
	conn->turns += conn->turned;
	if (kind == EVENT_READ)
		conn->read_bytes += length;
}

static __always_inline void moved(struct sock *sk, s32 length, u8 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;
	struct conn *conn;
	u64 now;

	/* Most sockets of a host are told by their port, without a call. A Unix socket may be anybody's. */
	if (!is_internet(sk) && !is_watched(task->tgid))
		return;
	conn = conn_of(sk);
	if (!conn) {
		moved_elsewhere(sk, task, kind);
		return;
	}
	now = bpf_ktime_get_ns();
	thread = watched_thread(task, now);
	if (!thread)
		return;
	thread->is_new = 0;
	heal_running(thread, task, now);
	advance(thread, task, now);
	count_moved(conn, length, kind);
	if (kind == EVENT_READ)
		thread->read_from = conn->cookie;
	if (!tell_moved(thread, task, now, conn, sk, length, kind)) {
		/* Its bytes are lost, its time is not: that goes with the thread's next event. */
		conn->missed = 1;
		__sync_fetch_and_add(&losses.turns, (u64)conn->turned);
		if (kind == EVENT_READ)
			__sync_fetch_and_add(&losses.read_bytes, (u64)length);
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
	if (settings.tls && ret > 0)
		touch(sk);
	if (ret > 0 && !(flags & MSG_PEEK))
		moved(sk, ret, EVENT_READ);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_write, struct sock *sk, int ret, int flags)
{
	if (settings.tls && ret > 0)
		touch(sk);
	if (ret > 0)
		moved(sk, ret, EVENT_WRITE);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int old, int new)
{
	struct conn *conn;

	if (new == TCP_ESTABLISHED && ports[sk->__sk_common.skc_num]) {
		conn = conn_of(sk);
		if (conn)
			conn->fresh = 1;
		return 0;
	}
	if (new != TCP_CLOSE)
		return 0;
	conn = known_conn(sk);
	if (!conn || !conn->told)
		return 0;
	tell_closed(conn);
	return 0;
}

/* A function of the server classifies the request that its thread serves now, also when it answers it itself. */
SEC("uprobe")
int BPF_KPROBE(on_entry)
{
	struct thread *thread = known_thread(bpf_get_current_task_btf());

	if (!thread)
		return 0;
	thread->classifies = thread->read_from;
	thread->classifies_since = bpf_ktime_get_ns();
	return 0;
}

/* What it returned is the class. */
SEC("uretprobe")
int BPF_KRETPROBE(on_return, long value)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;

	thread = known_thread(task);
	if (!thread || !thread->classifies)
		return 0;
	tell_classified(thread, task, bpf_ktime_get_ns(), value);
	thread->classifies = 0;
	return 0;
}
