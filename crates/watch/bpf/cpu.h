/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What cpu.bpf.c and crates/watch/src/cpu.rs agree on. Sizes and offsets are checked there by a test. */
#ifndef PARALLAX_CPU_H
#define PARALLAX_CPU_H

enum mode { MODE_OFF = 0, MODE_USER, MODE_SYSTEM };

/*
 * A thread's time on CPUs. A reader that finds `done` (read first) equal to `begun` (read last) has a whole one:
 * only the CPU that the thread is on changes it.
 */
struct clock {
	u64 done;
	/* Everything before this instant is in the sums. */
	u64 at;
	u64 user;
	u64 system;
	/* In interrupts that came in user mode. Those that came in a system call are in `system`. */
	u64 interrupt;
	/* All three of them, and the scheduler's account, when both were first and last known at one instant. */
	u64 first_wall;
	u64 first_booked;
	u64 last_wall;
	u64 last_booked;
	u64 calls;
	u64 faults;
	u64 interrupts;
	/* Switches that no program was run for. */
	u64 missed;
	/* How often it had left a CPU, by the kernel's count, when it was last put on one. */
	u64 switches;
	u32 tgid;
	u32 mode;
	u32 ended;
	u32 is_booked;
	char comm[16];
	u64 begun;
};

#endif
