package dev.parallax.agent.report;

import java.util.List;

/** Something that measures. */
public interface Source {
    /**
     * Reports all series. May be called on any thread, by one at a time.
     *
     * @param reader receives them
     */
    void read(Reader reader);

    /**
     * The parts that may appear and disappear independently.
     *
     * @return itself, or the current parts
     */
    default List<Source> parts() {
        return List.of(this);
    }
}
