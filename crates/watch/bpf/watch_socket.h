/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The server's connections: which they are, when their bytes came, and the bytes that a call moved. Included by
 * watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_SOCKET_H
#define PARALLAX_WATCH_SOCKET_H

struct waiting {
	u32 end;
	u32 pad;
	u64 at;
};

struct conn {
	u64 cookie;
	/* Of `waiting`: positions that only grow. */
	u32 head;
	u32 tail;
	u8 told;
	/* Everything it reads and writes is copied. */
	u8 whole;
	/* An event of it found its lane full. */
	u8 missed;
	/* It was accepted under watch. */
	u8 fresh;
	/* It was written to last, or nothing was read of it yet. */
	u8 responded;
	/* Its latest event began a turn. */
	u8 turned;
	u16 family;
	/* So far: how often it was read after it had been written to, and the bytes that were read. */
	u32 turns;
	u64 read_bytes;
	/* The window that this is of. */
	u32 window;
	u32 pad;
	/* Bytes that arrived and were not read yet: where each lot ends in the stream, and when it came. */
	struct waiting waiting[ARRIVALS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

static __always_inline bool is_internet(struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return family == AF_INET || family == AF_INET6;
}

/* Whether this is a TCP connection to a port of the server. */
static __always_inline bool is_to_our_port(struct sock *sk)
{
	return ports[sk->__sk_common.skc_num] && sk->__sk_common.skc_state != TCP_LISTEN;
}

/* Whether this is a connection that the server accepted: one that connects has no address. */
static __always_inline bool is_accepted_unix(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX && BPF_CORE_READ((struct unix_sock *)sk, addr) != NULL;
}

/*
 * The sequence numbers of a TCP connection; NULL for other sockets. A cast that costs nothing, where the helper costs
 * a call: on a processor whose returns are guarded that is 10 ns.
 */
static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	if (!is_internet(sk) || sk->sk_protocol != IPPROTO_TCP)
		return NULL;
	return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
}

/* Whether these bytes, which were just read or written, are the first ones of a TCP connection. */
static __always_inline bool is_beginning(struct sock *sk, u32 length, bool is_read)
{
	struct tcp_sock *tcp = tcp_of(sk);
	u64 read, written;

	if (!tcp)
		return false;
	read = tcp->bytes_received - (u32)(tcp->rcv_nxt - tcp->copied_seq);
	written = tcp->bytes_acked + (u32)(tcp->write_seq - tcp->snd_una);
	return read == (is_read ? length : 0) && written == (is_read ? 0 : length);
}

/* Whether a Unix socket was made under watch; of TCP the change of state says it. */
static __always_inline bool is_fresh(struct sock *sk)
{
	u64 inode;

	if (sk->__sk_common.skc_family != AF_UNIX || !knows_old)
		return false;
	inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	return inode && !bpf_map_lookup_elem(&old_sockets, &inode);
}

/* What is known of a connection. What was known in another window is forgotten, except what a client sends. */
static __always_inline struct conn *known_conn(struct sock *sk)
{
	struct conn *conn = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (!conn || conn->window == window)
		return conn;
	conn->window = window;
	conn->head = conn->tail = 0;
	conn->told = conn->missed = conn->fresh = conn->turned = 0;
	conn->responded = 1;
	return conn;
}

static __always_inline struct conn *conn_of(struct sock *sk)
{
	struct conn *conn;
	bool is_tcp = is_internet(sk);

	if (is_tcp && !is_to_our_port(sk))
		return NULL;
	conn = known_conn(sk);
	if (conn || !(is_tcp || is_accepted_unix(sk)))
		return conn;
	conn = bpf_sk_storage_get(&conns, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!conn) {
		__sync_fetch_and_add(&losses.conns, 1);
		return NULL;
	}
	conn->window = window;
	conn->cookie = bpf_get_socket_cookie(sk);
	conn->family = sk->__sk_common.skc_family;
	conn->fresh = is_fresh(sk);
	conn->responded = 1;
	return conn;
}

/* Where the reader of a TCP connection stands, and how far its bytes have come. */
static __always_inline u32 read_up_to(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);

	return tcp ? tcp->copied_seq : 0;
}

/* Moves what was read from the connection's lots to the event: the first, and to `more`, if that is there, all. */
static __always_inline void take_arrivals(struct conn *conn, struct sock *sk, struct event *event,
					  struct note_more *more, u32 length)
{
	bool has_bytes = conn->family != AF_UNIX;
	u32 read_to = has_bytes ? read_up_to(sk) : 0;
	u32 began = read_to - length;
	u32 n = 0, i;

	for (i = 0; i < ARRIVALS; i++) {
		struct arrival arrival = {};
		struct waiting *lot;

		if (conn->head == conn->tail)
			break;
		lot = &conn->waiting[conn->head & (ARRIVALS - 1)];
		arrival.at = lot->at;
		arrival.end = has_bytes ? lot->end - began : length;
		/* A lot that ends before this read began was read before the watch did, or by another way. */
		if (!has_bytes || (s32)(lot->end - began) > 0) {
			if (n == 0) {
				event->arrived_at = arrival.at;
				event->arrived_end = arrival.end;
			}
			if (more)
				more->arrived[n & (ARRIVALS - 1)] = arrival;
			n++;
		}
		if (has_bytes && (s32)(lot->end - read_to) > 0)
			break;
		conn->head++;
		/* Those that came since there was no room for more than one go with the next read. */
		if (!more)
			break;
	}
	event->arrivals = n;
}

static __always_inline u32 copy_vectors(u8 *bytes, u64 vectors, u64 count, u32 most)
{
	struct user_vector parts[VECTORS] = {};
	u32 copied = 0, i;

	if (count > VECTORS)
		count = VECTORS;
	/* All at once: each look at the caller's memory is a call. */
	if (!count || bpf_probe_read_user(parts, count * sizeof(parts[0]), (void *)vectors))
		return 0;
	for (i = 0; i < VECTORS && i < count && copied < most; i++) {
		u64 length = parts[i].length;
		u32 part = length > most - copied ? most - copied : length;

		if (copied >= CAPTURE || part > CAPTURE)
			break;
		if (bpf_probe_read_user(&bytes[copied & (CAPTURE - 1)], part & (2 * CAPTURE - 1),
					(void *)parts[i].base))
			break;
		copied += part;
	}
	return copied;
}

/* Copies at most so much of what the current system call moved, as far as it lies in memory that the caller named. */
static __always_inline u32 copy_moved(u8 *bytes, struct pt_regs *regs, u32 most)
{
	long call = CALL_NUMBER(regs);
	struct user_message message;

	if (call < 0 || call >= CALLS)
		return 0;
	switch (settings.moves[call & (CALLS - 1)]) {
	case MOVE_BUFFER:
		if (bpf_probe_read_user(bytes, most & (2 * CAPTURE - 1), (void *)CALL_ARG2(regs)))
			return 0;
		return most;
	case MOVE_VECTORS:
		return copy_vectors(bytes, CALL_ARG2(regs), CALL_ARG3(regs), most);
	case MOVE_MESSAGE:
		if (bpf_probe_read_user(&message, sizeof(message), (void *)CALL_ARG2(regs)))
			return 0;
		return copy_vectors(bytes, message.vectors, message.count, most);
	}
	return 0;
}

/* Where a connection leads. */
static __always_inline void fill_ends(struct note *note, struct conn *conn, struct sock *sk)
{
	note->family = conn->family;
	note->local_port = sk->__sk_common.skc_num;
	note->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (conn->family == AF_INET) {
		BPF_CORE_READ_INTO(&note->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO(&note->peer, sk, __sk_common.skc_daddr);
	} else if (conn->family == AF_INET6) {
		BPF_CORE_READ_INTO(&note->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&note->peer, sk, __sk_common.skc_v6_daddr);
	}
}

#endif
