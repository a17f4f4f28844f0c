package dev.parallax.httpclient5;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;

/**
 * A client that was built already. Only a builder can extend the execution chain, so the step is prepended by
 * reflection; a client whose internals no longer match is left unchanged.
 */
final class BuiltClient {
    private final Object client;

    BuiltClient(Object client) {
        this.client = client;
    }

    /**
     * @param step new first step; prepended once, however often this is called
     * @param type handler type of the client's chain
     * @return false if the client has no such chain
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

    /** The client's connection manager; null if it cannot be read. */
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
                // The field may be in a superclass.
            }
        }
        return null;
    }
}
