/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The way to user space: a lane of memory for each CPU, which user space has mapped. No lock, no call, nothing shared
 * with other CPUs but the mark that user space leaves every few milliseconds: a kernel's ring buffer takes 110 ns for
 * what takes 10 here (2026-11-22, a virtual machine whose returns are guarded). User space puts the lanes' events in
 * order by their time. Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_LANE_H
#define PARALLAX_WATCH_LANE_H

/* What programs that interrupt one another on a CPU may take between the look whether there is room and the taking. */
enum { LANE_MARGIN = 4 * (sizeof(struct event) + sizeof(struct account) + sizeof(struct note) + CAPTURE) };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as many as there are CPUs, */
	__uint(key_size, sizeof(u32));
	__uint(value_size, LANE_HEAD + LANE_SLACK); /* and a lane longer: set before loading */
} lanes SEC(".maps");

/* An event that is being written: nobody else writes there. */
struct place {
	struct event *event;
	u64 position;
};

/* Takes room for an event and all that belongs to it. No event: there is none. */
static __always_inline struct place take_place(u32 size)
{
	struct place place = { .event = NULL };
	u32 cpu = bpf_get_smp_processor_id();
	struct lane *lane = bpf_map_lookup_elem(&lanes, &cpu);

	size = (size + 7) & ~7U;
	if (!lane || lane->reserved + size + LANE_MARGIN - lane->taken > settings.lane_bytes) {
		__sync_fetch_and_add(&losses.lane_full, 1);
		return place;
	}
	place.position = __sync_fetch_and_add(&lane->reserved, (u64)size);
	place.event = (void *)lane + LANE_HEAD + (place.position & (settings.lane_bytes - 1));
	place.event->words = size / 8;
	return place;
}

/* From here on user space may read it. */
static __always_inline void give(struct place *place)
{
	u64 stamp = place->position + settings.secret;

#if defined(__TARGET_ARCH_x86)
	/* This machine keeps writes in order; so must the compiler. */
	__asm__ volatile("" ::: "memory");
	*(volatile u64 *)&place->event->stamp = stamp;
#else
	__sync_lock_test_and_set(&place->event->stamp, stamp);
#endif
}

#endif
