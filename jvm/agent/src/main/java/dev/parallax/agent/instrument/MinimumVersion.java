package dev.parallax.agent.instrument;

import java.io.IOException;
import java.io.InputStream;
import java.util.Optional;
import java.util.Properties;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.pool.TypePool;

/**
 * The minimum version of a library that is instrumented, recognised by a method that older versions lack: version files
 * get lost when an application's jars are merged into one.
 *
 * @param title of the library
 * @param version for messages
 * @param className of the class that has the method
 * @param method its name
 * @param parameters number of its parameters
 * @param resource properties file with the version, if present
 * @param key of the version in it
 */
record MinimumVersion(String title, String version, String className, String method, int parameters, String resource, String key) {
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
            // The version is too old even if it cannot be named.
        }
        return properties.getProperty(key, "of an unknown version");
    }
}
