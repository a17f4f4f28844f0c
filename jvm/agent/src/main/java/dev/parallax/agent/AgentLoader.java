package dev.parallax.agent;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;

/**
 * Loads classes that the application must not see: entries of the agent's jar named {@code inside/….classdata}, which
 * nobody else finds. Its parent is the platform class loader, so it does not see the application either.
 */
public final class AgentLoader extends ClassLoader {
    static {
        registerAsParallelCapable();
    }

    private final File file;
    private final JarFile jar;

    AgentLoader(File file) throws IOException {
        super("parallax-agent", ClassLoader.getPlatformClassLoader());
        this.file = file;
        this.jar = new JarFile(file, false);
    }

    /**
     * The agent's jar.
     *
     * @return its path
     */
    public File file() {
        return file;
    }

    /**
     * Reads the code of an agent class.
     *
     * @param name of the class, with dots
     * @return its bytes; null if there is no such class
     */
    public byte[] code(String name) {
        ZipEntry entry = jar.getEntry(entry(name.replace('.', '/') + ".class"));
        if (entry == null) {
            return null;
        }
        try (InputStream code = jar.getInputStream(entry)) {
            return code.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        if (name.equals(AgentLoader.class.getName())) {
            // Classes loaded here may refer to it.
            return AgentLoader.class;
        }
        byte[] code = code(name);
        if (code == null) {
            throw new ClassNotFoundException(name);
        }
        return defineClass(name, code, 0, code.length);
    }

    @Override
    protected URL findResource(String name) {
        String entry = jar.getEntry(entry(name)) != null ? entry(name) : name;
        if (jar.getEntry(entry) == null) {
            return null;
        }
        try {
            return new URL("jar:" + file.toURI() + "!/" + entry);
        } catch (MalformedURLException e) {
            return null;
        }
    }

    private static String entry(String resource) {
        boolean isClass = resource.endsWith(".class");
        return "inside/" + (isClass ? resource + "data" : resource);
    }
}
