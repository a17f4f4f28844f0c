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
 * What a hook keeps for each pool that it has seen: made with the first thing that the pool does. Pools are few, and looked
 * for by each borrower: the list is replaced as a whole.
 *
 * <p>What a pool recorded goes on being told when it is gone, added to that of others of its name: what is told of a name
 * never shrinks.
 */
final class PerPool<T extends Source> {
    /** An application that makes pools of new names without end would have no end of them. */
    static final int NAMES_MAX = 200;

    private final Function<Object, T> maker;
    private final Set<String> names = new HashSet<>();
    private volatile Seen<T> seen = new Seen<>(List.of(), new Gone(Map.of()));

    private record Seen<T>(List<Entry<T>> pools, Gone gone) {}

    private record Entry<T>(WeakReference<Object> pool, T kept) {}

    private record Key(Series series, String label) {}

    /** What pools that are gone had recorded. Not changed once it is seen. */
    private record Gone(Map<Key, Durations> totals) implements Reader {
        @Override
        public void durations(Series series, String label, Durations total) {
            totals.merge(new Key(series, label), total, Durations::plus);
        }

        @Override
        public void number(Series series, String label, long value) {
            // Of what there is now; and it is gone.
        }

        void read(Reader reader) {
            totals.forEach((key, total) -> reader.durations(key.series, key.label, total));
        }
    }

    /** @param maker of what is kept; must not hold the pool that it is given */
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

    /** For the maker: as what to tell of a pool of that name. */
    String label(String name) {
        return names.contains(name) || names.size() < NAMES_MAX && names.add(name) ? name : Series.OTHER;
    }

    /** Of all, be they there or gone. */
    void read(Reader reader) {
        Seen<T> now = seen;
        now.gone.read(reader);
        now.pools.forEach(entry -> entry.kept.read(reader));
    }
}
