package dev.parallax.agent.tests;

/** An application that does nothing but say that it ran; with an argument, it waits for so many milliseconds first. */
public final class OptionsApplication {
    private OptionsApplication() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            System.out.println("ready");
            Thread.sleep(Long.parseLong(arguments[0]));
        }
        System.out.println("ran");
    }
}
