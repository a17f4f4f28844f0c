package dev.parallax.vertx;

import dev.parallax.recorder.ThreadHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * One request and its response. Begun by one thread; its two ends may be told by two others at once. If the thread that began
 * it is the one that comes last, it uses it again.
 */
public final class Exchange {
    static final int REQUEST = 1;
    static final int RESPONSE = 2;

    private static final int BOTH = REQUEST | RESPONSE;
    private static final int RESET = 4;

    private static final VarHandle ENDS;

    static {
        try {
            ENDS = MethodHandles.lookup().findVarHandle(Exchange.class, "ends", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Those that are on come first, in their order. */
    final String[] values = new String[Exchanges.LABELS_MAX];

    /** Null where it is free. */
    Exchanges exchanges;

    /** Null before it has begun. */
    Object series;

    /**
     * What it was the last time, as it mostly is again: of whom, and the series of its begin and its end with the status that
     * those are of. {@link #values} are of then.
     */
    Exchanges lastExchanges;

    Object lastBegun;
    Object lastEnded;
    int lastCode;

    /** Those series, as the threads found them that began and ended it. */
    ThreadHandle active;

    ThreadHandle requestBytes;
    ThreadHandle time;
    ThreadHandle responseBytes;

    long begunNs;

    /** The client's: told before the end. */
    private int code;

    private final FreeExchanges home;

    /** Of its home, where it is free. */
    Exchange before;

    private String route;
    private int ends;

    Exchange(FreeExchanges home) {
        this.home = home;
    }

    /**
     * Those that it is of.
     *
     * @return the same from its begin to its end
     */
    public Exchanges exchanges() {
        return exchanges;
    }

    void begins(Object series) {
        this.series = series;
        route = null;
        ENDS.setOpaque(this, 0);
        begunNs = System.nanoTime();
    }

    /** Whether this was the second of two ends, and nothing was reset. */
    boolean ends(int end) {
        int before = (int) ENDS.getAndBitwiseOr(this, end);
        return (before | end) == BOTH && before != BOTH;
    }

    /** Whether it was still going on, for the first time. */
    boolean resets() {
        int before = (int) ENDS.getAndBitwiseOr(this, RESET);
        return (before & RESET) == 0 && (before & BOTH) != BOTH;
    }

    void free() {
        series = null;
        exchanges = null;
        home.give(this);
    }

    /**
     * A router has found a route, or one within another.
     *
     * @param route null is none
     */
    public void routed(String route) {
        if (route != null) {
            this.route = this.route == null ? route : this.route + '>' + route;
        }
    }

    String route() {
        return route == null ? "" : route;
    }

    /**
     * The status, where it is known before the end.
     *
     * @param code of the response
     */
    public void setCode(int code) {
        this.code = code;
    }

    /**
     * What was set.
     *
     * @return the status
     */
    public int code() {
        return code;
    }
}
