/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The way to user space: two lanes of memory for each CPU, which user space has mapped. No lock, no call, nothing shared
 * with other CPUs but the mark that user space leaves every few milliseconds: a kernel's ring buffer takes 110 ns for
 * what takes 10 here (2026-11-22, a virtual machine whose returns are guarded). The first lane is so small that it stays
 * in the CPU's cache: with it alone the programs took 6.2 % of a busy nginx's time, with the other alone 7.3 %
 * (sampled; 1 MiB of second-level cache). The other takes what comes while the first is full. User space puts all
 * lanes' events in order by their time. Included by watch.bpf.c alone.
 */
#ifndef PARALLAX_WATCH_LANE_H
#define PARALLAX_WATCH_LANE_H

/* What programs that interrupt one another on a CPU may take between the look whether there is room and the taking. */
enum {
	NOTE_MOST = sizeof(struct note) + sizeof(struct note_more),
	LANE_MARGIN = 4 * (sizeof(struct event) + sizeof(struct account) + NOTE_MOST + CAPTURE),
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as many as there are CPUs: set before loading */
	__uint(key_size, sizeof(u32));
	__uint(value_size, LANE_HEAD + LANE_BYTES + LANE_SLACK);
} lanes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as above, */
	__uint(key_size, sizeof(u32));
	__uint(value_size, LANE_HEAD + LANE_SLACK); /* and a lane longer */
} overflow SEC(".maps");

/* An event that is being written: nobody else writes there. */
struct place {
	struct event *event;
	u64 position;
};

static __always_inline struct place take_from(struct lane *lane, u32 lane_bytes, u32 size)
{
	struct place place = { .event = NULL };

	if (!lane || lane->reserved + size + LANE_MARGIN - lane->taken > lane_bytes)
		return place;
	place.position = __sync_fetch_and_add(&lane->reserved, (u64)size);
	place.event = (void *)lane + LANE_HEAD + (place.position & (lane_bytes - 1));
	place.event->words = size / 8;
	return place;
}

/* Takes room for an event and all that belongs to it. No event: there is none. */
static __always_inline struct place take_place(u32 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct place place;

	size = (size + 7) & ~7U;
	place = take_from(bpf_map_lookup_elem(&lanes, &cpu), LANE_BYTES, size);
	if (place.event)
		return place;
	place = take_from(bpf_map_lookup_elem(&overflow, &cpu), settings.overflow_bytes, size);
	if (!place.event)
		__sync_fetch_and_add(&losses.lane_full, 1);
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
