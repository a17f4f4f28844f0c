package dev.parallax.agent.hooks;

import dev.parallax.agent.report.Reader;
import dev.parallax.agent.report.Series;
import dev.parallax.agent.report.Source;
import dev.parallax.recorder.Durations;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/**
 * What a hook keeps per pool, created on the first event of a pool. There are few pools and every borrow looks one up,
 * so the list is replaced as a whole.
 *
 * <p>When a pool is gone its totals are still reported, added to those of other pools with the same name, so totals
 * never decrease.
 */
final class PerPool<T extends Source> {
    /** Limit on names, for applications that keep creating pools with new ones. */
    static final int NAMES_MAX = 200;

    private final Function<Object, T> maker;
    private final Set<String> names = new HashSet<>();
    private volatile Seen<T> seen = new Seen<>(List.of(), new Gone(Map.of()));

    private record Seen<T>(List<Entry<T>> pools, Gone gone) {}

    private record Entry<T>(WeakReference<Object> pool, T kept) {}

    private record Key(Series series, String label) {}

    /** Totals of pools that are gone. Immutable once published. */
    private record Gone(Map<Key, Durations> totals) implements Reader {
        @Override
        public void durations(Series series, String label, Durations total) {
            totals.merge(new Key(series, label), total, Durations::plus);
        }

        @Override
        public void number(Series series, String label, long value) {
            // A current value; the pool is gone.
        }

        void read(Reader reader) {
            totals.forEach((key, total) -> reader.durations(key.series, key.label, total));
        }
    }

    /** @param maker creates what is kept; must not hold a reference to the pool */
    PerPool(Function<Object, T> maker) {
        this.maker = maker;
    }

    T of(Object pool) {
        List<Entry<T>> now = seen.pools;
        for (int i = 0; i < now.size(); i++) {
            if (now.get(i).pool.refersTo(pool)) {
                return now.get(i).kept;
            }
        }
        return add(pool);
    }

    private synchronized T add(Object pool) {
        List<Entry<T>> more = new ArrayList<>();
        Gone gone = new Gone(new HashMap<>(seen.gone.totals));
        for (Entry<T> entry : seen.pools) {
            if (entry.pool.refersTo(pool)) {
                return entry.kept;
            }
            if (entry.pool.refersTo(null)) {
                entry.kept.read(gone);
            } else {
                more.add(entry);
            }
        }
        T made = maker.apply(pool);
        more.add(new Entry<>(new WeakReference<>(pool), made));
        seen = new Seen<>(List.copyOf(more), gone);
        return made;
    }

    /** Returns the label for a pool of this name; called by the maker. */
    String label(String name) {
        return names.contains(name) || names.size() < NAMES_MAX && names.add(name) ? name : Series.OTHER;
    }

    /** Reads all pools, including those that are gone. */
    void read(Reader reader) {
        Seen<T> now = seen;
        now.gone.read(reader);
        now.pools.forEach(entry -> entry.kept.read(reader));
    }
}
