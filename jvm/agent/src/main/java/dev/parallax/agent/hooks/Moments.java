package dev.parallax.agent.hooks;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Maps objects to times from {@link System#nanoTime()}, by identity and with weak keys. */
final class Moments {
    private final ConcurrentMap<Key, Long> moments = new ConcurrentHashMap<>();
    private final ReferenceQueue<Object> gone = new ReferenceQueue<>();

    private static final class Key extends WeakReference<Object> {
        private final int hash;

        Key(Object of, ReferenceQueue<Object> gone) {
            super(of, gone);
            hash = System.identityHashCode(of);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            if (this == other) {
                return true;
            }
            Object own = get();
            return own != null && other instanceof Key key && key.refersTo(own);
        }
    }

    void put(Object of, long ns) {
        forget();
        moments.put(new Key(of, gone), ns);
    }

    /** Keeps the first value; returns whether this is it. */
    boolean putFirst(Object of, long ns) {
        forget();
        return moments.putIfAbsent(new Key(of, gone), ns) == null;
    }

    /** Removes and returns the value; null if there is none. */
    Long take(Object of) {
        return moments.remove(new Key(of, null));
    }

    private void forget() {
        for (Reference<?> key = gone.poll(); key != null; key = gone.poll()) {
            moments.remove(key);
        }
    }
}
