//! Where the threads of processes are: stacks on a CPU, asleep, and waiting for a CPU.

use std::path::Path;

use export::flame::FlameGraph;
use export::pictures;
use record::document::State;
use record::observation::ObservationBody;
use record::observation::profile::Picture;
use record::stacks::Stacks;
use units::Nanos;
use watch::profile::Profiler;

use super::keeper::{Keeper, Observed};
use super::{Closing, Observer, Rhythm, Setting, conduct};

/// What to profile.
#[derive(Debug, Clone)]
pub struct ProfileSpec {
    /// The processes, with their children.
    pub pids: Vec<u32>,
    /// Samples per second on each busy CPU, on average.
    pub rate: u32,
    /// Functions that spin, besides the known ones.
    pub spins: Vec<String>,
    /// `None`: until another parallax, which controls this one, requests the stop; that is then the regular end.
    pub duration: Option<Nanos>,
}

const INTERVAL: Nanos = Nanos::from_secs(1);

/// Profiles, and keeps the record. `ready` is called once the profile has begun.
///
/// # Errors
///
/// When the kernel refuses, the record cannot be created, or `ready` fails, in one line.
pub fn observe(
    spec: &ProfileSpec,
    mut setting: Setting<'_>,
    ready: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Observed> {
    if spec.duration.is_none() {
        setting.derive("duration", "until the controlling parallax ends it".to_owned());
    }
    setting.claim(|setting| {
        let profiler = Profiler::start(&spec.pids, spec.rate)?;
        let from = profiler.began();
        let body = ObservationBody::Profile(Box::default());
        let keeper = Keeper::begin(&setting, body, Vec::new(), from)?;
        let mut profile = Profile {
            profiler,
            keeper,
            spins: &spec.spins,
            is_gone: false,
            is_stopped: false,
            notice: setting.environment.notice,
        };
        ready()?;
        let until = spec.duration.map_or(Nanos::MAX, |length| from.saturating_add(length));
        let rhythm = Rhythm { from, every: INTERVAL, until, closing: Closing::Now };
        let end = conduct(&mut profile, &rhythm, setting.stop)?;
        let is_short = profile.is_stopped && spec.duration.is_some();
        let state = if is_short { State::Interrupted } else { State::Finished };
        profile.finish(state, end - from, setting.folder)
    })
}

/// A profile from its beginning to its end.
struct Profile<'a> {
    profiler: Profiler,
    keeper: Keeper,
    spins: &'a [String],
    is_gone: bool,
    is_stopped: bool,
    notice: &'a dyn Fn(&str),
}

impl Observer for Profile<'_> {
    fn due(&mut self, _: Nanos, _: Nanos) -> Nanos {
        self.profiler.due()
    }

    fn step(&mut self, stopped: bool) -> bool {
        self.is_gone = !self.profiler.look();
        self.is_stopped = stopped;
        self.is_gone || stopped
    }

    fn close(&mut self, from: Nanos, to: Nanos, _: bool) -> anyhow::Result<()> {
        let zero = self.profiler.began();
        self.keeper.append(&self.profiler.line(), from - zero, to - from, &[]);
        if self.is_gone && !self.is_stopped {
            let passed = to - zero;
            (self.notice)(&format!(
                "the process ended after {passed}; the profile covers the time until then"
            ));
        }
        Ok(())
    }
}

impl Profile<'_> {
    /// Resolves symbol names, draws the flame graphs, and closes the record.
    fn finish(self, state: State, elapsed: Nanos, folder: Option<&Path>) -> anyhow::Result<Observed> {
        let mut keeper = self.keeper;
        let profile = match self.profiler.finish(self.spins) {
            Ok(profile) => profile,
            Err(error) => {
                keeper.finish(State::Broken, elapsed, ObservationBody::Profile(Box::default()));
                return Err(error.into());
            }
        };
        keeper.document.missing = profile.missing;
        let subtitle = pictures::subtitle(&keeper.document, elapsed, &profile.results.processes);
        let body = ObservationBody::Profile(Box::new(profile.results));
        let draw = |(picture, stacks): (Picture, &Stacks)| {
            folder.map_or(Ok(()), |folder| {
                pictures::write(folder, FlameGraph { picture, subtitle: &subtitle, highlight: None }, stacks)
            })
        };
        let drawn = Picture::ALL.into_iter().zip(&profile.stacks).try_for_each(draw);
        let mut observed = keeper.finish(state, elapsed, body);
        observed.damage = observed.damage.or(drawn.err());
        Ok(observed)
    }
}
