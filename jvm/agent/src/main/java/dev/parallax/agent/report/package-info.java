/** Reports what was measured: a record on disk, lines on standard error, responses on the loopback interface. */
package dev.parallax.agent.report;
