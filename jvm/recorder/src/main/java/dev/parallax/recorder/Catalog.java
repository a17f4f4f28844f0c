package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The named series of an application, which bridges export to Prometheus, OpenTelemetry or Micrometer.
 *
 * <pre>{@code
 * Catalog catalog = new Catalog();
 * LabelledRecorder requests = catalog.durations(
 *         Description.of("http.server.request.duration", "From the request's head to the response's end.")
 *                 .with("server.address", "shop"),
 *         1000, "http.request.method", "http.response.status_code");
 * requests.row("GET", "200").record(startNs, endNs);
 * }</pre>
 *
 * <p>Labels bound in the description are fixed; labels known only after an event make one row per combination. Asking
 * again for the same name and bound labels returns the same series. A name has one kind and one unit: asking for it
 * with others throws an {@link IllegalArgumentException}.
 *
 * <p>Existing recorders, for example of an HTTP client or a pool, can be registered too. Several of them with the same
 * labels are added up; of gauges, which cannot be added up, the first is used.
 *
 * <p>Totals of a series never decrease while it is registered. When one of several registrations with the same labels
 * is closed, its last values remain part of the total until the last of them is closed. A pool that replaces another
 * should therefore be registered before the old one is closed. This holds for up to a thousand rows of event labels;
 * rows of closed registrations beyond that are reported as {@code _OTHER}, including what they had reported under their
 * own labels.
 *
 * <p>Safe for any number of threads. Cost: none for recording, which does not touch the catalog. {@link #read()} is
 * meant for scraping; it stops no writer and loses nothing.
 */
public final class Catalog {
    /** Guards the groups. Held briefly, never while a series is read. */
    private final Object lock = new Object();

    private final Map<String, Group> groups = new LinkedHashMap<>();

    /** An empty catalog. */
    public Catalog() {}

    /** All series with one name. */
    private static final class Group {
        private final Description first;
        private final Kind kind;
        private final long sinceEpochMs = System.currentTimeMillis();
        private final Map<Map<String, String>, List<Source>> sources = new LinkedHashMap<>();
        private final Map<Map<String, String>, ClosedTotals> closed = new LinkedHashMap<>();

        Group(Description first, Kind kind) {
            this.first = first;
            this.kind = kind;
        }

        List<Source> all() {
            List<Source> all = new ArrayList<>();
            sources.values().forEach(all::addAll);
            all.addAll(closed.values());
            return all;
        }

        void keep(Map<String, String> bound, List<Family.Point> last) {
            closed.put(bound, closed.getOrDefault(bound, ClosedTotals.NONE).plus(last, kind, bound));
        }

        boolean forget(Map<String, String> bound) {
            closed.remove(bound);
            return sources.remove(bound) != null;
        }
    }

    /**
     * Returns a recorder of durations whose labels are all bound.
     *
     * @param description the unit must be {@code s}
     * @return the same recorder for the same name and labels
     */
    public Recorder durations(Description description) {
        return series(Kind.DURATIONS, description, Recorder.class, List.of(), Recorder::new, Source::of);
    }

    /**
     * Returns a recorder of durations with labels known only after the event.
     *
     * @param description the unit must be {@code s}
     * @param limit maximum number of label combinations
     * @param labels names of these labels
     * @return the same recorder for the same name and labels
     */
    public LabelledRecorder durations(Description description, int limit, String... labels) {
        Supplier<LabelledRecorder> maker = () -> new LabelledRecorder(limit, labels);
        return series(Kind.DURATIONS, description, LabelledRecorder.class, List.of(labels), maker, Catalog::source);
    }

    /**
     * Registers an existing recorder of durations.
     *
     * @param description the unit must be {@code s}
     * @param recorder to read
     * @return closing it removes the recorder from the catalog
     */
    public Registration durations(Description description, Recorder recorder) {
        return show(Kind.DURATIONS, description, Source.of(description.labels(), recorder));
    }

    /**
     * Registers an existing recorder of durations with labels known only after the event.
     *
     * @param description the unit must be {@code s}
     * @param recorder to read
     * @return closing it removes the recorder from the catalog
     */
    public Registration durations(Description description, LabelledRecorder recorder) {
        return show(Kind.DURATIONS, description, source(description.labels(), recorder));
    }

    /**
     * Returns a recorder of amounts whose labels are all bound.
     *
     * @param description with the unit of the amounts
     * @return the same recorder for the same name and labels
     */
    public AmountRecorder amounts(Description description) {
        return series(Kind.AMOUNTS, description, AmountRecorder.class, List.of(), AmountRecorder::new, Source::of);
    }

    /**
     * Returns recorders of amounts with labels known only after the event.
     *
     * @param description with the unit of the amounts
     * @param limit maximum number of label combinations
     * @param labels names of these labels
     * @return the same rows for the same name and labels
     */
    public Rows<AmountRecorder> amounts(Description description, int limit, String... labels) {
        return rows(Kind.AMOUNTS, description, limit, labels, AmountRecorder::new, AmountRecorder::total);
    }

    /**
     * Registers an existing recorder of amounts.
     *
     * @param description with the unit of the amounts
     * @param recorder to read
     * @return closing it removes the recorder from the catalog
     */
    public Registration amounts(Description description, AmountRecorder recorder) {
        return show(Kind.AMOUNTS, description, Source.of(description.labels(), recorder));
    }

    /**
     * Returns a counter whose labels are all bound.
     *
     * @param description with the unit
     * @return the same counter for the same name and labels
     */
    public Counter counter(Description description) {
        return series(Kind.COUNTER, description, Counter.class, List.of(), Counter::new, Source::of);
    }

    /**
     * Returns counters with labels known only after the event.
     *
     * @param description with the unit
     * @param limit maximum number of label combinations
     * @param labels names of these labels
     * @return the same rows for the same name and labels
     */
    public Rows<Counter> counters(Description description, int limit, String... labels) {
        return rows(Kind.COUNTER, description, limit, labels, Counter::new, Counter::total);
    }

    /**
     * Registers a total that is counted elsewhere and never decreases.
     *
     * @param description with the unit
     * @param count called per reading and on close, without a lock held; if it throws or returns NaN, the series is
     *     absent
     * @return closing it removes the total from the catalog
     */
    public Registration counter(Description description, DoubleSupplier count) {
        return show(Kind.COUNTER, description, Source.of(description.labels(), count));
    }

    /**
     * Registers the number of recorded durations as a counter, so that events that are timed need no counter of their
     * own.
     *
     * <p>The count is that of {@link Recorder#total()}: a record of a thread that lost its CPU in the middle of it
     * appears at the next reading, see {@link Recorder#deferredReads()}.
     *
     * @param description with the unit
     * @param recorder whose records are counted, including unusable ones
     * @return closing it removes the counter from the catalog
     */
    public Registration counter(Description description, Recorder recorder) {
        return show(Kind.COUNTER, description, Source.countOf(description.labels(), recorder));
    }

    /**
     * Returns an up-down counter whose labels are all bound.
     *
     * @param description with the unit
     * @return the same counter for the same name and labels
     */
    public UpDownCounter upDownCounter(Description description) {
        return series(Kind.UP_DOWN, description, UpDownCounter.class, List.of(), UpDownCounter::new, Source::of);
    }

    /**
     * Returns up-down counters with labels known only at the event.
     *
     * @param description with the unit
     * @param limit maximum number of label combinations
     * @param labels names of these labels
     * @return the same rows for the same name and labels
     */
    public Rows<UpDownCounter> upDownCounters(Description description, int limit, String... labels) {
        return rows(Kind.UP_DOWN, description, limit, labels, UpDownCounter::new, UpDownCounter::current);
    }

    /**
     * Registers a current number that is counted elsewhere and can be added up.
     *
     * @param description with the unit
     * @param count called per reading, without a lock held; if it throws or returns NaN, the series is absent
     * @return closing it removes the number from the catalog
     */
    public Registration upDownCounter(Description description, DoubleSupplier count) {
        return show(Kind.UP_DOWN, description, Source.of(description.labels(), count));
    }

    /**
     * Registers a current value that cannot be added up.
     *
     * @param description with the unit
     * @param value called per reading, without a lock held; if it throws or returns NaN, the series is absent
     * @return closing it removes the gauge from the catalog
     */
    public Registration gauge(Description description, DoubleSupplier value) {
        return show(Kind.GAUGE, description, Source.of(description.labels(), value));
    }

    /**
     * Removes the series with these labels. Recorders already handed out still work but are no longer read; asking
     * again creates new ones.
     *
     * @param name of the series
     * @param labels that were bound
     * @return whether it existed
     */
    public boolean remove(String name, Map<String, String> labels) {
        synchronized (lock) {
            Group group = groups.get(name);
            boolean isKnown = group != null && group.forget(labels);
            // A name without series may come back as another kind.
            if (isKnown && group.sources.isEmpty()) {
                groups.remove(name);
            }
            return isKnown;
        }
    }

    /**
     * Reads all series, one after another. A record made in the meantime is in this reading or in the next.
     *
     * @return one family per name, in the order in which names were first used
     */
    public List<Family> read() {
        List<Group> named;
        List<List<Source>> sources = new ArrayList<>();
        synchronized (lock) {
            named = List.copyOf(groups.values());
            for (Group group : named) {
                sources.add(group.all());
            }
        }
        List<Family> families = new ArrayList<>();
        for (int n = 0; n < named.size(); n++) {
            Group group = named.get(n);
            Points points = new Points(group.kind);
            sources.get(n).forEach(source -> source.read().forEach(points::add));
            Description first = group.first;
            families.add(new Family(
                    first.name(), first.unit(), first.help(), group.kind, group.sinceEpochMs, points.list()));
        }
        return families;
    }

    private static Source source(Map<String, String> labels, LabelledRecorder recorder) {
        return Source.of(labels, recorder, recorder.asRows(), Recorder::total);
    }

    /** Creates a source from a recorder. */
    private interface Reading<T> {
        Source of(Map<String, String> labels, T series);
    }

    private <T> Rows<T> rows(
            Kind kind,
            Description description,
            int limit,
            String[] labels,
            Supplier<T> maker,
            Function<T, Object> reading) {
        @SuppressWarnings("unchecked")
        Class<Rows<T>> type = (Class<Rows<T>>) (Class<?>) Rows.class;
        return series(
                kind,
                description,
                type,
                List.of(labels),
                () -> new Rows<>(limit, maker, labels),
                (bound, rows) -> Source.of(bound, rows, rows, reading));
    }

    private <T> T series(
            Kind kind,
            Description description,
            Class<T> type,
            List<String> eventLabels,
            Supplier<T> maker,
            Reading<T> reading) {
        for (String label : eventLabels) {
            if (description.labels().containsKey(label)) {
                throw new IllegalArgumentException(
                        description.name() + ": label " + label + " is already bound in the description; remove it from one of the two");
            }
        }
        synchronized (lock) {
            List<Source> known = known(kind, description);
            for (Source source : known) {
                if (type.isInstance(source.series) && source.eventLabels.equals(eventLabels)) {
                    return type.cast(source.series);
                }
            }
            if (!known.isEmpty() && !known.get(0).eventLabels.equals(eventLabels)) {
                throw new IllegalArgumentException(
                        description.name() + " already has the event labels " + known.get(0).eventLabels + ", not " + eventLabels
                                + "; use the same ones, or bind another label");
            }
            T made = maker.get();
            add(kind, description, reading.of(description.labels(), made));
            return made;
        }
    }

    private Registration show(Kind kind, Description description, Source source) {
        synchronized (lock) {
            if (known(kind, description).stream().noneMatch(known -> known.series == source.series)) {
                add(kind, description, source);
            }
        }
        return () -> close(kind, description, source.series);
    }

    private void close(Kind kind, Description description, Object series) {
        Source closed;
        synchronized (lock) {
            closed = shown(description).stream().filter(known -> known.series == series).findAny().orElse(null);
        }
        if (closed == null) {
            return;
        }
        List<Family.Point> last = kind.onlyGrows() ? closed.close() : List.of();
        synchronized (lock) {
            List<Source> others = shown(description);
            if (!others.contains(closed)) {
                return;
            }
            others.remove(closed);
            if (others.isEmpty()) {
                remove(description.name(), description.labels());
            } else if (!last.isEmpty()) {
                groups.get(description.name()).keep(description.labels(), last);
            }
        }
    }

    private List<Source> shown(Description description) {
        Group group = groups.get(description.name());
        return group == null ? List.of() : group.sources.getOrDefault(description.labels(), List.of());
    }

    /** Returns what is registered under this name and these labels; throws if the name is used for something else. */
    private List<Source> known(Kind kind, Description description) {
        if (kind == Kind.DURATIONS && !description.unit().equals("s")) {
            throw new IllegalArgumentException(
                    description.name() + " has the unit \"" + description.unit() + "\"; durations need \"s\"");
        }
        Group group = groups.get(description.name());
        if (group == null) {
            return List.of();
        }
        if (group.kind != kind || !group.first.unit().equals(description.unit())) {
            throw new IllegalArgumentException(
                    description.name() + " is already " + group.kind + " in \"" + group.first.unit() + "\", not " + kind
                            + " in \"" + description.unit() + "\"; use another name");
        }
        return shown(description);
    }

    private void add(Kind kind, Description description, Source source) {
        groups.computeIfAbsent(description.name(), name -> new Group(description, kind))
                .sources
                .computeIfAbsent(description.labels(), labels -> new ArrayList<>())
                .add(source);
    }
}
