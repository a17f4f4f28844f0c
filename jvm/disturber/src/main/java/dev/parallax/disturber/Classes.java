package dev.parallax.disturber;

import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.ArrayDeque;
import java.util.Deque;

/** Defines a class again and again, each time in a new loader, holds some and drops the others. */
final class Classes implements Press {
    private static final int TO_CALIBRATE = 64;

    private final Deque<Class<?>> held = new ArrayDeque<>();
    private final byte[] code;
    private final MemoryPoolMXBean metaspace;
    private final long target;
    private final long each;

    Classes(Plan plan, Room room) throws IOException {
        try (InputStream file = Classes.class.getResourceAsStream("Filler.class")) {
            code = file.readAllBytes();
        }
        metaspace = ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getName().equals("Metaspace"))
                .findFirst()
                .orElseThrow(() -> new IOException("this JVM does not report its metaspace"));
        each = calibrate();
        long max = metaspace.getUsage().getMax();
        long left = max < 0 ? Long.MAX_VALUE : (max - metaspace.getUsage().getUsed()) / 2;
        target = Math.min(left, (long) (plan.share() * room.maxBytes()));
    }

    /** The size of one class with its loader. */
    private long calibrate() {
        long before = metaspace.getUsage().getUsed();
        for (int n = 0; n < TO_CALIBRATE; n++) {
            held.add(define());
        }
        return Math.max(code.length, (metaspace.getUsage().getUsed() - before) / TO_CALIBRATE);
    }

    private Class<?> define() {
        try {
            // A class that is only loaded has half of its metadata.
            return Class.forName(Filler.class.getName(), true, new Loader(code));
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Loader extends ClassLoader {
        private final byte[] code;

        Loader(byte[] code) {
            super(Classes.class.getClassLoader());
            this.code = code;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals(Filler.class.getName())) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            return known != null ? known : defineClass(name, code, 0, code.length);
        }
    }

    @Override
    public String unit() {
        return "of classes";
    }

    @Override
    public long heldBytes() {
        return held.size() * each;
    }

    @Override
    public long leastBytes() {
        return each;
    }

    @Override
    public long press(long bytes) {
        long done = 0;
        while (done < bytes) {
            held.add(define());
            done += each;
            while (heldBytes() > target && !held.isEmpty()) {
                held.poll();
            }
        }
        return done;
    }

    @Override
    public void giveBack() {
        held.clear();
    }
}
