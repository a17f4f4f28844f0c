package dev.parallax.agent.run;

import dev.parallax.agent.AgentLoader;
import dev.parallax.agent.instrument.Weaving;
import dev.parallax.agent.meter.Hiccup;
import dev.parallax.agent.meter.Hiccups;
import dev.parallax.agent.report.Endpoint;
import dev.parallax.agent.report.Recording;
import dev.parallax.agent.report.Source;
import dev.parallax.disturber.Disturbance;
import dev.parallax.disturber.Plan;
import dev.parallax.pauses.PauseClock;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/** The parts of a running agent and the connections between them. */
final class Running {
    private final PauseClock clock;
    private final Optional<Long> logNs;
    private final List<Source> sources = new ArrayList<>();
    /** How to stop what was started, last first. */
    private final Deque<AutoCloseable> ends = new ArrayDeque<>();

    private Optional<Hiccups> hiccups = Optional.empty();
    private volatile Optional<Recording> recording = Optional.empty();
    private Optional<Disturbance> disturbance = Optional.empty();

    private Running(Options options, PauseClock clock) throws Options.Invalid {
        this.clock = clock;
        this.logNs = options.log().map(log -> log.toNanos());
    }

    /**
     * Starts what the options ask for. Unavailable parts are left out and logged. If it throws, for example because no
     * thread can be created, nothing runs, no class is changed, and there is no record.
     */
    static Running begin(Options options, AgentLoader loader, Instrumentation instrumentation) throws Options.Invalid {
        PauseClock clock = PauseClock.open(instrumentation);
        if (!clock.way().isExact()) {
            Log.line("pause times come from " + clock.way() + ", which lacks " + clock.way().lacks() + "; "
                    + String.join("; ", clock.notUsed()));
        }
        Running running = new Running(options, clock);
        try {
            running.start(options, loader, instrumentation);
            return running;
        } catch (Throwable e) {
            running.rollBack();
            throw e;
        }
    }

    private void start(Options options, AgentLoader loader, Instrumentation instrumentation) throws Options.Invalid {
        ends.push(clock::close);
        Weaving weaving = new Weaving(loader, options.libraries());
        sources.add(weaving.hooks());
        startMeters(options, loader);
        startRecording(options);
        ends.push(() -> disturbance.ifPresent(Disturbance::stop));
        options.disturbance().ifPresent(this::disturb);
        ends.push(AtEnd::forget);
        AtEnd.run(this::finish, instrumentation);
        startEndpoint(options);
        // Last: calls in progress began with the current hooks and must not end with those of another start.
        ends.push(() -> weaving.end(instrumentation));
        weaving.begin(instrumentation);
    }

    private void rollBack() {
        for (AutoCloseable end : ends) {
            try {
                end.close();
            } catch (Throwable e) {
                Log.once("cannot undo all of a failed start", e);
            }
        }
    }

    private void startMeters(Options options, AgentLoader loader) throws Options.Invalid {
        if (options.hiccup().isPresent()) {
            Hiccups.Wish wish = new Hiccups.Wish(
                    options.hiccup().get().toNanos(), options.canary(), options.causes(), options.control());
            hiccups = Optional.of(Hiccups.start(wish, loader, clock, listener()));
            ends.push(hiccups.get()::stop);
            sources.add(hiccups.get());
        }
    }

    private void startRecording(Options options) throws Options.Invalid {
        if (options.out().isPresent()) {
            try {
                RecordFiles files = new RecordFiles(options.out().get());
                Recording begun = Recording.begin(
                        sources, options.out().get(), options.interval(), options.effective());
                ends.push(files::delete);
                ends.push(begun::finish);
                begun.start();
                recording = Optional.of(begun);
            } catch (IOException | RuntimeException e) {
                Log.line("no record: " + e + "; out= must name a writable folder without a record");
            }
        }
    }

    private void startEndpoint(Options options) throws Options.Invalid {
        if (options.endpoint().isPresent()) {
            try {
                Endpoint endpoint = Endpoint.start(sources, options.endpoint().getAsInt());
                ends.push(endpoint);
                Log.line("http://localhost:" + endpoint.port() + "/");
            } catch (IOException | RuntimeException e) {
                Log.line("no endpoint: " + e.getMessage());
            }
        }
    }

    private Hiccups.Listener listener() {
        return new Hiccups.Listener() {
            @Override
            public void hiccup(Hiccup hiccup) {
                report(hiccup);
            }

            @Override
            public void pause(long beginNs, long endNs, String cause) {
                recording.ifPresent(open -> open.pause(beginNs, endNs, cause));
            }
        };
    }

    /** Throws if there is no memory for the record, and may be called again; the log line is then left out. */
    private void report(Hiccup hiccup) {
        recording.ifPresent(open -> open.hiccup(hiccup.beginNs(), hiccup.lengthNs(), hiccup.causes(), hiccup.line()));
        if (logNs.isPresent() && hiccup.lengthNs() >= logNs.get()) {
            try {
                Instant begin = Instant.now().minusNanos(System.nanoTime() - hiccup.beginNs());
                Log.line(begin + " " + hiccup.line());
            } catch (OutOfMemoryError e) {
                Log.once("a hiccup is not logged", e);
            }
        }
    }

    private void event(long atNs, String kind, String text) {
        recording.ifPresent(open -> open.event(atNs, kind, text));
    }

    /** Handles options passed to an agent that is already running. */
    synchronized void command(Options options) throws Options.Invalid {
        if (!options.hasDisturbance()) {
            Log.line("not done: already running; only disturb=MODE can be changed");
            return;
        }
        disturbance.ifPresent(Disturbance::stop);
        disturbance = Optional.empty();
        options.disturbance().ifPresent(this::disturb);
    }

    private synchronized void disturb(Plan plan) {
        disturbance = Optional.of(Disturbance.start(plan, clock, (atNs, text) -> {
            event(atNs, "disturbance", text);
            Log.line(text);
        }));
    }

    private void finish() {
        try {
            try {
                disturbance.ifPresent(Disturbance::stop);
                hiccups.ifPresent(Hiccups::finish);
            } finally {
                // Whatever failed before: an unfinished record reads as interrupted.
                recording.ifPresent(Recording::finish);
            }
        } catch (Throwable e) {
            Log.once("cannot report everything at exit", e);
        }
    }
}
