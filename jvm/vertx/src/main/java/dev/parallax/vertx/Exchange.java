package dev.parallax.vertx;

import dev.parallax.recorder.ThreadHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * One request and its response. Begun on one thread; its two ends may be reported by two other threads at once. Reused
 * if the thread that began it also reports the last end.
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

    /** Enabled labels first, in their order. */
    final String[] values = new String[Exchanges.LABELS_MAX];

    /** Null while the object is free. */
    Exchanges exchanges;

    /** Null until the exchange has begun. */
    Object series;

    /**
     * From the previous use, which is mostly the same again: owner, the series of begin and end, and the status those
     * belong to. {@link #values} belong to them too.
     */
    Exchanges lastExchanges;

    Object lastBegun;
    Object lastEnded;
    int lastCode;

    /** Handles of these series for the threads that began and ended the exchange. */
    ThreadHandle active;

    ThreadHandle requestBytes;
    ThreadHandle time;
    ThreadHandle responseBytes;

    long begunNs;

    /** Set before the end, by clients. */
    private int code;

    private final FreeExchanges home;

    /** The next free exchange in the same list. */
    Exchange next;

    private String route;
    private int ends;

    Exchange(FreeExchanges home) {
        this.home = home;
    }

    /**
     * The requests this exchange is one of.
     *
     * @return the same object from begin to end
     */
    public Exchanges exchanges() {
        return exchanges;
    }

    void begin(Object series) {
        this.series = series;
        route = null;
        ENDS.setOpaque(this, 0);
        begunNs = System.nanoTime();
    }

    /** Records one of the two ends. Returns whether it was the second, and the exchange was not reset. */
    boolean end(int end) {
        int before = (int) ENDS.getAndBitwiseOr(this, end);
        return (before | end) == BOTH && before != BOTH;
    }

    /** Marks the exchange as reset. Returns whether it was still open. */
    boolean markReset() {
        int before = (int) ENDS.getAndBitwiseOr(this, RESET);
        return (before & RESET) == 0 && (before & BOTH) != BOTH;
    }

    void free() {
        series = null;
        exchanges = null;
        home.release(this);
    }

    /**
     * A router matched a route, or a nested one.
     *
     * @param route null for none
     */
    public void addRoute(String route) {
        if (route != null) {
            this.route = this.route == null ? route : this.route + '>' + route;
        }
    }

    String route() {
        return route == null ? "" : route;
    }

    /**
     * Sets the status, if it is known before the end.
     *
     * @param code of the response
     */
    public void setCode(int code) {
        this.code = code;
    }

    /**
     * The status set before.
     *
     * @return the status code
     */
    public int code() {
        return code;
    }
}
