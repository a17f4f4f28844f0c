package dev.parallax.agent.hooks;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * What a hook keeps for each pool that it has seen: made with the first thing that the pool does. Pools are few, and looked
 * for by each borrower: the list is replaced as a whole.
 */
final class PerPool<T> {
    /** Beyond, pools that are gone are forgotten; before, what they recorded is still told. */
    private static final int POOLS_MAX = 64;

    private final Function<Object, T> maker;
    private volatile List<Entry<T>> entries = List.of();

    private record Entry<T>(WeakReference<Object> pool, T kept) {}

    /** @param maker of what is kept; must not hold the pool that it is given */
    PerPool(Function<Object, T> maker) {
        this.maker = maker;
    }

    T of(Object pool) {
        List<Entry<T>> now = entries;
        for (int i = 0; i < now.size(); i++) {
            if (now.get(i).pool.refersTo(pool)) {
                return now.get(i).kept;
            }
        }
        return add(pool);
    }

    private synchronized T add(Object pool) {
        List<Entry<T>> more = new ArrayList<>();
        for (Entry<T> entry : entries) {
            if (entry.pool.refersTo(pool)) {
                return entry.kept;
            }
            more.add(entry);
        }
        if (more.size() >= POOLS_MAX) {
            more.removeIf(entry -> entry.pool.refersTo(null));
        }
        T made = maker.apply(pool);
        more.add(new Entry<>(new WeakReference<>(pool), made));
        entries = List.copyOf(more);
        return made;
    }

    List<T> all() {
        return entries.stream().map(Entry::kept).toList();
    }
}
