package dev.parallax.agent.report;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Builds the endpoint's responses.
 *
 * <p>Only requests for a loopback name are served: otherwise a web page in a browser on this host could resolve its own
 * host name to the loopback address and read the data (DNS rebinding).
 */
final class Responses {
    private static final Pattern REQUEST = Pattern.compile("([A-Z]+) ([^ ?]+)(\\?[^ ]*)? HTTP/1\\.[01]");
    private static final Pattern FIELD = Pattern.compile("[^\\s:]+:.*");
    private static final String HOST = "Host:";
    private static final List<String> HOSTS = List.of("localhost", "127.0.0.1", "[::1]");
    private static final List<String> METHODS = List.of("GET", "HEAD");
    private static final String PLAIN = "text/plain";

    private final List<Source> sources;

    Responses(List<Source> sources) {
        this.sources = sources;
    }

    /** Response to a request with too long a head. */
    static ByteBuffer tooLong() {
        return new Answer("431 Request Header Fields Too Large", PLAIN, "request too long\n").bytes(true);
    }

    /** @param head without the empty line at its end */
    ByteBuffer to(String head) {
        return answer(List.of(head.split("\r\n", -1))).bytes(!head.startsWith("HEAD "));
    }

    private Answer answer(List<String> lines) {
        Matcher request = REQUEST.matcher(lines.get(0));
        List<String> fields = lines.subList(1, lines.size());
        if (!request.matches() || !fields.stream().allMatch(FIELD.asMatchPredicate())) {
            return new Answer("400 Bad Request", PLAIN, "not an HTTP/1.1 request\n");
        }
        if (!isLocal(fields)) {
            return new Answer("403 Forbidden", PLAIN, "only requests for localhost are served\n");
        }
        if (!METHODS.contains(request.group(1))) {
            return new Answer("405 Method Not Allowed", PLAIN, "GET and HEAD only\n");
        }
        return switch (request.group(2)) {
            case "/" -> new Answer("200 OK", "text/plain; charset=utf-8", Figures.of(sources).text());
            case "/json" -> new Answer("200 OK", "application/json", Figures.of(sources).json());
            default -> new Answer("404 Not Found", PLAIN, "not found; available: / and /json\n");
        };
    }

    private static boolean isLocal(List<String> fields) {
        List<String> hosts = fields.stream()
                .filter(field -> field.regionMatches(true, 0, HOST, 0, HOST.length()))
                .map(field -> field.substring(HOST.length()).strip().toLowerCase(Locale.ROOT))
                .toList();
        return hosts.size() == 1 && HOSTS.contains(hosts.get(0).replaceFirst(":[0-9]{1,5}$", ""));
    }

    private record Answer(String status, String type, String body) {
        ByteBuffer bytes(boolean isWithBody) {
            String head = String.join("\r\n",
                    "HTTP/1.1 " + status,
                    "Content-Type: " + type,
                    "Content-Length: " + body.getBytes(StandardCharsets.UTF_8).length,
                    "Allow: " + String.join(", ", METHODS),
                    "Cache-Control: no-store",
                    "X-Content-Type-Options: nosniff",
                    "Connection: close",
                    "\r\n");
            return StandardCharsets.UTF_8.encode(isWithBody ? head + body : head);
        }
    }
}
