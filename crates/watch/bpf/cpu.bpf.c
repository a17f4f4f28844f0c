/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The time of threads on CPUs, in user mode and in the kernel, by the boundaries that they cross: switches, system
 * calls, interrupts.
 *
 * The kernel's own division looks who runs at each tick. A stretch between two boundaries lies in one mode, so here
 * every nanosecond on a CPU is in exactly one sum. What has no boundary to be seen is in user time: page faults,
 * which are counted, and the way from the edge of the kernel to the tracepoint.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "cpu.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* When user space had attached all programs: before that nothing is counted. */
u64 begin SEC(".bss.begin");
/* Threads that there was no memory for. */
u64 lost SEC(".bss.lost");
/* All processes, or those in `wanted`. */
const volatile bool everybody SEC(".rodata.everybody");

/* By process id: the first process of the tree that it is in, or 0 for a process without its children. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} wanted SEC(".maps");

/* By thread id. User space takes those that ended out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

struct cpu {
	/* `begin`, once a switch was seen on this CPU since then. */
	u64 switched;
	/* When the interrupt began that is being served. */
	u64 interrupted;
	u32 depth;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* What is read of a thread here alone. */
struct task_struct___own {
	u64 start_time;
	unsigned long nvcsw;
	unsigned long nivcsw;
} __attribute__((preserve_access_index));

/* include/linux/sched.h, since 4.20. */
#define TASK_DEAD 0x80

#define barrier() asm volatile("" ::: "memory")

static __always_inline bool is_wanted(struct task_struct *task)
{
	u32 tgid = task->tgid;

	/* The idle task is nobody's. */
	if (!tgid)
		return false;
	return everybody || bpf_map_lookup_elem(&wanted, &tgid);
}

static __always_inline struct cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

/* In which mode it is whose last boundary was not seen. The frame that it entered the kernel with says. */
static __always_inline u32 mode_of(struct task_struct *task)
{
	struct pt_regs *frame;

	if (task->flags & PF_KTHREAD)
		return MODE_SYSTEM;
	frame = (struct pt_regs *)bpf_task_pt_regs(task);
	return CALL_NUMBER(frame) >= 0 ? MODE_SYSTEM : MODE_USER;
}

/* How often it has left a CPU, the switch under way included. */
static __always_inline u64 switches_of(struct task_struct *task)
{
	struct task_struct___own *own = (void *)task;

	return own->nvcsw + own->nivcsw;
}

static __always_inline struct clock *new_clock(struct task_struct *task, struct clock *clock)
{
	u32 tid = task->pid;

	clock->tgid = task->tgid;
	bpf_probe_read_kernel_str(clock->comm, sizeof(clock->comm), task->comm);
	if (bpf_map_update_elem(&clocks, &tid, clock, BPF_NOEXIST))
		__sync_fetch_and_add(&lost, 1);
	return bpf_map_lookup_elem(&clocks, &tid);
}

/*
 * That of a thread that is on this CPU, or just `leaves` it. One that is seen for the first time has run since
 * `begin`, in `mode`; or the switch that brought it was missed, and the scheduler's account has what it ran.
 */
static __always_inline struct clock *clock_of(struct task_struct *task, u32 mode, u32 leaves)
{
	struct task_struct___own *own = (void *)task;
	u32 tid = task->pid;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &tid);
	struct clock new = { .mode = mode };
	struct cpu *cpu;

	if (clock)
		return clock;
	cpu = this_cpu();
	new.switches = switches_of(task) - leaves;
	if (own->start_time > begin) {
		new.is_booked = 1;
	} else if (cpu && cpu->switched == begin) {
		new.is_booked = 1;
		new.first_booked = new.last_booked = task->se.sum_exec_runtime;
	} else {
		new.at = begin;
	}
	return new_clock(task, &new);
}

static __always_inline void add(struct clock *clock, u64 passed)
{
	if (clock->mode == MODE_USER)
		clock->user += passed;
	else if (clock->mode == MODE_SYSTEM)
		clock->system += passed;
}

/*
 * A switch of this thread was missed: while another loader attaches to the tracepoint or leaves it, the kernel may
 * pass ours by. Then the scheduler's account says how long it ran since the two were last compared.
 */
static __always_inline void heal(struct clock *clock, struct task_struct *task)
{
	u64 ran = task->se.sum_exec_runtime - clock->last_booked;
	u64 known = clock->user + clock->system + clock->interrupt - clock->last_wall;

	clock->missed++;
	if (clock->is_booked && ran > known)
		add(clock, ran - known);
}

/*
 * Puts the time until `now` where it belongs. `at` is 0 when it is not on a CPU, as far as was seen; and it was not
 * on this one all the time if it has left one more often than was seen.
 */
static __always_inline void advance(struct clock *clock, struct task_struct *task, u64 now, u32 leaves)
{
	u64 switches = switches_of(task) - leaves;

	if (!clock->at || switches != clock->switches)
		heal(clock, task);
	else if (now > clock->at)
		add(clock, now - clock->at);
	clock->at = now;
	clock->switches = switches;
}

/* The scheduler's account is up to date. */
static __always_inline void book(struct clock *clock, struct task_struct *task)
{
	clock->last_wall = clock->user + clock->system + clock->interrupt;
	clock->last_booked = task->se.sum_exec_runtime;
	if (!clock->is_booked) {
		clock->is_booked = 1;
		clock->first_wall = clock->last_wall;
		clock->first_booked = clock->last_booked;
	}
}

static __always_inline void begin_change(struct clock *clock)
{
	/* Interrupts come amid a change, and have changes of their own. */
	__sync_fetch_and_add(&clock->begun, 1);
	barrier();
}

static __always_inline void end_change(struct clock *clock)
{
	barrier();
	__sync_fetch_and_add(&clock->done, 1);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	bool leaves = is_wanted(prev), comes = is_wanted(next);
	struct cpu *cpu = this_cpu();
	struct clock *clock, new = {};
	u64 now = 0;
	u32 tid;

	if (!begin || !cpu)
		return 0;
	if (leaves || comes)
		now = bpf_ktime_get_ns();
	if (leaves) {
		clock = clock_of(prev, mode_of(prev), 1);
		if (clock) {
			begin_change(clock);
			advance(clock, prev, now, 1);
			book(clock, prev);
			clock->at = 0;
			/* Its last switch. On its way out it may have slept before. */
			if (prev->__state & TASK_DEAD)
				clock->ended = 1;
			end_change(clock);
		}
	}
	cpu->switched = begin;
	if (!comes)
		return 0;
	/* Nothing is switched amid an interrupt: what began before the end was attached is forgotten. */
	cpu->depth = 0;
	tid = next->pid;
	clock = bpf_map_lookup_elem(&clocks, &tid);
	if (!clock)
		clock = new_clock(next, &new);
	if (clock) {
		begin_change(clock);
		if (clock->at && clock->is_booked)
			heal(clock, next);
		clock->at = now;
		clock->mode = mode_of(next);
		clock->switches = switches_of(next);
		/* Nothing ran since it left, and its account is whole. */
		book(clock, next);
		end_change(clock);
	}
	return 0;
}

static __always_inline int cross(u32 from, u32 to)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct clock *clock;
	u64 now = 0;

	if (!begin || !is_wanted(task))
		return 0;
	/* As near to user mode as can be: what is done here is the kernel's time. */
	if (to == MODE_SYSTEM)
		now = bpf_ktime_get_ns();
	clock = clock_of(task, from, 0);
	if (!clock)
		return 0;
	begin_change(clock);
	if (to == MODE_USER)
		now = bpf_ktime_get_ns();
	advance(clock, task, now, 0);
	clock->mode = to;
	if (to == MODE_SYSTEM)
		clock->calls++;
	end_change(clock);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_call)
{
	return cross(MODE_USER, MODE_SYSTEM);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return)
{
	return cross(MODE_SYSTEM, MODE_USER);
}

/* Interrupts nest; the outermost one counts. */
static __always_inline int interrupt_begins(void)
{
	struct cpu *cpu = this_cpu();

	if (!begin || !cpu)
		return 0;
	if (!cpu->depth++)
		cpu->interrupted = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int interrupt_ends(bool is_tick)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = this_cpu();
	struct clock *clock;
	u64 now;

	if (!begin || !cpu || !cpu->depth || --cpu->depth || !is_wanted(task))
		return 0;
	clock = clock_of(task, mode_of(task), 0);
	if (!clock)
		return 0;
	now = bpf_ktime_get_ns();
	begin_change(clock);
	if (clock->mode == MODE_USER) {
		advance(clock, task, cpu->interrupted, 0);
		clock->interrupt += now > cpu->interrupted ? now - cpu->interrupted : 0;
		clock->interrupts++;
		clock->at = now;
	} else {
		advance(clock, task, now, 0);
	}
	/* The tick has brought the scheduler's account up to date. */
	if (is_tick)
		book(clock, task);
	end_change(clock);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_begin)
{
	return interrupt_begins();
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_end)
{
	return interrupt_ends(false);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_begin)
{
	return interrupt_begins();
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_end)
{
	return interrupt_ends(false);
}

/* The next three are of x86 alone; elsewhere the timer is an irq. */
SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_tick_begin)
{
	return interrupt_begins();
}

SEC("tp_btf/local_timer_exit")
int BPF_PROG(on_tick_end)
{
	return interrupt_ends(true);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct clock *clock;

	if (!begin || !is_wanted(task))
		return 0;
	clock = clock_of(task, MODE_USER, 0);
	if (clock) {
		begin_change(clock);
		clock->faults++;
		end_change(clock);
	}
	return 0;
}

/* A child is in the tree of its parent. It has not run yet. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, to = child->tgid;
	u32 *root;

	if (everybody || from == to)
		return 0;
	root = bpf_map_lookup_elem(&wanted, &from);
	if (root && *root) {
		if (bpf_map_update_elem(&wanted, &to, root, BPF_ANY))
			__sync_fetch_and_add(&lost, 1);
	} else {
		/* Its id may be that of a process that ended. */
		bpf_map_delete_elem(&wanted, &to);
	}
	return 0;
}

/* A thread that is not the first of its process takes the first one's id when it executes another program. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old)
{
	u32 tid = task->pid, was = old;
	struct clock *clock, *first;

	if (!begin || !is_wanted(task) || tid == was)
		return 0;
	clock = bpf_map_lookup_elem(&clocks, &was);
	if (!clock)
		return 0;
	first = bpf_map_lookup_elem(&clocks, &tid);
	if (first) {
		/* It was ended for that. */
		clock->user += first->user;
		clock->system += first->system;
		clock->interrupt += first->interrupt;
		clock->calls += first->calls;
		clock->faults += first->faults;
		clock->interrupts += first->interrupts;
		clock->missed += first->missed;
		clock->first_wall += first->user + first->system + first->interrupt;
	}
	bpf_map_update_elem(&clocks, &tid, clock, BPF_ANY);
	bpf_map_delete_elem(&clocks, &was);
	return 0;
}
