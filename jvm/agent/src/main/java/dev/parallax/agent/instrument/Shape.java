package dev.parallax.agent.instrument;

import dev.parallax.agent.Dispatch;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;

/**
 * The few ways in which a place hands over what it knows. Their code is copied into the application's methods, so it may
 * name the JDK and {@link Dispatch} alone.
 */
enum Shape {
    /** The object, on entering. */
    ENTER(Enter.class),
    /** The object and the second argument, on entering. */
    SECOND(Second.class),
    /** The object, and what is thrown. */
    AROUND(Around.class),
    /** The object and the only argument, and what is thrown. */
    TESTED(Tested.class),
    /** The only argument is replaced. */
    REPLACE(Replace.class),
    /** Of Hikari's entry the pool and the moment in which it was lent. */
    LENT(Lent.class);

    final Class<?> advice;

    Shape(Class<?> advice) {
        this.advice = advice;
    }

    /** Stands for the number of the {@link Point}. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.PARAMETER)
    @interface Place {}

    private static final class Enter {
        @Advice.OnMethodEnter
        static void enter(@Place int point, @Advice.Origin Class<?> woven, @Advice.This Object self) {
            Dispatch.entered(point, woven, self, null);
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

    private static final class Around {
        @Advice.OnMethodEnter
        static Object enter(@Place int point, @Advice.Origin Class<?> woven, @Advice.This Object self) {
            return Dispatch.entered(point, woven, self, null);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.Enter Object begun,
                @Advice.Thrown Throwable thrown) {
            Dispatch.left(point, woven, begun, thrown);
        }
    }

    private static final class Tested {
        @Advice.OnMethodEnter
        static Object enter(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.This Object self,
                @Advice.Argument(0) Object tested) {
            return Dispatch.entered(point, woven, self, tested);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(
                @Place int point,
                @Advice.Origin Class<?> woven,
                @Advice.Enter Object begun,
                @Advice.Thrown Throwable thrown) {
            Dispatch.left(point, woven, begun, thrown);
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
                @Advice.FieldValue("hikariPool") Object pool,
                @Advice.FieldValue("lastBorrowed") long lentNs) {
            Dispatch.entered(point, woven, pool, lentNs);
        }
    }
}
