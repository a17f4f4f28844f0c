package dev.parallax.recorder;

import java.io.IOException;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;

/**
 * Who may read and replace the files of a record. A record contains routes and names of hosts, so one of root is
 * readable by root only; a directory of another user, who could replace its files, is refused; nothing is written
 * through a link.
 */
final class RecordAccess {
    private static final FileAttribute<?>[] AS_THE_UMASK_HAS_IT = {};
    private static final FileAttribute<?>[] ROOTS_FILES = {permissions("rw-------")};
    private static final FileAttribute<?>[] ROOTS_FOLDERS = {permissions("rwx------")};

    private RecordAccess() {}

    private static FileAttribute<?> permissions(String text) {
        return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(text));
    }

    /** Creates the folder and its parents, or takes an existing one of this user. */
    static void createFolder(Path folder) throws IOException {
        UserPrincipal own = user();
        try {
            checkOwner(folder, own, LinkOption.NOFOLLOW_LINKS);
        } catch (NoSuchFileException e) {
            // It is created below.
        }
        Files.createDirectories(folder, isRoot(own) ? ROOTS_FOLDERS : AS_THE_UMASK_HAS_IT);
        checkOwner(folder, own);
    }

    private static void checkOwner(Path folder, UserPrincipal own, LinkOption... options) throws IOException {
        if (own != null
                && !own.equals(Files.readAttributes(folder, PosixFileAttributes.class, options).owner())) {
            throw new AccessDeniedException(folder + " belongs to another user; choose a new folder");
        }
    }

    /** Opens a file for writing. */
    static SeekableByteChannel open(Path file, OpenOption how) throws IOException {
        Set<OpenOption> options = Set.of(how, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        return Files.newByteChannel(file, options, isRoot(user()) ? ROOTS_FILES : AS_THE_UMASK_HAS_IT);
    }

    /** The user of this process; null if the system does not report it. */
    private static UserPrincipal user() {
        try {
            return Files.readAttributes(Path.of("/proc/self"), PosixFileAttributes.class).owner();
        } catch (IOException | UnsupportedOperationException e) {
            return null;
        }
    }

    private static boolean isRoot(UserPrincipal user) {
        return user != null && user.getName().equals("root");
    }
}
