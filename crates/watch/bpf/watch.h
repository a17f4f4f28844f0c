/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What watch.bpf.c and crates/watch/src/kernel/event.rs agree on. Sizes and offsets are checked there by a test. */
#ifndef PARALLAX_WATCH_H
#define PARALLAX_WATCH_H

/* Where a thread's time goes; the first nine are parts of a request by these names. */
enum part {
	ON_CPU = 0,
	STOLEN,
	RUN_QUEUE,
	YIELDED,
	THROTTLED,
	DISK,
	LOCK,
	NETWORK,
	OTHER,
	/* Polls for whatever comes next: an event loop between two events. */
	IDLE,
	PARTS,
};

/* What a thread waits for that sleeps in a system call. */
enum call {
	CALL_NONE = 0,
	CALL_LOCK,
	CALL_DISK,
	CALL_NETWORK,
	CALL_POLL,
	/* As the file is that its first argument names. */
	CALL_FILE,
};

/* Where a system call that moves bytes has them. */
enum move {
	MOVE_UNKNOWN = 0,
	/* Its second argument points to them. */
	MOVE_BUFFER,
	/* Its second argument points to vectors, its third says how many. */
	MOVE_VECTORS,
	/* Its second argument points to a message header that names vectors. */
	MOVE_MESSAGE,
};

enum {
	CALLS = 512,
	CAPTURE = 16384,
	ARRIVALS = 8,
	SLICES = 64,
	VECTORS = 8,
};

struct settings {
	/* By number of a system call: what a thread waits for that sleeps in it (enum call). */
	u8 calls[CALLS];
	/* By number of a system call: where the bytes are that it moves (enum move). */
	u8 moves[CALLS];
	/* Most bytes to copy of one read or write. */
	u32 capture;
	/* The number of sched_yield. */
	s32 yield_call;
};

enum event_kind { EVENT_READ = 1, EVENT_WRITE, EVENT_IDLE, EVENT_CLOSED };
enum event_flags { EVENT_NEW = 1, EVENT_MISSED = 2, EVENT_FRESH = 4 };

struct arrival {
	u64 at;
	/* One past its last byte, counted from the first byte of this read. */
	u32 end;
	u32 pad;
};

/* A thread reached an edge. */
struct event {
	u64 at;
	u64 socket;
	u32 pid;
	u32 tid;
	u8 kind;
	u8 flags;
	u8 arrivals;
	u8 classified;
	/* Bytes that the call moved, and how many of them are here. */
	u32 length;
	u32 captured;
	u32 preemptions;
	s64 class;
	/* Since the thread's previous event. */
	u64 parts[PARTS];
	u64 preempted_ns;
	/* When the thread was last woken since its previous event, or 0; and `parts` then. */
	u64 woken_at;
	u64 woken_parts[PARTS];
	u64 culprit_ns;
	u32 culprit;
	u16 local_port;
	u16 peer_port;
	char culprit_comm[16];
	u16 family;
	u16 pad[3];
	u8 local[16];
	u8 peer[16];
	struct arrival arrived[ARRIVALS];
	u8 bytes[2 * CAPTURE];
};

_Static_assert(__builtin_offsetof(struct event, parts) == 48, "as in event.rs");
_Static_assert(__builtin_offsetof(struct event, woken_parts) == 144, "as in event.rs");
_Static_assert(__builtin_offsetof(struct event, arrived) == 296, "as in event.rs");
_Static_assert(__builtin_offsetof(struct event, bytes) == 424, "as in event.rs");

#define EVENT_HEAD (__builtin_offsetof(struct event, bytes))

/* A connection is gone. The first fields are those of an event. */
struct gone {
	u64 at;
	u64 socket;
	u32 pid;
	u32 tid;
	u8 kind;
	u8 pad[7];
};

/* What could not be told. Each is printed. */
struct losses {
	u64 ring_full;
	u64 threads;
	u64 conns;
	u64 processes;
	u64 culprits;
	/* Waits that outlast the memory of who ran on a CPU. */
	u64 slices;
	/* Lots of bytes that were joined with later ones. */
	u64 arrivals;
};

struct culprit_key {
	u32 victim;
	u32 pid;
	char comm[16];
};

struct culprit {
	u64 time;
	u64 count;
};

struct user_vector {
	u64 base;
	u64 length;
};

/* struct msghdr of user space, 64 bits. */
struct user_message {
	u64 name;
	u32 name_length;
	u32 pad;
	u64 vectors;
	u64 count;
};

#endif
