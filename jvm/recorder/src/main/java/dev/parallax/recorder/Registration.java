package dev.parallax.recorder;

/** The registration of a series in a {@link Catalog}. */
@FunctionalInterface
public interface Registration extends AutoCloseable {
    /**
     * Removes the series from the catalog. While others with the same name and labels are registered, its last totals
     * remain part of theirs, so do not register it there again; otherwise they are dropped. Closing twice has no
     * effect.
     */
    @Override
    void close();
}
