/** Hands out what was measured: a record on disk, lines on standard error, answers on loopback. */
package dev.parallax.agent.report;
