/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What profile.bpf.c and crates/watch/src/profile/layout.rs agree on. Sizes and offsets are checked there by a test. */
#ifndef PARALLAX_PROFILE_H
#define PARALLAX_PROFILE_H

enum picture {
	ON_CPU = 0,
	OFF_CPU,
	RUN_QUEUE,
	PICTURES,
};

enum {
	/* kernel.perf_event_max_stack, as it is unless somebody changed it. */
	FRAMES = 127,
	/* Where the first table had a stack of another shape in that place. */
	SECOND_TABLE = 1 << 30,
};

/* The rest of the number is the hash of a stack that is walked here and not by the kernel. */
#define WALKED (1LL << 62)
/* Of which a caller was looked for along the stack, and may be one of an earlier call. */
#define GUESSED (1LL << 61)

/* How a library's code finds its callers. */
enum {
	/* Of one process: the C library, its threads where they are a file of their own, and that of C++. */
	LIBRARIES = 3,
	/* Of all libraries together. */
	RULES = 1 << 17,
};

/* From `at` to the next rule's: where the caller's stack pointer is. */
struct rule {
	/* Less the library's bias. */
	u32 at;
	/* Eight-byte words from the register to the caller's stack pointer. */
	u16 words;
	u8 base;
	/* Words from there down to the caller's frame pointer; 0 where the register still has it. */
	u8 saved;
};

enum { BASE_UNKNOWN = 0, BASE_STACK, BASE_FRAME };

/* A library's code in a process. */
struct library {
	u64 start;
	u64 end;
	u64 bias;
	u32 first;
	u32 count;
};

struct libraries {
	struct library of[LIBRARIES];
};

/* A stack that is not a number. */
enum {
	/* There is none: a kernel thread, or a thread that has not run yet. */
	STACK_NONE = -1,
	/* Both tables were taken by other stacks. */
	STACK_LOST = -2,
	/* The thread went to sleep before the profile began. */
	STACK_BEFORE = -3,
};

/* What user space sets while the programs run. */
struct control {
	/* When the profile began: nothing before is counted. */
	u64 began;
	/* Set when it ends: what goes on until the programs are gone is not counted. */
	u64 ended;
	/* The one process that is watched, or 0 when there are more: then `processes` says. */
	u32 only_process;
	u32 pad;
};

struct stack_key {
	u32 pid;
	u32 tid;
	/* A place in a table of stacks, or the hash of a mended stack, or one of the above. */
	s64 user;
	s32 kernel;
	u32 picture;
	char comm[16];
};

struct weight {
	u64 count;
	u64 ns;
};

/* Over all threads that are watched. */
struct totals {
	/* On a CPU by the scheduler, and not by samples: what samples are checked with. */
	u64 on_cpu_ns;
	struct weight weights[PICTURES];
	/* Stacks that had no place in the tables: their time is kept, without frames. */
	u64 stacks_lost;
	/* Weights that had no place: their time is in `weights`, and in no picture. */
	u64 weights_lost[PICTURES];
	u64 threads_lost;
	u64 processes_lost;
	/* Switches and wake-ups of which nobody told: their time is the scheduler's. */
	u64 missed_switches;
};

#endif
