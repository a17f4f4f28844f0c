//! When samples are taken: on each busy CPU at the requested rate on average, with a time between samples that changes
//! at random.
//!
//! A fixed time beats with a server that does the same in every period: a share of three quarters is then measured as
//! anything from 0 to 1. The kernel's timer is periodic, so its period is drawn again about every ten samples, between
//! two thirds and twice the mean; the length of such a window is random too. Against a load of any period, the scatter
//! of a share is then that of independent samples, which is what its confidence interval states. To draw for each sample
//! would cost ten times as much and gain nothing; to sample more often and drop samples at random would cost more, and
//! still beat with a load of the higher rate.
//!
//! Windows come in pairs of equal length, the second as much below the requested rate as the first was above it. Each
//! CPU has different periods, so that threads in step with one another are not all sampled at once; without the pairs,
//! one CPU would for seconds have more samples than another, and its threads a larger share than their own.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libbpf_rs::{Link, ProgramMut};
use units::Nanos;

use crate::kernel::LoadError;
use crate::kernel::load::refused;

/// The perf events of all CPUs.
pub struct Sampler {
    draws: Draws,
    due: Nanos,
    /// Each owns its event.
    links: Vec<(Link, RawFd)>,
}

impl Sampler {
    /// Without events yet; `rate` samples per second, on average.
    pub fn new(rate: u32, now: Nanos) -> Sampler {
        let mut seed = [0; 16];
        // A seed is not a secret: without it the draws begin at the same place.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        Sampler { draws: Draws::new(rate, u128::from_ne_bytes(seed)), due: now, links: Vec::new() }
    }

    /// Attaches the program on every CPU that is online. A CPU that comes online later has no samples.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when an event is refused.
    pub fn attach(&mut self, program: &ProgramMut<'_>) -> Result<(), LoadError> {
        let cpus = online().map_err(|e| LoadError::Refused(format!("which CPUs are online: {e}")))?;
        for cpu in cpus {
            let event =
                open_event(cpu, self.draws.mean_ns()).map_err(|error| match error.raw_os_error() {
                    Some(libc::EACCES | libc::EPERM) => LoadError::Privilege,
                    _ => LoadError::Refused(format!("a perf event on CPU {cpu}: {error}")),
                })?;
            let link = program.attach_perf_event(event.as_raw_fd()).map_err(|e| refused(&e))?;
            // The link closes it.
            self.links.push((link, std::os::fd::IntoRawFd::into_raw_fd(event)));
        }
        Ok(())
    }

    /// Draws the time between samples of each CPU again if that is due; returns when it is due next.
    ///
    /// # Cost
    ///
    /// A system call and an interrupt per CPU, about ten times per second at a rate below 100: 5 us each (2026-11-25).
    pub fn vary(&mut self, now: Nanos) -> Nanos {
        if now < self.due {
            return self.due;
        }
        let window = self.draws.window();
        for (n, (_, event)) in self.links.iter().enumerate() {
            // An event that keeps its period still samples.
            let _ = set_period(*event, self.draws.period_ns(window, n));
        }
        self.due = now.saturating_add(window);
        self.due
    }

    /// Takes no more samples.
    pub fn stop(&mut self) {
        self.links.clear();
    }
}

/// The sequence of windows and periods.
///
/// Multiples of two irrational numbers, modulo 1: they fill the unit square evenly (M. Roberts, "The unreasonable
/// effectiveness of quasirandom sequences", 2018).
struct Draws {
    rate: f64,
    length: f64,
    period: f64,
    /// Whether the window is the second of its pair.
    second: bool,
}

/// The reciprocals of the plastic number and of its square.
const STEPS: (f64, f64) = (0.754_877_666_246_692_7, 0.569_840_290_998_053_2);
/// The mean length of a window in samples.
const SAMPLES: f64 = 10.0;
/// The shortest mean length of a window in seconds, which limits the cost at high rates.
const SHORTEST: f64 = 0.1;

impl Draws {
    fn new(rate: u32, seed: u128) -> Draws {
        let unit = |bits: u128| (bits as u64 >> 11) as f64 / (1_u64 << 53) as f64;
        Draws { rate: f64::from(rate.max(1)), length: unit(seed), period: unit(seed >> 64), second: true }
    }

    fn mean_ns(&self) -> u64 {
        (1e9 / self.rate) as u64
    }

    /// Goes on to the next window; its length is half to one and a half times the mean.
    fn window(&mut self) -> Nanos {
        self.second = !self.second;
        if !self.second {
            self.length = (self.length + STEPS.0).fract();
            self.period = (self.period + STEPS.1).fract();
        }
        let mean = (SAMPLES / self.rate).max(SHORTEST);
        Nanos((mean * (0.5 + self.length) * 1e9) as u64)
    }

    /// The period of a CPU within the window: half to one and a half times the rate. A window begins with a whole
    /// period, and the rest after its last sample is lost, half a sample on average: the rate makes up for it.
    fn period_ns(&self, window: Nanos, cpu: usize) -> u64 {
        let drawn = (self.period + cpu as f64 * STEPS.0).fract();
        let drawn = if self.second { 1.0 - drawn } else { drawn };
        let rate = self.rate * (0.5 + drawn) + 0.5 / (window.0 as f64 / 1e9);
        (1e9 / rate) as u64
    }
}

fn set_period(event: RawFd, period: u64) -> io::Result<()> {
    // SAFETY: the link that owns the event lives as long as the number is kept next to it.
    #[expect(unsafe_code, reason = "a descriptor that a link of libbpf owns")]
    let event = unsafe { BorrowedFd::borrow_raw(event) };
    // _IOW('$', 4, __u64) of linux/perf_event.h.
    const SET_PERIOD: libc::c_ulong = 0x4008_2404;
    // SAFETY: the kernel reads eight bytes, which live through the call.
    #[expect(unsafe_code, reason = "perf events have no safe wrapper")]
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_PERIOD, &raw const period) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The first 64 bytes of `struct perf_event_attr` of linux/perf_event.h, its first published version.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// The CPU's own clock rather than its cycle counter: each sample stands for the same time on every machine.
fn open_event(cpu: u32, period: u64) -> io::Result<OwnedFd> {
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;
    const EXCLUDE_IDLE: u64 = 1 << 7;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = Attributes {
        kind: SOFTWARE,
        size: 64,
        config: CPU_CLOCK,
        period,
        sample_type: 0,
        read_format: 0,
        flags: EXCLUDE_IDLE,
        wakeup: 0,
        breakpoint: 0,
        config1: 0,
    };
    let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: the attributes live through the call and have the length they state; any process, this CPU, no group.
    #[expect(unsafe_code, reason = "perf_event_open has no safe wrapper")]
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1 as libc::c_int,
            cpu,
            -1 as libc::c_int,
            CLOSE_ON_EXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    let event = i32::try_from(event).map_err(io::Error::other)?;
    // SAFETY: just made, and nothing else owns it.
    #[expect(unsafe_code, reason = "a descriptor of a raw system call")]
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

fn online() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    cpus(text.trim()).ok_or_else(|| io::Error::other(format!("`{}` is no list of CPUs", text.trim())))
}

/// Parses `0-3,8`: never more than the kernel can have.
fn cpus(text: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 8_192;
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(rate: u32, seed: u128, length: f64) -> Vec<f64> {
        instants_on(0, rate, seed, length)
    }

    /// The instants of the samples on one CPU, in seconds. Each window is closed up to 2 ms late.
    fn instants_on(cpu: usize, rate: u32, seed: u128, length: f64) -> Vec<f64> {
        let mut draws = Draws::new(rate, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let (mut begin, mut all) = (0.0, Vec::new());
        while begin < length {
            let window = draws.window();
            let period = draws.period_ns(window, cpu) as f64 / 1e9;
            let end = begin + window.0 as f64 / 1e9 + 0.002 * draws.period;
            let sampled = (1..).map(|n| begin + f64::from(n) * period);
            all.extend(sampled.take_while(|at| *at <= end.min(length)));
            begin = end;
        }
        all
    }

    /// The measured share of a function that has the first three quarters of every period.
    fn share(instants: &[f64], frequency: f64, phase: f64) -> f64 {
        let hits = instants.iter().filter(|at| (*at * frequency + phase).fract() < 0.75);
        hits.count() as f64 / instants.len() as f64
    }

    /// If this fails, the profile of a server that does the same in every period shows shares that are not its own.
    ///
    /// 20 trials of 20 s at the default rate for each load. Independent samples of 1,980 scatter by 0.97 points, so 3
    /// points hold in 998 of 1000.
    #[test]
    fn a_periodic_load_is_measured_like_any_other() {
        for frequency in [99.0, 198.0, 49.5, 33.0, 100.0, 10.0, 1_000.0, 990.0] {
            let trials = (0..20_u32).map(|n| {
                let phase = f64::from(n) / 20.0;
                (share(&instants(99, u128::from(n) + 1, 20.0), frequency, phase) - 0.75).abs()
            });
            let good = trials.filter(|error| *error < 0.03).count();
            assert!(good >= 19, "{good} of 20 at {frequency} Hz");
        }
        // What every trial of an even rate does.
        let even: Vec<_> = (1..1_980).map(|n| f64::from(n) / 99.0).collect();
        assert!((0..20).all(|n| (share(&even, 99.0, f64::from(n) / 20.0 + 0.01) - 0.75).abs() > 0.2));
    }

    /// If this fails, the time that samples stand for is not the time that passed.
    #[test]
    fn the_mean_rate_is_the_requested_one() {
        for rate in [19, 99, 997, 9_973] {
            let count = instants(rate, 7, 60.0).len() as f64;
            assert!((count / 60.0 / f64::from(rate) - 1.0).abs() < 0.02, "{rate}: {count}");
        }
    }

    /// If this fails, the shares of threads on different CPUs are off by more than their intervals say.
    ///
    /// A thread on each of two CPUs, 2,000 samples of both: the 95 % interval reaches 2.19 points to each side. Without
    /// pairs of windows, it holds in 138 of 200 at 997 Hz.
    #[test]
    fn two_cpus_have_equal_shares() {
        for rate in [99, 997] {
            let length = 1_000.0 / f64::from(rate);
            let share = |seed: u128| {
                let count = |cpu| instants_on(cpu, rate, seed, length).len() as f64;
                count(0) / (count(0) + count(1))
            };
            let good = (1..=200).filter(|seed| (share(*seed) - 0.5).abs() < 0.0219).count();
            assert!(good >= 190, "{good} of 200 at {rate} Hz");
        }
    }

    #[test]
    fn a_list_of_cpus_is_read() {
        assert_eq!(cpus("0-2,5").unwrap(), [0, 1, 2, 5]);
        assert_eq!(cpus("0").unwrap(), [0]);
        assert!(cpus("0-4294967295").is_none());
        assert!(cpus("").is_none());
    }
}
