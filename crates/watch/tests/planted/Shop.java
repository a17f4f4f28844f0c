/** Two methods of known CPU shares, and threads that wait for a pool of one connection. */
public class Shop {
    static volatile long sink;

    /** Each turn waits for the one before: it takes the same time wherever the compiler puts the loop. */
    static void priceThree(int turns) {
        long number = turns;
        for (int n = 0; n < turns; n++) number = number * 6364136223846793005L + 1442695040888963407L;
        sink = number;
    }

    static void priceOne(int turns) {
        long number = turns;
        for (int n = 0; n < turns; n++) number = number * 6364136223846793005L + 1442695040888963407L;
        sink = number;
    }

    static void order() {
        priceThree(30_000);
        priceOne(10_000);
    }

    static void serve() {
        for (;;) order();
    }

    /** Named as the pool of a library is: the rules know it by that name. */
    static class HikariPool {
        private final java.util.concurrent.Semaphore connections = new java.util.concurrent.Semaphore(1);

        void getConnection() throws InterruptedException {
            connections.acquire();
        }

        void close() {
            connections.release();
        }
    }

    static final HikariPool POOL = new HikariPool();

    static void query() throws InterruptedException {
        POOL.getConnection();
        try {
            Thread.sleep(2);
        } finally {
            POOL.close();
        }
    }

    static void shop() {
        try {
            for (;;) query();
        } catch (InterruptedException ended) {
            // It is over.
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread clerk = new Thread(Shop::serve, "clerk");
        clerk.start();
        for (int n = 0; n < 3; n++) new Thread(Shop::shop, "customer").start();
        System.out.println("serving");
        System.out.flush();
        clerk.join();
    }
}
