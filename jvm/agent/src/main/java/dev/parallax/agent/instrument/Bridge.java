package dev.parallax.agent.instrument;

import dev.parallax.agent.AgentLoader;

/**
 * Class loader that defines a hook and its module next to one copy of a library. Their names are resolved here, other
 * agent classes in the agent's loader, and everything else as the application resolves it. So each copy of a library
 * has a hook compiled against its types, even if an application has several copies or our modules on its own class
 * path.
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
