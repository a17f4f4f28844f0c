/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Programs that do nothing, where those of watch.bpf.c are: what it costs to be asked at all. For
 * bench/watch_cost.py alone.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define NOTHING_AT(tracepoint)                                                                                        \
	SEC("tp_btf/" #tracepoint)                                                                                    \
	int on_##tracepoint(void *arguments)                                                                          \
	{                                                                                                             \
		return 0;                                                                                             \
	}

NOTHING_AT(sched_switch)
NOTHING_AT(sched_waking)
NOTHING_AT(sched_wakeup)
NOTHING_AT(sched_process_fork)
NOTHING_AT(sk_data_ready)
NOTHING_AT(sock_recv_length)
NOTHING_AT(sock_send_length)
NOTHING_AT(inet_sock_set_state)
