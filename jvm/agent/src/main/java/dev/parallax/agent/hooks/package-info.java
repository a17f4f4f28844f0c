/** What is done at the places that are woven: one class a library, defined beside each copy of the library. */
package dev.parallax.agent.hooks;
