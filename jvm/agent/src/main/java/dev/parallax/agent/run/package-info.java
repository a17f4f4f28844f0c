/** Reads the options, starts the parts, and says what goes wrong in one line. */
package dev.parallax.agent.run;
