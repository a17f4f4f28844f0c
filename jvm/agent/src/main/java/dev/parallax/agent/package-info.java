/**
 * The way into an application: the four classes that it could see, if it looked.
 *
 * <p>{@code java -javaagent:parallax-agent.jar=options -jar application.jar}; {@code java -jar parallax-agent.jar help}
 * prints the options, and {@code attach PID options} in place of it loads the agent into a JVM that runs. All else in the
 * jar, libraries included, is loaded by {@code AgentLoader}, which no class of an application asks. What is woven into the
 * application's classes calls {@code Dispatch}, which lies where all class loaders look first: in the bootstrap loader.
 */
package dev.parallax.agent;
