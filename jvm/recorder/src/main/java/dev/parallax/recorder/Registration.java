package dev.parallax.recorder;

/** That a series is shown in a {@link Catalog}. */
@FunctionalInterface
public interface Registration extends AutoCloseable {
    /** Shows it no longer, and forgets it. A second time does nothing. */
    @Override
    void close();
}
