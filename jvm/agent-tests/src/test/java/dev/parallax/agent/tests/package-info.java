/** The packed agent next to applications that know nothing of it, each in a JVM of its own. */
package dev.parallax.agent.tests;
