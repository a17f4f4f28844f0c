/** The packed agent with applications that have no code for it, each in its own JVM. */
package dev.parallax.agent.tests;
