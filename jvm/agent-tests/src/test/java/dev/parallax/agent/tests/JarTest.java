package dev.parallax.agent.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The jar as it is shipped. It is on the class path of each application that it is given to. */
class JarTest {
    /** Maximum size of a jar that is copied into every container image; the byte-code library is nine tenths of it. */
    private static final long MOST_BYTES = 7_000_000;

    private static final int CLASS_MAGIC = 0xCAFEBABE;

    /** If this fails, an application finds our version of a library instead of its own. */
    @Test
    void anApplicationFindsFourClassesInItAndNothingOfALibrary() throws Exception {
        Set<String> found = new TreeSet<>();
        for (String name : names()) {
            if (!name.startsWith("inside/dev/parallax/") && !name.startsWith("META-INF/")) {
                found.add(name);
            }
        }
        assertEquals(
                Set.of("dev/parallax/agent/Agent.class", "dev/parallax/agent/AgentLoader.class",
                        "dev/parallax/agent/Dispatch.class", "dev/parallax/agent/Relay.class"),
                found);
        Set<String> kinds = names().stream()
                .filter(name -> name.startsWith("META-INF/"))
                .map(name -> name.replaceFirst("(LICENSE|NOTICE).*", "$1"))
                .collect(Collectors.toSet());
        assertEquals(Set.of("META-INF/MANIFEST.MF", "META-INF/LICENSE", "META-INF/NOTICE"), kinds, "and no services");
    }

    /** An entry is stored under the name of the class in it, so inside, too, no library has its own name. */
    @Test
    void eachClassInsideIsTheOneThatItsEntryNames() throws Exception {
        int classes = 0;
        try (JarFile jar = new JarFile(AgentJvm.agent().toFile())) {
            for (JarEntry entry : jar.stream().filter(one -> !one.isDirectory()).toList()) {
                if (!entry.getName().startsWith("META-INF/")) {
                    byte[] code = jar.getInputStream(entry).readAllBytes();
                    String name = entry.getName().replaceFirst("^inside/", "").replaceFirst("[.]class(data)?$", "");
                    assertEquals(name, className(code));
                    classes++;
                }
            }
        }
        assertTrue(classes > 1_000, "the byte-code library alone has more than " + classes);
    }

    /** What is not relocated but named: a library's own name, in a string that loads a class, for one. */
    @Test
    void noOwnClassNamesALibraryThatIsRelocated() throws Exception {
        List<String> wrong = new ArrayList<>();
        try (JarFile jar = new JarFile(AgentJvm.agent().toFile())) {
            for (JarEntry entry : jar.stream().filter(one -> one.getName().contains("class")).toList()) {
                String text = new String(jar.getInputStream(entry).readAllBytes(), StandardCharsets.ISO_8859_1);
                if (!entry.getName().contains("/libraries/") && text.matches("(?s).*(net.bytebuddy|org.HdrHistogram).*")) {
                    wrong.add(entry.getName());
                }
            }
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void itIsNoLargerThanItHasToBe() throws Exception {
        long bytes = Files.size(AgentJvm.agent());
        assertTrue(bytes <= MOST_BYTES, bytes + " bytes");
    }

    @Test
    void itsManifestSaysWhatItIsAndBringsNothingAlong() throws Exception {
        try (JarFile jar = new JarFile(AgentJvm.agent().toFile())) {
            Map<String, String> manifest = jar.getManifest().getMainAttributes().entrySet().stream()
                    .collect(Collectors.toMap(one -> one.getKey().toString(), one -> one.getValue().toString()));
            for (String name : List.of("Premain-Class", "Agent-Class", "Main-Class")) {
                assertEquals("dev.parallax.agent.Agent", manifest.get(name), name);
            }
            assertEquals("true", manifest.get("Can-Retransform-Classes"));
            assertEquals("true", manifest.get("Can-Redefine-Classes"));
            assertEquals("dev.parallax.agent", manifest.get("Automatic-Module-Name"));
            assertNotNull(manifest.get("Implementation-Version"));
            for (String name : List.of("Class-Path", "Boot-Class-Path", "Launcher-Agent-Class", "Multi-Release")) {
                assertNull(manifest.get(name), name);
            }
        }
    }

    private static List<String> names() throws Exception {
        try (JarFile jar = new JarFile(AgentJvm.agent().toFile())) {
            return jar.stream().filter(entry -> !entry.isDirectory()).map(JarEntry::getName).toList();
        }
    }

    /** Parses a class file: its constants, then flags, then the index of its own name. */
    private static String className(byte[] code) {
        ByteBuffer in = ByteBuffer.wrap(code);
        assertEquals(CLASS_MAGIC, in.getInt());
        in.getInt();
        int count = Short.toUnsignedInt(in.getShort());
        String[] texts = new String[count];
        int[] references = new int[count];
        for (int i = 1; i < count; i++) {
            int tag = in.get();
            switch (tag) {
                case 1 -> {
                    byte[] text = new byte[Short.toUnsignedInt(in.getShort())];
                    in.get(text);
                    texts[i] = new String(text, StandardCharsets.UTF_8);
                }
                case 7, 8, 16, 19, 20 -> references[i] = Short.toUnsignedInt(in.getShort());
                case 15 -> in.position(in.position() + 3);
                case 3, 4, 9, 10, 11, 12, 17, 18 -> in.getInt();
                case 5, 6 -> {
                    in.getLong();
                    i++;
                }
                default -> throw new AssertionError("constant of kind " + tag);
            }
        }
        in.getShort();
        return texts[references[Short.toUnsignedInt(in.getShort())]];
    }
}
