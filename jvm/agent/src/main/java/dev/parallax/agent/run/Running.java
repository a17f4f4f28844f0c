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

/** The parts of an agent that runs, and how what one finds gets to the others. */
final class Running {
    private final PauseClock clock;
    private final Optional<Long> logNs;
    private final List<Source> sources = new ArrayList<>();
    /** How to end what has begun, the last first. */
    private final Deque<AutoCloseable> ends = new ArrayDeque<>();

    private Optional<Hiccups> hiccups = Optional.empty();
    private volatile Optional<Recording> recording = Optional.empty();
    private Optional<Disturbance> disturbance = Optional.empty();

    private Running(Options options, PauseClock clock) throws Options.Bad {
        this.clock = clock;
        this.logNs = options.log().map(log -> log.toNanos());
    }

    /**
     * Starts what the options ask for. What is not to be had is left out with a line. Where it throws, as when there are no
     * threads to be had, nothing runs, no class is changed, and there is no record.
     */
    static Running begin(Options options, AgentLoader loader, Instrumentation instrumentation) throws Options.Bad {
        PauseClock clock = PauseClock.open(instrumentation);
        if (!clock.way().isExact()) {
            Say.line("pause times come from " + clock.way() + ", which lacks " + clock.way().lacks() + "; "
                    + String.join("; ", clock.notUsed()));
        }
        Running running = new Running(options, clock);
        try {
            running.start(options, loader, instrumentation);
            return running;
        } catch (Throwable e) {
            running.takeBack();
            throw e;
        }
    }

    private void start(Options options, AgentLoader loader, Instrumentation instrumentation) throws Options.Bad {
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
        // Last: a call that is under way has begun by the hooks of now, and must not end by those of another start.
        ends.push(() -> weaving.end(instrumentation));
        weaving.begin(instrumentation);
    }

    private void takeBack() {
        for (AutoCloseable end : ends) {
            try {
                end.close();
            } catch (Throwable e) {
                Say.once("cannot undo all of a failed start", e);
            }
        }
    }

    private void startMeters(Options options, AgentLoader loader) throws Options.Bad {
        if (options.hiccup().isPresent()) {
            Hiccups.Wish wish = new Hiccups.Wish(
                    options.hiccup().get().toNanos(), options.canary(), options.causes(), options.control());
            hiccups = Optional.of(Hiccups.start(wish, loader, clock, listener()));
            ends.push(hiccups.get()::stop);
            sources.add(hiccups.get());
        }
    }

    private void startRecording(Options options) throws Options.Bad {
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
                Say.line("no record: " + e + "; out= must name a writable folder without a record");
            }
        }
    }

    private void startEndpoint(Options options) throws Options.Bad {
        if (options.endpoint().isPresent()) {
            try {
                Endpoint endpoint = Endpoint.start(sources, options.endpoint().getAsInt());
                ends.push(endpoint);
                Say.line("http://localhost:" + endpoint.port() + "/");
            } catch (IOException | RuntimeException e) {
                Say.line("no endpoint: " + e.getMessage());
            }
        }
    }

    private Hiccups.Listener listener() {
        return new Hiccups.Listener() {
            @Override
            public void hiccup(Hiccup hiccup) {
                tell(hiccup);
            }

            @Override
            public void pause(long beginNs, long endNs, String cause) {
                recording.ifPresent(open -> open.pause(beginNs, endNs, cause));
            }
        };
    }

    /** Where there is no memory for the record, it throws, and may be told again; a line is left out. */
    private void tell(Hiccup hiccup) {
        recording.ifPresent(open -> open.hiccup(hiccup.beginNs(), hiccup.lengthNs(), hiccup.causes(), hiccup.line()));
        if (logNs.isPresent() && hiccup.lengthNs() >= logNs.get()) {
            try {
                Instant begin = Instant.now().minusNanos(System.nanoTime() - hiccup.beginNs());
                Say.line(begin + " " + hiccup.line());
            } catch (OutOfMemoryError e) {
                Say.once("a hiccup is not logged", e);
            }
        }
    }

    private void event(long atNs, String kind, String text) {
        recording.ifPresent(open -> open.event(atNs, kind, text));
    }

    /** An agent that was there before is told something. */
    synchronized void command(Options options) throws Options.Bad {
        if (!options.tellsOfDisturbance()) {
            Say.line("not done: already running; only disturb=MODE can be changed");
            return;
        }
        disturbance.ifPresent(Disturbance::stop);
        disturbance = Optional.empty();
        options.disturbance().ifPresent(this::disturb);
    }

    private synchronized void disturb(Plan plan) {
        disturbance = Optional.of(Disturbance.start(plan, clock, (atNs, text) -> {
            event(atNs, "disturbance", text);
            Say.line(text);
        }));
    }

    private void finish() {
        try {
            try {
                disturbance.ifPresent(Disturbance::stop);
                hiccups.ifPresent(Hiccups::finish);
            } finally {
                // Whatever it lacks then: one that is not finished is told as cut off.
                recording.ifPresent(Recording::finish);
            }
        } catch (Throwable e) {
            Say.once("cannot report everything at exit", e);
        }
    }
}
