package dev.parallax.benchmarks;

import dev.parallax.recorder.Durations;
import dev.parallax.recorder.Recorder;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;

/**
 * A writer and a reader, over and over (two CPUs are enough for them): a reading has the sum of the records that it
 * counts, and at the end nothing is missing. Run with {@code java -cp benchmarks.jar org.openjdk.jcstress.Main}.
 */
@JCStressTest
@Outcome(id = "whole, whole, 4 of 4", expect = Expect.ACCEPTABLE, desc = "each reading is a state; nothing is lost")
@State
public class SnapshotsJcstress {
    private final Recorder recorder = new Recorder();

    @Actor
    public void writer() {
        recorder.record(1);
        recorder.record(-1);
        recorder.record(1_000_000_000);
        recorder.record(10);
        recorder.record(100_000);
    }

    @Actor
    public void reader(LLL_Result result) {
        Durations first = recorder.total();
        Durations second = recorder.total();
        result.r1 = isWhole(first) ? "whole" : first.count() + " of " + first.sumNs();
        result.r2 = isWhole(second) && second.count() >= first.count() ? "whole" : second.count() + " of " + second.sumNs();
    }

    @Arbiter
    public void end(LLL_Result result) {
        Durations total = recorder.total();
        boolean isAll = total.sumNs() == 1_000_100_011 && total.unusable() == 1;
        result.r3 = total.count() + " of " + (isAll ? 4 : total.sumNs());
    }

    /** Each record is another power of ten, so a sum shows which ones it includes. */
    private static boolean isWhole(Durations durations) {
        long sum = durations.sumNs();
        long ones = 0;
        for (long rest = sum; rest > 0; rest /= 10) {
            ones += rest % 10;
        }
        boolean hasItsOwn = durations.count() == 0 || sum >= durations.minNs().getAsLong();
        return ones == durations.count() && hasItsOwn;
    }
}
