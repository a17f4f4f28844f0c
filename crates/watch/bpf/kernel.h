/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The few kernel types that the programs here touch, with the few fields they read. Offsets are taken from the
 * running kernel's BTF when a program is loaded, so the order and the gaps here mean nothing.
 */
#ifndef PARALLAX_KERNEL_H
#define PARALLAX_KERNEL_H

#include <stdbool.h>

/* Tells libbpf's headers that kernel types are here already. */
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

/* uapi/linux/bpf.h: only what is used. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_F_NO_PREALLOC = 1U << 0, BPF_F_MMAPABLE = 1U << 10 };
enum { BPF_RB_NO_WAKEUP = 1ULL << 0, BPF_RB_FORCE_WAKEUP = 1ULL << 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1ULL << 0 };
enum { BPF_F_USER_STACK = 1ULL << 8 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_queued;
};

struct rq {
	u64 clock;
	u64 prev_irq_time;
	u64 prev_steal_time_rq;
};

struct cfs_rq {
	struct rq *rq;
	u64 throttled_clock_self_time;
	int throttle_count;
};

struct sched_entity {
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct inode {
	u16 i_mode;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	int pid;
	int tgid;
	char comm[16];
	unsigned int __state;
	unsigned int flags;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1;
	unsigned long jobctl;
	bool throttled;
	struct sched_entity se;
	struct sched_info sched_info;
	struct files_struct *files;
	struct task_struct *group_leader;
};

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	u16 skc_family;
	volatile u8 skc_state;
	u16 skc_num;
	__be16 skc_dport;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	struct socket *sk_socket;
};

struct file;

struct socket {
	struct file *file;
};

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_una;
	u64 bytes_received;
	u64 bytes_acked;
	u32 write_seq;
	u32 snd_nxt;
	u32 mss_cache;
	u32 packets_out;
	u8 nonagle : 4;
};

struct unix_address;

struct unix_sock {
	struct unix_address *addr;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long orig_ax;
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long cx;
	unsigned long ax;
};
#define CALL_NUMBER(regs) ((long)(regs)->orig_ax)
#define CALL_ARG1(regs) ((regs)->di)
#define CALL_ARG2(regs) ((regs)->si)
#define CALL_ARG3(regs) ((regs)->dx)
#define CALL_RESULT(regs) ((regs)->ax)
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
};
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	int syscallno;
};
#define CALL_NUMBER(regs) ((long)(regs)->syscallno)
#define CALL_ARG1(regs) ((regs)->orig_x0)
#define CALL_ARG2(regs) ((regs)->regs[1])
#define CALL_ARG3(regs) ((regs)->regs[2])
#define CALL_RESULT(regs) ((regs)->regs[0])
#else
#error "say which machine this is for: -D__TARGET_ARCH_x86 or -D__TARGET_ARCH_arm64"
#endif

#pragma clang attribute pop


enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10 };
enum { TCP_ESTABLISHED = 1, TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum { IPPROTO_TCP = 6 };
enum { MSG_PEEK = 2 };
enum { PF_IO_WORKER = 0x00000010, PF_KTHREAD = 0x00200000 };
enum { S_IFMT = 0170000, S_IFSOCK = 0140000, S_IFREG = 0100000, S_IFBLK = 0060000 };

#endif
