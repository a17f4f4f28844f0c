package dev.parallax.agent.instrument;

import dev.parallax.agent.AgentLoader;

/**
 * Defines a hook and its module beside one copy of a library: their names are found here first, the agent's others in the
 * agent's loader, and all else as the application finds it. So each copy of a library has a hook that is typed by it, also
 * where an application has several, or has our modules on its own class path.
 */
final class Bridge extends ClassLoader {
    static {
        registerAsParallelCapable();
    }

    private static final String AGENT = "dev.parallax.";

    private final AgentLoader agent;
    private final Library library;

    Bridge(AgentLoader agent, ClassLoader application, Library library) {
        super("parallax-" + library.option(), application);
        this.agent = agent;
        this.library = library;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(AGENT)) {
            return super.loadClass(name, resolve);
        }
        if (!name.startsWith(Library.HOOKS) && !name.startsWith(library.packageName)) {
            return agent.loadClass(name);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            byte[] code = agent.code(name);
            if (code == null) {
                throw new ClassNotFoundException(name);
            }
            return defineClass(name, code, 0, code.length);
        }
    }
}
