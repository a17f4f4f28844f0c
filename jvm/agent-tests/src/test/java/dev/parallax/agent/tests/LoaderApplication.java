package dev.parallax.agent.tests;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Runs {@link HttpApplication} in a separate class loader. Additional arguments: which kind of loader, and its class
 * path.
 */
public final class LoaderApplication {
    private LoaderApplication() {}

    public static void main(String[] arguments) throws Exception {
        String kind = arguments[4];
        ClassLoader loader = kind.equals("apart")
                ? new URLClassLoader(urls(arguments[5]), ClassLoader.getPlatformClassLoader())
                : new ChildFirst(urls(arguments[5]));
        Class<?> application = loader.loadClass("dev.parallax.agent.tests.HttpApplication");
        if (application.getClassLoader() != loader) {
            throw new IllegalStateException("not by its own loader");
        }
        Thread.currentThread().setContextClassLoader(loader);
        application.getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOf(arguments, 4));
        checkThatNothingIsSeen(loader);
    }

    /** The agent's own libraries must not be visible. */
    private static void checkThatNothingIsSeen(ClassLoader loader) throws Exception {
        for (String name : List.of("dev.parallax.recorder.Recorder", "dev.parallax.agent.run.Start",
                "dev.parallax.httpclient5.HttpClientMetrics", "dev.parallax.agent.libraries.bytebuddy.ByteBuddy",
                "net.bytebuddy.ByteBuddy")) {
            try {
                loader.loadClass(name);
                throw new IllegalStateException(name + " is seen by the application");
            } catch (ClassNotFoundException good) {
                continue;
            }
        }
    }

    private static URL[] urls(String path) throws MalformedURLException {
        List<URL> urls = new ArrayList<>();
        for (String entry : path.split(File.pathSeparator)) {
            urls.add(new File(entry).toURI().toURL());
        }
        return urls.toArray(new URL[0]);
    }

    private static final class ChildFirst extends URLClassLoader {
        ChildFirst(URL[] urls) {
            super(urls, LoaderApplication.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                try {
                    return findClass(name);
                } catch (ClassNotFoundException notHere) {
                    return super.loadClass(name, resolve);
                }
            }
        }
    }
}
