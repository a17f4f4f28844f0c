package dev.parallax.recorder;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * An application's series by name: what a bridge to another tool shows there.
 *
 * <pre>{@code
 * Catalog catalog = new Catalog();
 * Labelled requests = catalog.durations(
 *         Description.of("http.server.request.duration", "From the request's head to the response's end.")
 *                 .with("server.address", "shop"),
 *         1000, "http.request.method", "http.response.status_code");
 * requests.row("GET", "200").record(startNs, endNs);
 * }</pre>
 *
 * <p>Some labels are bound at the start, in the description; the others are known only after the event, and make a row each.
 * The same name and bound labels a second time is the same series, for whoever asks. A name has one kind and one unit: asking
 * for it as another one is refused with an {@link IllegalArgumentException} that says so.
 *
 * <p>A series that is there already, of a client's or a pool's own, can be shown as well. Where several are shown with the
 * same labels, what they tell is added up; of gauges, which cannot be, the first is told.
 *
 * <p>As long as a series is shown, its totals only grow: what one had told that is closed stays told with what the others of
 * its labels tell, and is forgotten with the last of them. So of two that follow each other, as a pool that is made anew and
 * the one before, the later is to be shown before the earlier is closed. That holds for a thousand rows of labels known only
 * after the event: one beyond them is told as {@code _OTHER} once it is closed, of what it told under its own labels, too.
 *
 * <p>Cost: recording costs what it costs without a catalog, which is not asked. {@link #read()} is for scraping; it stops no
 * writer and loses nothing.
 */
public final class Catalog {
    /** Guards what is below. Held for moments only, and never while a series is read. */
    private final Object lock = new Object();

    private final Map<String, Group> groups = new LinkedHashMap<>();

    /** Without a series. */
    public Catalog() {}

    /** All of one name. */
    private static final class Group {
        private final Description first;
        private final Kind kind;
        private final long sinceEpochMs = System.currentTimeMillis();
        private final Map<Map<String, String>, List<Source>> sources = new LinkedHashMap<>();
        private final Map<Map<String, String>, Gone> gone = new LinkedHashMap<>();

        Group(Description first, Kind kind) {
            this.first = first;
            this.kind = kind;
        }

        List<Source> all() {
            List<Source> all = new ArrayList<>();
            sources.values().forEach(all::addAll);
            all.addAll(gone.values());
            return all;
        }

        void keep(Map<String, String> bound, List<Family.Point> last) {
            gone.put(bound, gone.getOrDefault(bound, Gone.NONE).plus(last, kind, bound));
        }

        boolean forget(Map<String, String> bound) {
            gone.remove(bound);
            return sources.remove(bound) != null;
        }
    }

    /**
     * Durations with labels that are all bound.
     *
     * @param description its unit is the second
     * @return the same for each who asks
     */
    public Recorder durations(Description description) {
        return series(Kind.DURATIONS, description, Recorder.class, List.of(), Recorder::new, Source::of);
    }

    /**
     * Durations with labels that are known only after the event.
     *
     * @param description its unit is the second
     * @param limit how many combinations there may be
     * @param labels their names
     * @return the same for each who asks
     */
    public Labelled durations(Description description, int limit, String... labels) {
        Supplier<Labelled> maker = () -> new Labelled(limit, labels);
        return series(Kind.DURATIONS, description, Labelled.class, List.of(labels), maker, Catalog::source);
    }

    /**
     * Shows durations that are there already.
     *
     * @param description its unit is the second
     * @param recorder whose they are
     * @return until when it is shown
     */
    public Registration durations(Description description, Recorder recorder) {
        return show(Kind.DURATIONS, description, Source.of(description.labels(), recorder));
    }

    /**
     * Shows durations that are there already.
     *
     * @param description its unit is the second
     * @param labelled whose they are
     * @return until when it is shown
     */
    public Registration durations(Description description, Labelled labelled) {
        return show(Kind.DURATIONS, description, source(description.labels(), labelled));
    }

    /**
     * Amounts with labels that are all bound.
     *
     * @param description with their unit
     * @return the same for each who asks
     */
    public AmountRecorder amounts(Description description) {
        return series(Kind.AMOUNTS, description, AmountRecorder.class, List.of(), AmountRecorder::new, Source::of);
    }

    /**
     * Amounts with labels that are known only after the event.
     *
     * @param description with their unit
     * @param limit how many combinations there may be
     * @param labels their names
     * @return the same for each who asks
     */
    public Rows<AmountRecorder> amounts(Description description, int limit, String... labels) {
        return rows(Kind.AMOUNTS, description, limit, labels, AmountRecorder::new, AmountRecorder::total);
    }

    /**
     * Shows amounts that are there already.
     *
     * @param description with their unit
     * @param recorder whose they are
     * @return until when it is shown
     */
    public Registration amounts(Description description, AmountRecorder recorder) {
        return show(Kind.AMOUNTS, description, Source.of(description.labels(), recorder));
    }

    /**
     * A counter with labels that are all bound.
     *
     * @param description with its unit
     * @return the same for each who asks
     */
    public Counter counter(Description description) {
        return series(Kind.COUNTER, description, Counter.class, List.of(), Counter::new, Source::of);
    }

    /**
     * Counters with labels that are known only after the event.
     *
     * @param description with their unit
     * @param limit how many combinations there may be
     * @param labels their names
     * @return the same for each who asks
     */
    public Rows<Counter> counters(Description description, int limit, String... labels) {
        return rows(Kind.COUNTER, description, limit, labels, Counter::new, Counter::total);
    }

    /**
     * Shows what only grows and is counted elsewhere.
     *
     * @param description with its unit
     * @param count is asked at each reading and when it is closed; where it throws or is no number, the series is absent
     * @return until when it is shown
     */
    public Registration counter(Description description, DoubleSupplier count) {
        return show(Kind.COUNTER, description, Source.of(description.labels(), count));
    }

    /**
     * Shows how many durations were recorded: where each event has one, it need not be counted besides.
     *
     * <p>As of {@link Recorder#total()}: what a thread recorded that lost its CPU within a record comes with the next reading,
     * see {@link Recorder#late()}.
     *
     * @param description with its unit
     * @param recorder whose they are; those that were no duration are counted, too
     * @return until when it is shown
     */
    public Registration counter(Description description, Recorder recorder) {
        return show(Kind.COUNTER, description, Source.countOf(description.labels(), recorder));
    }

    /**
     * How many there are of what comes and goes, with labels that are all bound.
     *
     * @param description with its unit
     * @return the same for each who asks
     */
    public UpDownCounter upDown(Description description) {
        return series(Kind.UP_DOWN, description, UpDownCounter.class, List.of(), UpDownCounter::new, Source::of);
    }

    /**
     * How many there are of what comes and goes, with labels that are known only when it does.
     *
     * @param description with its unit
     * @param limit how many combinations there may be
     * @param labels their names
     * @return the same for each who asks
     */
    public Rows<UpDownCounter> upDowns(Description description, int limit, String... labels) {
        return rows(Kind.UP_DOWN, description, limit, labels, UpDownCounter::new, UpDownCounter::now);
    }

    /**
     * Shows how many there are of what comes and goes and is counted elsewhere.
     *
     * @param description with its unit
     * @param count is asked at each reading; where it throws or is no number, the series is absent
     * @return until when it is shown
     */
    public Registration upDown(Description description, DoubleSupplier count) {
        return show(Kind.UP_DOWN, description, Source.of(description.labels(), count));
    }

    /**
     * Shows a value that is known elsewhere.
     *
     * @param description with its unit
     * @param value is asked at each reading; where it throws or is no number, the series is absent
     * @return until when it is shown
     */
    public Registration gauge(Description description, DoubleSupplier value) {
        return show(Kind.GAUGE, description, Source.of(description.labels(), value));
    }

    /**
     * Forgets the series of these labels. Who holds one may go on recording in it; who asks for it again gets another.
     *
     * @param name of the series
     * @param labels that were bound
     * @return whether there was one
     */
    public boolean remove(String name, Map<String, String> labels) {
        synchronized (lock) {
            Group group = groups.get(name);
            boolean isKnown = group != null && group.forget(labels);
            // A name that nothing is left of may come back as another kind.
            if (isKnown && group.sources.isEmpty()) {
                groups.remove(name);
            }
            return isKnown;
        }
    }

    /**
     * All series as of now, each read after the other. A record that races with this is in it or in the next one.
     *
     * @return by name, in the order in which they came
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

    private static Source source(Map<String, String> labels, Labelled labelled) {
        return Source.of(labels, labelled, labelled.asRows(), Recorder::total);
    }

    /** Makes a source of what records. */
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
                        description.name() + ": the label " + label + " is bound already; leave it out of one of the two");
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
                        description.name() + " has the labels " + known.get(0).eventLabels + ", not " + eventLabels
                                + "; give it the same, or bind another label");
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

    /** What there is of this name and these labels; throws where the name is of something else. */
    private List<Source> known(Kind kind, Description description) {
        if (kind == Kind.DURATIONS && !description.unit().equals("s")) {
            throw new IllegalArgumentException(
                    description.name() + " is in \"" + description.unit() + "\"; durations are in \"s\"");
        }
        Group group = groups.get(description.name());
        if (group == null) {
            return List.of();
        }
        if (group.kind != kind || !group.first.unit().equals(description.unit())) {
            throw new IllegalArgumentException(
                    description.name() + " is " + group.kind + " in \"" + group.first.unit() + "\" already, not " + kind
                            + " in \"" + description.unit() + "\"; give it another name");
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
