import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;

/** A plain web server on the JDK's own: each request allocates, and some of it lives for a while. */
class Plain {
    public static void main(String[] arguments) throws Exception {
        byte[] body = "Hello, World!".getBytes();
        ArrayDeque<byte[]> kept = new ArrayDeque<>();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.createContext("/", exchange -> {
            kept.addLast(new byte[16 << 10]);
            if (kept.size() > 4_000) {
                kept.removeFirst();
            }
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
