/** What happens at instrumented places: one class per library, defined next to each copy of the library. */
package dev.parallax.agent.hooks;
