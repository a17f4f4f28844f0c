package dev.parallax.recorder;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessMode;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.FileSystem;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.nio.file.WatchService;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.nio.file.spi.FileSystemProvider;
import java.util.Map;
import java.util.Set;

/**
 * The real file system, where memory gives out at places that one may choose: before a file is opened, added to or cut, when
 * that is done, and half way of what is added.
 */
final class ScarceDisk extends FileSystemProvider {
    private final FileSystemProvider real = Path.of("").getFileSystem().provider();
    private final FileSystem files = new Scarce();
    private long places = Long.MIN_VALUE;
    private int apart;

    /** Throws after this many operations, and once more after this many others. */
    void refuse(int after, int between) {
        places = -after;
        apart = between + 1;
    }

    boolean hasRefused() {
        return places > 0;
    }

    private void place() {
        long place = places++;
        if (place == 0 || place == apart) {
            throw new OutOfMemoryError("planted");
        }
    }

    /** The same path, on this disk. */
    Path on(Path path) {
        return proxy(Path.class, (self, method, arguments) -> {
            if (method.getName().equals("getFileSystem")) {
                return files;
            }
            Object returned = call(method, path, arguments);
            return returned instanceof Path other ? on(other) : returned;
        });
    }

    private static Path off(Path path) {
        return Path.of(path.toString());
    }

    private SeekableByteChannel on(SeekableByteChannel channel) {
        return proxy(SeekableByteChannel.class, (self, method, arguments) -> switch (method.getName()) {
            case "write" -> write(channel, (ByteBuffer) arguments[0]);
            case "truncate" -> {
                place();
                channel.truncate((Long) arguments[0]);
                place();
                yield self;
            }
            default -> call(method, channel, arguments);
        });
    }

    private int write(SeekableByteChannel channel, ByteBuffer bytes) throws IOException {
        place();
        int length = bytes.remaining();
        int end = bytes.limit();
        channel.write(bytes.limit(bytes.position() + length / 2));
        place();
        channel.write(bytes.limit(end));
        place();
        return length;
    }

    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    private static Object call(Method method, Object self, Object[] arguments) throws Throwable {
        try {
            return method.invoke(self, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    @Override
    public SeekableByteChannel newByteChannel(Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes)
            throws IOException {
        place();
        SeekableByteChannel channel = real.newByteChannel(off(path), options, attributes);
        try {
            place();
        } catch (OutOfMemoryError e) {
            channel.close();
            throw e;
        }
        return on(channel);
    }

    @Override
    public void createDirectory(Path path, FileAttribute<?>... attributes) throws IOException {
        real.createDirectory(off(path), attributes);
    }

    @Override
    public void move(Path source, Path target, CopyOption... options) throws IOException {
        real.move(off(source), off(target), options);
    }

    @Override
    public void checkAccess(Path path, AccessMode... modes) throws IOException {
        real.checkAccess(off(path), modes);
    }

    @Override
    public <A extends BasicFileAttributes> A readAttributes(Path path, Class<A> type, LinkOption... options)
            throws IOException {
        return real.readAttributes(off(path), type, options);
    }

    @Override
    public String getScheme() {
        throw new UnsupportedOperationException();
    }

    @Override
    public FileSystem newFileSystem(URI uri, Map<String, ?> environment) {
        throw new UnsupportedOperationException();
    }

    @Override
    public FileSystem getFileSystem(URI uri) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Path getPath(URI uri) {
        throw new UnsupportedOperationException();
    }

    @Override
    public DirectoryStream<Path> newDirectoryStream(Path path, DirectoryStream.Filter<? super Path> filter) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void delete(Path path) throws IOException {
        real.delete(off(path));
    }

    @Override
    public void copy(Path source, Path target, CopyOption... options) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean isSameFile(Path one, Path other) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean isHidden(Path path) {
        throw new UnsupportedOperationException();
    }

    @Override
    public FileStore getFileStore(Path path) {
        throw new UnsupportedOperationException();
    }

    @Override
    public <V extends FileAttributeView> V getFileAttributeView(Path path, Class<V> type, LinkOption... options) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Map<String, Object> readAttributes(Path path, String attributes, LinkOption... options) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void setAttribute(Path path, String attribute, Object value, LinkOption... options) {
        throw new UnsupportedOperationException();
    }

    /** Marks the paths that belong to this disk. */
    private final class Scarce extends FileSystem {
        @Override
        public FileSystemProvider provider() {
            return ScarceDisk.this;
        }

        @Override
        public void close() {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isOpen() {
            return true;
        }

        @Override
        public boolean isReadOnly() {
            return false;
        }

        @Override
        public String getSeparator() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Iterable<Path> getRootDirectories() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Iterable<FileStore> getFileStores() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Set<String> supportedFileAttributeViews() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Path getPath(String first, String... more) {
            throw new UnsupportedOperationException();
        }

        @Override
        public PathMatcher getPathMatcher(String pattern) {
            throw new UnsupportedOperationException();
        }

        @Override
        public UserPrincipalLookupService getUserPrincipalLookupService() {
            throw new UnsupportedOperationException();
        }

        @Override
        public WatchService newWatchService() {
            throw new UnsupportedOperationException();
        }
    }
}
