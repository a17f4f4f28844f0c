/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Stacks that the kernel cannot walk: out of a library by its own unwinding rules, then by frame pointers. Included by
 * profile.bpf.c alone.
 */
#ifndef PARALLAX_PROFILE_WALK_H
#define PARALLAX_PROFILE_WALK_H

#if defined(__TARGET_ARCH_x86)

/* Where a function with a frame pointer keeps its caller's. */
struct frame {
	u64 next;
	u64 back;
};

struct pt_regs___frame {
	unsigned long bp;
	unsigned long ip;
	unsigned long sp;
} __attribute__((preserve_access_index));

enum {
	/* From a frame to the next, at most. */
	FAR = 1 << 20,
	/* From a saved frame pointer to its frame, at most. */
	NEAR = 1 << 14,
};

/* Reads the frame at `at`, above `below`. */
static __always_inline bool read_frame(struct frame *frame, u64 at, u64 below, u64 reach)
{
	if (at < below || at - below > reach || at & 7)
		return false;
	if (bpf_probe_read_user(frame, sizeof(*frame), (void *)at))
		return false;
	return frame->back >= 65536 && frame->back >> 47 == 0;
}

/* Of what may be a frame by chance: it does not lead back to the stack. Code of a run time may lie as near. */
static __always_inline bool leads_away(struct frame *frame, u64 at)
{
	return frame->back - at + FAR > 9 * FAR;
}

/*
 * The functions that are not `static` are checked by the kernel one at a time: their loops within each other would
 * be more than it looks at.
 */

/* The last rule that begins at or before `at`. */
__noinline u64 rule_of(u32 first, u32 count, u32 at)
{
	u32 low = 0, high = count, n;
	union {
		struct rule rule;
		u64 raw;
	} found = {};

	for (n = 0; n < 18 && low < high; n++) {
		u32 middle = low + (high - low) / 2, place = first + middle;
		struct rule *rule = bpf_map_lookup_elem(&rules, &place);

		if (!rule)
			break;
		if (rule->at > at) {
			high = middle;
		} else {
			found.rule = *rule;
			low = middle + 1;
		}
	}
	return found.raw;
}

static __always_inline struct library *library_of(struct walk *walk)
{
	struct libraries *known = bpf_map_lookup_elem(&libraries, &walk->tgid);
	u32 n;

	for (n = 0; known && n < LIBRARIES; n++)
		if (walk->ip >= known->of[n].start && walk->ip < known->of[n].end)
			return &known->of[n];
	return NULL;
}

static __always_inline void push(struct walk *walk, u64 ip)
{
	u32 depth = walk->depth;

	if (depth < FRAMES) {
		walk->stack.frames[depth] = ip;
		walk->depth = depth + 1;
	}
}

enum { OUTSIDE = 0, STEPPED, ENDS };

/* From a function of a library to its caller, by the library's own rules. */
__noinline int step(struct walk *walk)
{
	struct library *library;
	u64 at, top, back, saved;
	union {
		u64 raw;
		struct rule rule;
	} found;

	if (!walk)
		return ENDS;
	library = library_of(walk);
	if (!library)
		return OUTSIDE;
	/* Where a call returns to may be past the end of the function. */
	at = walk->ip - library->bias - (walk->depth > 1);
	found.raw = rule_of(library->first, library->count, at);
	if (found.rule.base == BASE_UNKNOWN)
		return ENDS;
	top = (found.rule.base == BASE_STACK ? walk->sp : walk->bp) + 8 * found.rule.words;
	if (top <= walk->sp || bpf_probe_read_user(&back, sizeof(back), (void *)(top - 8)) || back < 65536)
		return ENDS;
	if (found.rule.saved) {
		if (bpf_probe_read_user(&saved, sizeof(saved), (void *)(top - 8 * found.rule.saved)))
			return ENDS;
		walk->bp = saved;
	}
	walk->sp = top;
	walk->ip = back;
	push(walk, back);
	return STEPPED;
}

/* The place of a saved frame pointer that leads on, near the end of the stack; or 0. */
__noinline u64 look_through(struct walk *walk)
{
	struct frame frame, next;
	u32 n;

	if (!walk || bpf_probe_read_user(walk->look, sizeof(walk->look), (void *)walk->sp))
		return 0;
	for (n = 0; n < LOOK; n++) {
		u64 saved = walk->look[n];

		/* Compiled C leaves it so; what else lies there mostly does not. */
		if (saved & 15 || !read_frame(&frame, saved, walk->sp + 8 * n + 16, NEAR) ||
		    !leads_away(&frame, saved))
			continue;
		/* A frame by chance is not likely to lead to another one. */
		if (frame.next > 1 && !read_frame(&next, frame.next, saved + 16, FAR))
			continue;
		return saved;
	}
	return 0;
}

/* By frame pointers, as far as they lead. False when they lead nowhere. */
__noinline int follow(struct walk *walk)
{
	struct frame frame;
	u64 at, below;
	u32 n;

	if (!walk)
		return 0;
	at = walk->bp;
	below = walk->sp;
	for (n = 0; n < FRAMES; n++) {
		if (!read_frame(&frame, at, below, FAR))
			break;
		push(walk, frame.back);
		below = at + 16;
		at = frame.next;
	}
	return n > 0;
}

/* Gives the stack a place among those that were walked here, or 0. */
__noinline s64 keep(struct walk *walk, s64 guessed)
{
	u64 hash = 0xcbf29ce484222325ULL;
	s64 key;
	u32 n;

	if (!walk)
		return 0;
	for (n = 0; n < FRAMES; n++) {
		if (n >= walk->depth)
			walk->stack.frames[n] = 0;
		hash = (hash ^ walk->stack.frames[n]) * 0x100000001b3ULL;
		hash ^= hash >> 29;
	}
	key = (s64)(hash & (GUESSED - 1)) | WALKED | guessed;
	if (bpf_map_lookup_elem(&walked_stacks, &key))
		return key;
	return bpf_map_update_elem(&walked_stacks, &key, &walk->stack, BPF_ANY) ? 0 : key;
}

/*
 * The stack of a thread that is in a function which uses the frame pointer's register for something else. The C
 * library does, in its waits above all: its own rules lead to its caller, and frame pointers on from there. Where
 * the caller has none either, it has saved that of the last one which does, near the end of the stack. 0 when the
 * kernel's own walk will do, or nothing better is found.
 */
static __always_inline s64 walk_of(struct task_struct *task)
{
	struct pt_regs___frame *regs = (void *)bpf_task_pt_regs(task);
	struct frame frame;
	struct walk *walk;
	int went = STEPPED;
	u32 zero = 0, n;

	if (task->flags & PF_KTHREAD)
		return 0;
	walk = bpf_map_lookup_elem(&walks, &zero);
	if (!walk)
		return 0;
	walk->ip = BPF_CORE_READ(regs, ip);
	walk->sp = BPF_CORE_READ(regs, sp);
	walk->bp = BPF_CORE_READ(regs, bp);
	walk->tgid = task->tgid;
	walk->depth = 0;
	push(walk, walk->ip);
	for (n = 0; n < STEPS && went == STEPPED; n++)
		went = step(walk);
	if (walk->depth > 1 && (went == ENDS || follow(walk)))
		return keep(walk, 0);
	if (walk->depth == 1 && read_frame(&frame, walk->bp, walk->sp, FAR))
		return 0;
	walk->bp = look_through(walk);
	if (follow(walk))
		return keep(walk, GUESSED);
	return walk->depth > 1 ? keep(walk, 0) : 0;
}

#else

/* Every function that calls another keeps the frame pointer there. */
static __always_inline s64 walk_of(struct task_struct *task)
{
	return 0;
}

#endif

#endif
