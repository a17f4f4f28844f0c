package dev.parallax.agent.instrument;

import java.io.IOException;
import java.io.InputStream;
import java.util.Optional;
import java.util.Properties;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.pool.TypePool;

/**
 * The least version of a library that is looked into. It is known by a method that older ones lack: files that tell a version
 * get lost where an application's jars are made into one.
 *
 * @param title of the library
 * @param version for people
 * @param className of the class that has the method
 * @param method its name
 * @param parameters how many it has
 * @param resource properties that tell the version, where they are
 * @param key of these properties
 */
record Least(String title, String version, String className, String method, int parameters, String resource, String key) {
    /** See {@link Library#refusal}. */
    Optional<String> refusal(ClassLoader loader) {
        TypePool.Resolution found =
                TypePool.Default.of(ClassFileLocator.ForClassLoader.of(loader)).describe(className);
        boolean isEnough = !found.isResolved()
                || found.resolve().getDeclaredMethods().stream().anyMatch(one ->
                        one.getName().equals(method) && one.getParameters().size() == parameters);
        return isEnough
                ? Optional.empty()
                : Optional.of(title + " " + version(loader) + " is not instrumented; minimum version is " + version);
    }

    private String version(ClassLoader loader) {
        Properties properties = new Properties();
        try (InputStream in = loader.getResourceAsStream(resource)) {
            if (in != null) {
                properties.load(in);
            }
        } catch (IOException | IllegalArgumentException e) {
            // The library is as old without it.
        }
        return properties.getProperty(key, "of an unknown version");
    }
}
