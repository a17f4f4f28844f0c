package dev.parallax.agent.tests;

import org.junit.jupiter.api.TestInfo;

/** Prints how many trials a test took, also when it passes: {@code .ci/run} collects these lines from the log. */
final class Trials {
    private Trials() {}

    static void report(int taken, int most, TestInfo test) {
        String name = test.getTestClass().map(Class::getSimpleName).orElse("") + "." + test.getDisplayName();
        System.out.println("trials: " + taken + " of at most " + most + ": " + name);
    }
}
