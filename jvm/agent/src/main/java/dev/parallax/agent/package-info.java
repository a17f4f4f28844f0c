/**
 * Entry points: the only four classes visible to the application.
 *
 * <p>Start with {@code java -javaagent:parallax-agent.jar=options -jar application.jar}. {@code java -jar
 * parallax-agent.jar help} prints the options; {@code attach PID options} loads the agent into a running JVM.
 * Everything else in the jar, including libraries, is loaded by {@code AgentLoader}, which no application class uses.
 * Instrumented classes call {@code Dispatch}, which is defined in the bootstrap loader.
 */
package dev.parallax.agent;
