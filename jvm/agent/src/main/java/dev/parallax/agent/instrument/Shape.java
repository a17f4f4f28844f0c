package dev.parallax.agent.instrument;

import dev.parallax.agent.Dispatch;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

/**
 * What a place passes on. The code of these classes is copied into the application's methods, so it may refer only to
 * the JDK and {@link Dispatch}.
 */
enum Shape {
    /** The object, on entry. */
    ENTER(Alone.class, null),
    /** The object and the second argument, on entry. */
    SECOND(Second.class, null),
    /** The object and both arguments as an array, on entry. */
    BOTH(Both.class, null),
    /** The object on entry, the result or exception on exit. */
    AROUND(Alone.class, Left.class),
    /** The object and the first argument on entry, the result or exception on exit. */
    FIRST(First.class, Left.class),
    /** Like {@link #FIRST}; the result is replaced. */
    PROMISED(First.class, Promised.class),
    /** The only argument is replaced. */
    REPLACE(Replace.class, null),
    /** For Hikari's pool entry: the pool; the entry and the time it was lent (0 if not kept) as an array. */
    LENT(Lent.class, null);

    private final Class<?> entering;
    /** Null for no exit code. */
    private final Class<?> leaving;

    Shape(Class<?> entering, Class<?> leaving) {
        this.entering = entering;
        this.leaving = leaving;
    }

    /**
     * Creates the advice to weave.
     *
     * @param place number of the {@link Point}
     * @param code finds the code of these classes
     */
    Advice advice(int place, ClassFileLocator code) {
        Advice.WithCustomMapping advice = Advice.withCustomMapping().bind(Place.class, place);
        return leaving == null ? advice.to(entering, code) : advice.to(entering, leaving, code);
    }

    /** Replaced by the number of the {@link Point}. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.PARAMETER)
    @interface Place {}

    private static final class Alone {
        @Advice.OnMethodEnter
        static Object enter(@Place int point, @Advice.Origin Class<?> woven, @Advice.This Object self) {
            return Dispatch.entered(point, woven, self, null);
        }
    }

    private static final class First {
        @Advice.OnMethodEnter
        static Object enter(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.This Object self,
                @Advice.Argument(0) Object first) {
            return Dispatch.entered(point, woven, self, first);
        }
    }

    private static final class Second {
        @Advice.OnMethodEnter
        static void enter(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.This Object self,
                @Advice.Argument(1) Object second) {
            Dispatch.entered(point, woven, self, second);
        }
    }

    private static final class Both {
        @Advice.OnMethodEnter
        static void enter(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.This Object self,
                @Advice.Argument(0) Object first,
                @Advice.Argument(1) Object second) {
            Dispatch.entered(point, woven, self, new Object[] {first, second});
        }
    }

    private static final class Replace {
        @Advice.OnMethodEnter
        static void enter(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.This Object self,
                @Advice.Argument(value = 0, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object argument) {
            Object other = Dispatch.entered(point, woven, self, argument);
            if (other != null) {
                argument = other;
            }
        }
    }

    private static final class Lent {
        @Advice.OnMethodEnter
        static void enter(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.This Object self,
                @Advice.FieldValue("hikariPool") Object pool,
                @Advice.FieldValue("lastBorrowed") long lentNs) {
            Dispatch.entered(point, woven, pool, new Object[] {self, lentNs});
        }
    }

    private static final class Left {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.Enter Object begun,
                @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object returned,
                @Advice.Thrown Throwable thrown) {
            Dispatch.left(point, woven, begun, returned, thrown);
        }
    }

    private static final class Promised {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.Enter Object begun,
                @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object returned,
                @Advice.Thrown Throwable thrown) {
            Object other = Dispatch.left(point, woven, begun, returned, thrown);
            if (other != null) {
                returned = other;
            }
        }
    }
}
