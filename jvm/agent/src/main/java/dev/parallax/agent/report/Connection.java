package dev.parallax.agent.report;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/** One connection to the endpoint: reads the head of one request, responds once, and discards further input. */
final class Connection {
    private static final int HEAD_MAX = 8 * 1024;
    private static final byte[] END = {'\r', '\n', '\r', '\n'};

    private final SocketChannel channel;
    private final long endNs;
    private final ByteBuffer head = ByteBuffer.allocate(HEAD_MAX);

    /** Null until the head is complete. */
    private ByteBuffer answer;

    /** @param endNs when it must be closed, from {@link System#nanoTime()} */
    Connection(SocketChannel channel, long endNs) {
        this.channel = channel;
        this.endNs = endNs;
    }

    long endNs() {
        return endNs;
    }

    /**
     * Does what is possible without waiting.
     *
     * @return whether the connection is finished
     */
    boolean advance(SelectionKey key, Responses answers) throws IOException {
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
        // The peer closes first. If we did while some of its bytes were unread, its kernel would discard the response.
        head.clear();
        return channel.read(head) < 0;
    }

    private ByteBuffer answer(int before, Responses answers) {
        for (int end = Math.max(END.length, before + 1); end <= head.position(); end++) {
            if (isEnd(end)) {
                return answers.to(new String(head.array(), 0, end - END.length, StandardCharsets.ISO_8859_1));
            }
        }
        return head.hasRemaining() ? null : Responses.tooLong();
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
            // It counts as closed anyway.
        }
    }
}
