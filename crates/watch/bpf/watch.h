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

/* Where a system call that moves a socket's bytes has them. */
enum move {
	/* It moves none. */
	MOVE_NONE = 0,
	/* Its second argument points to them. */
	MOVE_BUFFER,
	/* Its second argument points to vectors, its third says how many. */
	MOVE_VECTORS,
	/* Its second argument points to a message header that names vectors. */
	MOVE_MESSAGE,
	/* Not where its arguments say, or in several messages. */
	MOVE_ELSEWHERE,
};

enum {
	CALLS = 512,
	CAPTURE = 16384,
	ARRIVALS = 8,
	SLICES = 256,
	SUSPECTS = 4,
	WAKES = 4,
	VECTORS = 8,
};

struct settings {
	/* By number of a system call: what a thread waits for that sleeps in it (enum call). */
	u8 calls[CALLS];
	/* By number of a system call: where the bytes are that it moves (enum move). */
	u8 moves[CALLS];
	/* Told from whatever else may lie there by chance: added to an event's place, it is its stamp. */
	u64 secret;
	/* Of a CPU's second lane: a power of two. */
	u32 overflow_bytes;
	/* Most bytes to copy of one read or write. */
	u32 capture;
	/* The number of sched_yield. */
	s32 yield_call;
	/* Whether calls of a TLS library are probed. */
	u32 tls;
	/* From a CPU's run queue to what the hypervisor writes of that CPU (struct kvm_steal_time), or 0. */
	s64 steal;
};

enum event_kind {
	EVENT_READ = 1,
	EVENT_WRITE,
	EVENT_IDLE,
	EVENT_CLOSED,
	EVENT_CLASSIFIED,
	/* What a TLS library has decrypted for its caller, or encrypted. No edge. */
	EVENT_PLAIN_READ,
	EVENT_PLAIN_WRITE,
	/* A thread's long sleep has ended: how (struct waited). Its account goes on. */
	EVENT_WAITED,
	/* Another server has answered a thread (struct answered). Likewise. */
	EVENT_ANSWERED,
};
enum event_flags {
	/* The first event of its connection: its note says where it leads. */
	EVENT_NEW = 1,
	/* Events of its connection before it are lost. */
	EVENT_MISSED = 2,
	/* The connection was accepted under watch, or nothing was read or written on it before. */
	EVENT_FRESH = 4,
	/* A note lies between it and its bytes. */
	EVENT_NOTED = 8,
	/* Not by the thread itself: by io_uring on its behalf. */
	EVENT_ASYNC = 16,
	/* It did more than run: its account lies behind it. */
	EVENT_ACCOUNT = 32,
	/* A read after a write, or the first: a turn of its connection. */
	EVENT_TURN = 64,
	/* Its last bytes wait in the kernel until the other side has acknowledged those before. */
	EVENT_HELD_BACK = 128,
};

struct arrival {
	u64 at;
	/* One past its last byte, counted from the first byte of this read. */
	u32 end;
	u32 pad;
};

/*
 * A thread reached an edge: two of a request at least, and a busy server has hundreds of thousands of these a second.
 * So it is a cache line, and what few have to say lies behind it: first what its account holds besides running, then
 * its note, then the bytes.
 */
struct event {
	/* Its place in its lane, and the lanes' secret: written last, so that it is whole when this is right. */
	u64 stamp;
	u64 at;
	u64 socket;
	/*
	 * Of its account since the thread's previous event. Of a classification: the value that the function returned.
	 * Of the end of a connection: the bytes that were read of it. Of plain text: as much of its connection was read
	 * up to and with this event.
	 */
	u64 on_cpu;
	u32 pid;
	u32 tid;
	/* Bytes that the call moved, and how many of them are here. */
	u32 length;
	u16 captured;
	/* The size of all that belongs to it, in words of eight bytes. */
	u16 words;
	/* Of a read: the first lot of bytes that it took (struct arrival). Of a classification: when the function began. */
	u64 arrived_at;
	/* Of the end of a connection: its turns. */
	u32 arrived_end;
	u8 kind;
	u8 flags;
	/* How many lots of bytes a read took: one is here, several are in the note. */
	u8 arrivals;
	u8 pad;
};

/* The account of a thread that did more than run. */
struct account {
	/* Since the thread's previous event. */
	u64 parts[PARTS];
	u64 preempted_ns;
	u32 preemptions;
	/* How long other processes ran while it waited for a CPU, in microseconds. */
	u32 contended_us;
	/* When the thread was last woken since its previous event, by whom ever, or 0; and its parts until then. */
	u64 woken_at;
	u64 woken_parts[PARTS];
	/* Its longest sleep, the system call that it slept in, and that call's first argument. */
	u64 sleep_ns;
	u32 sleep_call;
	s32 sleep_fd;
};

/* A fellow thread woke it: from then on its time can be for what that one handed over. */
struct wake {
	u64 at;
	/* Since its previous event. */
	u64 parts[PARTS];
};

struct note {
	/* Who ran longest while the thread waited, or 0. */
	u32 culprit;
	/* How many wakes there are. */
	u8 wakes;
	/* More lies behind it: several arrivals, or wakes. */
	u8 has_more;
	u16 family;
	u64 culprit_ns;
	char culprit_comm[16];
	u16 local_port;
	u16 peer_port;
	/* Up to and with this event: of its connection, how often it was read after it had been written to. */
	u32 turns;
	/* Likewise, the bytes that were read of it. */
	u64 read_bytes;
	u8 local[16];
	u8 peer[16];
};

/* Lies behind the notes that need it, a few of them. */
struct note_more {
	struct arrival arrived[ARRIVALS];
	struct wake woken_by_fellows[WAKES];
};

/* What ended a sleep. */
enum woken {
	WOKEN_UNKNOWN = 0,
	/* A timer, which the thread had set. */
	WOKEN_TIMER,
	/* A thread of another program, or an interrupt in its context: something arrived, mostly. */
	WOKEN_FROM_OUTSIDE,
	/* Another thread of the server, or an interrupt in its context: its system call says which. */
	WOKEN_BY_FELLOW,
};

/* Of a long sleep of a thread: behind its event. */
struct waited {
	u64 from;
	/* The first argument of the system call in which it slept: of a futex, its address. */
	u64 object;
	u8 by;
	/* It did not sleep but was stopped: by this signal, or by the freezer (0xff). */
	u8 stop;
	/* What it was doing (enum part). */
	u8 part;
	u8 pad;
	s32 call;
	/* Who ran when it was woken: if by a fellow, that is the one. */
	u32 waker_pid;
	u32 waker_tid;
	char waker_comm[16];
	/* The system call that it was in: not a number of one if an interrupt came while it ran in user space. */
	s32 waker_call;
	u32 pad2;
};

/* Of an answer that took long: behind its event. */
struct answered {
	/* When the server first wrote to this connection since it had read from it. */
	u64 from;
	u16 family;
	u16 peer_port;
	u32 pad;
	u8 peer[16];
};

_Static_assert(sizeof(struct waited) == 56, "as in wait.rs");
_Static_assert(sizeof(struct answered) == 32, "as in wait.rs");
_Static_assert(sizeof(struct event) == 64, "as in event.rs");
_Static_assert(sizeof(struct account) == 200, "as in event.rs");
_Static_assert(__builtin_offsetof(struct note, local) == 48, "as in event.rs");
_Static_assert(sizeof(struct note) == 80, "as in event.rs");
_Static_assert(sizeof(struct note_more) == 480, "as in event.rs");

/*
 * Where a lane's events begin, how long a CPU's first lane is, and what may lie behind a lane's end: an event that
 * begins before it goes on there.
 */
enum { LANE_HEAD = 4096, LANE_BYTES = 262144, LANE_SLACK = 65536 };

/* Events of one CPU. Its positions only grow; an event lies at its position modulo the lane's size. */
struct lane {
	/* By the kernel's side: up to where it is given away. */
	u64 reserved;
	u64 pad[7];
	/* By user space: up to where it was read. */
	u64 taken;
};

/* What could not be told. Each count is printed. */
struct losses {
	u64 lane_full;
	/* What the events that found their lane full would have added to the counts of their connections. */
	u64 turns;
	u64 read_bytes;
	u64 threads;
	u64 conns;
	u64 processes;
	u64 culprits;
	/* Waits that outlast the memory of who ran on a CPU. */
	u64 slices;
	/* Lots of bytes that were joined with later ones. */
	u64 arrivals;
	/* Switches and wake-ups of which nobody told. */
	u64 switches;
	/* Plain text whose connection is not known. */
	u64 plain;
};

/* All zero: those for whom there was no room. */
struct culprit_key {
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
