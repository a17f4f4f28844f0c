package dev.parallax.agent.report;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/** One connection to the endpoint: a request's head is read, it is answered once, and what else comes is thrown away. */
final class Connection {
    private static final int HEAD_MAX = 8 * 1024;
    private static final byte[] END = {'\r', '\n', '\r', '\n'};

    private final SocketChannel channel;
    private final long endNs;
    private final ByteBuffer head = ByteBuffer.allocate(HEAD_MAX);

    /** Null until the head is there. */
    private ByteBuffer answer;

    /** @param endNs when it is to be closed, of {@link System#nanoTime()} */
    Connection(SocketChannel channel, long endNs) {
        this.channel = channel;
        this.endNs = endNs;
    }

    long endNs() {
        return endNs;
    }

    /**
     * Does what can be done without waiting.
     *
     * @return whether it is over
     */
    boolean goOn(SelectionKey key, Answers answers) throws IOException {
        if (answer == null) {
            int before = head.position();
            if (channel.read(head) < 0) {
                return true;
            }
            answer = answer(before, answers);
            if (answer == null) {
                return false;
            }
        }
        if (answer.hasRemaining()) {
            channel.write(answer);
            if (answer.hasRemaining()) {
                key.interestOps(SelectionKey.OP_WRITE);
                return false;
            }
            channel.shutdownOutput();
            key.interestOps(SelectionKey.OP_READ);
        }
        // The other side closes. If we did, and some of its bytes were unread, its kernel would throw the answer away.
        head.clear();
        return channel.read(head) < 0;
    }

    private ByteBuffer answer(int before, Answers answers) {
        for (int end = Math.max(END.length, before + 1); end <= head.position(); end++) {
            if (isEnd(end)) {
                return answers.to(new String(head.array(), 0, end - END.length, StandardCharsets.ISO_8859_1));
            }
        }
        return head.hasRemaining() ? null : Answers.tooLong();
    }

    private boolean isEnd(int end) {
        for (int i = 0; i < END.length; i++) {
            if (head.get(end - END.length + i) != END[i]) {
                return false;
            }
        }
        return true;
    }

    void close() {
        try {
            channel.close();
        } catch (IOException e) {
            // It is closed all the same.
        }
    }
}
