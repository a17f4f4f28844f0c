/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Plain text of TLS connections: what OpenSSL's SSL_read and SSL_write move for their callers. It says what a request
 * is; when it came and went, the socket says. Which connection a call belongs to is seen from the socket that is read
 * or written within it; as long as the library has a record in its memory, from an earlier call for the same SSL.
 * Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_TLS_H
#define PARALLAX_WATCH_TLS_H

/* What a thread has called and not returned from. */
struct tls_call {
	/* 0: nothing. */
	u64 ssl;
	u64 buffer;
	/* Where the number of bytes is returned, or 0: it is the result. */
	u64 length_at;
	/* A socket that was read or written since, or 0: none of the server's connections. */
	u64 socket;
	u8 kind;
	u8 touched;
};

/* It moves nothing for its caller. */
enum { CALL_HANDSHAKE = 0 };

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tls_call);
} tls_calls SEC(".maps");

struct tls_key {
	u64 ssl;
	u32 tgid;
	u32 pad;
};

struct tls_conn {
	/* 0: none of the server's connections. */
	u64 socket;
	u64 read_bytes;
	/* As of struct conn. */
	u8 whole;
	u8 missed;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct tls_key);
	__type(value, struct tls_conn);
} tls_conns SEC(".maps");

/* Within a call of the library, this thread moves bytes of a socket. */
static __always_inline void touch(struct sock *sk)
{
	struct tls_call *call = bpf_task_storage_get(&tls_calls, bpf_get_current_task_btf(), 0, 0);
	struct conn *conn;

	if (!call || !call->ssl)
		return;
	conn = conn_of(sk);
	call->socket = conn ? conn->cookie : 0;
	call->touched = 1;
}

static __always_inline int enter(u64 ssl, u64 buffer, u64 length_at, u8 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct tls_call *call;

	if (!is_watched(task->tgid))
		return 0;
	call = bpf_task_storage_get(&tls_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		__sync_fetch_and_add(&losses.plain, 1);
		return 0;
	}
	call->ssl = ssl;
	call->buffer = buffer;
	call->length_at = length_at;
	call->socket = 0;
	call->kind = kind;
	call->touched = 0;
	return 0;
}

/* The connection of a call that returns. */
static __always_inline struct tls_conn *conn_of_call(struct tls_call *call, struct task_struct *task)
{
	struct tls_key key = { .ssl = call->ssl, .tgid = task->tgid };
	struct tls_conn *known = bpf_map_lookup_elem(&tls_conns, &key);
	struct tls_conn conn = { .socket = call->socket };

	/* Memory is used again: another connection can have an SSL of the same address. */
	if (call->touched && (!known || known->socket != call->socket)) {
		bpf_map_update_elem(&tls_conns, &key, &conn, BPF_ANY);
		known = bpf_map_lookup_elem(&tls_conns, &key);
	}
	return known;
}

static __always_inline void tell_plain(struct tls_call *call, struct task_struct *task, struct tls_conn *conn,
				       u32 length)
{
	u32 most = conn->whole || !conn->read_bytes ? CAPTURE : settings.capture;
	struct event *event;
	struct place place;
	u8 *bytes;

	if (call->kind == EVENT_PLAIN_READ)
		conn->read_bytes += length;
	if (most > length)
		most = length;
	if (most > CAPTURE)
		most = CAPTURE;
	place = take_place(sizeof(struct event) + most);
	event = place.event;
	if (!event) {
		conn->missed = 1;
		return;
	}
	event->at = bpf_ktime_get_ns();
	event->socket = conn->socket;
	event->on_cpu = conn->read_bytes;
	event->pid = task->tgid;
	event->tid = task->pid;
	event->length = length;
	event->kind = call->kind;
	event->flags = conn->missed ? EVENT_MISSED : 0;
	event->arrivals = 0;
	conn->missed = 0;
	bytes = (u8 *)(event + 1);
	event->captured = bpf_probe_read_user(bytes, most & (2 * CAPTURE - 1), (void *)call->buffer) ? 0 : most;
	if (call->kind == EVENT_PLAIN_READ && event->captured && must_be_whole(bytes))
		conn->whole = 1;
	give(&place);
}

SEC("uprobe")
int BPF_KPROBE(on_tls_read, u64 ssl, u64 buffer)
{
	return enter(ssl, buffer, 0, EVENT_PLAIN_READ);
}

SEC("uprobe")
int BPF_KPROBE(on_tls_read_ex, u64 ssl, u64 buffer, u64 most, u64 length_at)
{
	return enter(ssl, buffer, length_at, EVENT_PLAIN_READ);
}

SEC("uprobe")
int BPF_KPROBE(on_tls_write, u64 ssl, u64 buffer)
{
	return enter(ssl, buffer, 0, EVENT_PLAIN_WRITE);
}

SEC("uprobe")
int BPF_KPROBE(on_tls_write_ex, u64 ssl, u64 buffer, u64 most, u64 length_at)
{
	return enter(ssl, buffer, length_at, EVENT_PLAIN_WRITE);
}

/* Where a library reads ahead, the first request is read within the handshake. */
SEC("uprobe")
int BPF_KPROBE(on_tls_handshake, u64 ssl)
{
	return enter(ssl, 0, 0, CALL_HANDSHAKE);
}

/* Of them all. */
SEC("uretprobe")
int BPF_KRETPROBE(on_tls_return, int result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct tls_call *call = bpf_task_storage_get(&tls_calls, task, 0, 0);
	struct tls_conn *conn;
	u64 length = result;

	if (!call || !call->ssl)
		return 0;
	conn = conn_of_call(call, task);
	call->ssl = 0;
	if (result <= 0)
		return 0;
	if (!conn) {
		__sync_fetch_and_add(&losses.plain, 1);
		return 0;
	}
	if (call->length_at && bpf_probe_read_user(&length, sizeof(length), (void *)call->length_at))
		return 0;
	if (call->kind == CALL_HANDSHAKE) {
		/* From here on there is plain text: what was encrypted before is no request. */
		call->kind = EVENT_PLAIN_READ;
		length = 0;
	}
	if (!conn->socket || length > 0x7fffffff)
		return 0;
	tell_plain(call, task, conn, length);
	return 0;
}

#endif
