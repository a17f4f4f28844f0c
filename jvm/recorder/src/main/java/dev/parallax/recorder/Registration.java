package dev.parallax.recorder;

/** That a series is shown in a {@link Catalog}. */
@FunctionalInterface
public interface Registration extends AutoCloseable {
    /**
     * Shows it no longer. Where others of the same name and labels are shown, what only grows stays told as it is now, with
     * theirs: it is not to be shown there again. Else it is forgotten. A second time does nothing.
     */
    @Override
    void close();
}
