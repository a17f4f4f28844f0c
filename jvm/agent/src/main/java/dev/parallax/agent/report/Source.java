package dev.parallax.agent.report;

import java.util.List;

/** Something that measures. */
public interface Source {
    /**
     * Hands over all series. May be called by any thread, by one at a time.
     *
     * @param reader takes them
     */
    void read(Reader reader);

    /**
     * Of what it consists: what may come and go by itself.
     *
     * @return itself, or those that there are now
     */
    default List<Source> parts() {
        return List.of(this);
    }
}
