package dev.parallax.httpclient5;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hc.core5.http.HttpEntity;
import org.apache.hc.core5.http.io.entity.HttpEntityWrapper;

/** Wraps a body for the application to see why reading it failed; everything else is seen at its connection. */
final class MeasuredEntity extends HttpEntityWrapper {
    private final Attempt attempt;

    MeasuredEntity(HttpEntity body, Attempt attempt) {
        super(body);
        this.attempt = attempt;
    }

    @Override
    public InputStream getContent() throws IOException {
        InputStream content = super.getContent();
        return content == null ? null : new Content(content);
    }

    @Override
    public void writeTo(OutputStream out) throws IOException {
        run(() -> {
            super.writeTo(out);
            return 0;
        });
    }

    @Override
    public void close() throws IOException {
        run(() -> {
            super.close();
            return 0;
        });
    }

    private int run(Read read) throws IOException {
        attempt.startRead();
        try {
            return read.run();
        } catch (Throwable thrown) {
            attempt.fail(thrown);
            throw thrown;
        } finally {
            attempt.endRead();
        }
    }

    private interface Read {
        int run() throws IOException;
    }

    private final class Content extends FilterInputStream {
        Content(InputStream content) {
            super(content);
        }

        @Override
        public int read() throws IOException {
            return run(in::read);
        }

        @Override
        public int read(byte[] to, int from, int length) throws IOException {
            return run(() -> in.read(to, from, length));
        }

        @Override
        public void close() throws IOException {
            run(() -> {
                in.close();
                return 0;
            });
        }
    }
}
