package dev.parallax.httpclient5;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;

/**
 * A client that is built already. Its chain is a list of steps that only its builder can make; a step is put before the first
 * by reflection, and where the client has changed too much for that, it stays as it is.
 */
final class BuiltClient {
    private final Object client;

    BuiltClient(Object client) {
        this.client = client;
    }

    /**
     * @param step what comes first from here on, once
     * @param type what steps are to the client's chain
     * @return false where this is no client with such a chain
     */
    <S> boolean prepend(S step, Class<S> type) {
        try {
            Field chain = field(client.getClass(), "execChain");
            if (chain == null) {
                return false;
            }
            Object first = chain.get(client);
            Field handler = field(first.getClass(), "handler");
            if (handler != null && step.equals(handler.get(first))) {
                return true;
            }
            Constructor<?> maker = first.getClass().getDeclaredConstructor(type, first.getClass());
            maker.setAccessible(true);
            chain.set(client, maker.newInstance(step, first));
            return true;
        } catch (ReflectiveOperationException | RuntimeException e) {
            return false;
        }
    }

    /** Its connection manager; null where it does not tell. */
    Object manager() {
        try {
            Field classic = field(client.getClass(), "connManager");
            Field manager = classic != null ? classic : field(client.getClass(), "manager");
            return manager == null ? null : manager.get(client);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return null;
        }
    }

    private static Field field(Class<?> type, String name) {
        for (Class<?> in = type; in != null; in = in.getSuperclass()) {
            try {
                Field field = in.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException e) {
                // It may be the superclass's.
            }
        }
        return null;
    }
}
