//! The causes of a stall, as far as the kernel's accounts show them: a pure function of the stall and those accounts.

use units::Nanos;

use super::{Sample, Wake};

/// The parts of a stall; all but `pressure` sum to its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Causes {
    /// Runnable while others ran, without the part due to a quota; `None` if the kernel keeps no account.
    pub run_queue: Option<Nanos>,
    /// Stopped by the CPU quota of its control groups.
    pub throttled: Option<Nanos>,
    /// Time given to other machines by the hypervisor; counted in steps of 10 ms.
    pub stolen: Option<Nanos>,
    /// Stopped by a signal, until it was continued.
    pub stopped: Nanos,
    /// None of the above.
    pub unknown: Nanos,
    /// Not part of the sum: for how long, between the samples around the stall but at most its length, at least one
    /// task of this host waited for a CPU.
    pub pressure: Option<Nanos>,
}

/// How long after a stall by SIGSTOP the thread that notes the SIGCONT may run.
const NOTED_LATE: Nanos = Nanos::from_millis(100);

/// The causes of `wake`. `around` are the accounts before and after it, `continued` the instants at which this
/// process was continued after a stop, `cpu` the CPU that the meter is bound to.
///
/// Waiting because of a quota also counts as run-queue latency, so it is subtracted there. An account that grew by
/// more than the stall also grew before or after it: it counts up to the length of the stall.
pub fn explain(
    wake: &Wake,
    cpu: Option<usize>,
    around: Option<&(Sample, Sample)>,
    continued: &[Nanos],
) -> Causes {
    let length = wake.late();
    let mut rest = length;
    let mut take = |part: Nanos| {
        let part = part.min(rest);
        rest = rest.saturating_sub(part);
        part
    };
    let grew = |of: &dyn Fn(&Sample) -> Option<Nanos>| {
        let (before, after) = around?;
        Some(of(after)?.saturating_sub(of(before)?))
    };
    let queued = wake.queued.map(|queued| queued.min(length));
    let throttled = grew(&|sample| sample.throttled);
    // It also grows when other CPUs of the group are throttled: only a thread that waited was affected.
    let throttled = throttled.map(|time| take(queued.map_or(time, |queued| time.min(queued))));
    let run_queue = queued.map(|queued| take(queued.saturating_sub(throttled.unwrap_or_default())));
    let stolen = grew(&|sample| stolen(sample, cpu)).map(&mut take);
    let until = wake.at + NOTED_LATE;
    let was_stopped = continued.iter().any(|&at| at >= wake.due && at <= until);
    let stopped = if was_stopped { take(length) } else { Nanos::ZERO };
    let pressure = grew(&|sample| sample.pressure).map(|time| time.min(length));
    Causes { run_queue, throttled, stolen, stopped, unknown: rest, pressure }
}

/// The time stolen from the meter's CPU, or from all CPUs for a meter that moves.
fn stolen(sample: &Sample, cpu: Option<usize>) -> Option<Nanos> {
    let all = sample.stolen.as_ref()?;
    let of = all.iter().filter(|(number, _)| cpu.is_none_or(|cpu| cpu == *number));
    Some(Nanos(of.map(|(_, time)| time.0).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hiccup::wake;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// A stall at 1000 ms; the accounts grow from zero by these many milliseconds.
    fn causes(length: u64, queued: u64, (throttled, stolen): (u64, u64), continued: &[Nanos]) -> Causes {
        let stall = wake(ms(1_000), ms(1_000 + length), ms(1), Some(ms(queued)));
        let sample = |at, throttled, stolen| Sample {
            began: ms(at),
            at: ms(at),
            throttled: Some(ms(throttled)),
            stolen: Some(vec![(0, ms(99)), (1, ms(stolen))]),
            pressure: None,
        };
        let around = (sample(980, 0, 0), sample(1_200, throttled, stolen));
        let causes = explain(&stall, Some(1), Some(&around), continued);
        let known = [causes.run_queue, causes.throttled, causes.stolen, Some(causes.stopped)];
        let sum: u64 = known.iter().flatten().map(|part| part.0).sum::<u64>() + causes.unknown.0;
        assert_eq!(Nanos(sum), stall.late(), "the parts sum to the stall");
        causes
    }

    #[track_caller]
    fn check(causes: Causes, [run_queue, throttled, stolen, stopped, unknown]: [u64; 5]) {
        assert_eq!(causes.run_queue, Some(ms(run_queue)));
        assert_eq!(causes.throttled, Some(ms(throttled)));
        assert_eq!(causes.stolen, Some(ms(stolen)));
        assert_eq!((causes.stopped, causes.unknown), (ms(stopped), ms(unknown)));
    }

    #[test]
    fn each_part_is_attributed_to_its_known_cause() {
        check(causes(40, 38, (0, 0), &[]), [38, 0, 0, 0, 2]);
        check(causes(40, 38, (30, 0), &[]), [8, 30, 0, 0, 2]);
        check(causes(40, 5, (0, 30), &[]), [5, 0, 30, 0, 5]);
        check(causes(40, 1, (0, 0), &[ms(1_040)]), [1, 0, 0, 39, 0]);
        // Nothing is known about it.
        check(causes(40, 0, (0, 0), &[]), [0, 0, 0, 0, 40]);
    }

    #[test]
    fn an_account_counts_at_most_the_length_of_the_stall() {
        check(causes(40, 40, (500, 0), &[]), [0, 40, 0, 0, 0]);
        check(causes(40, 90, (0, 70), &[]), [40, 0, 0, 0, 0]);
        // Another CPU of the group was throttled: this one did not wait.
        check(causes(40, 0, (40, 0), &[]), [0, 0, 0, 0, 40]);
    }

    #[test]
    fn only_a_continuation_of_that_time_explains_a_stall() {
        check(causes(40, 0, (0, 0), &[ms(999), ms(1_141)]), [0, 0, 0, 0, 40]);
        check(causes(40, 0, (0, 0), &[ms(1_139)]), [0, 0, 0, 40, 0]);
    }

    /// If this fails, an account that the kernel does not keep looks like zero.
    #[test]
    fn an_account_that_is_not_kept_is_absent() {
        let stall = wake(ms(0), ms(40), ms(1), None);
        let causes = explain(&stall, None, None, &[]);
        assert_eq!((causes.run_queue, causes.throttled, causes.stolen), (None, None, None));
        assert_eq!(causes.unknown, ms(40));
    }
}
