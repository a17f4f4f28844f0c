package dev.parallax.agent.tests;

/** An application that only prints that it ran; with an argument, it waits for its input first. */
public final class OptionsApplication {
    private OptionsApplication() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            System.out.println("ready");
            System.in.read();
        }
        System.out.println("ran");
    }
}
