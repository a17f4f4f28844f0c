//! What happens on the host during a run, for the audit: the host's counters and a hiccup meter, read with each
//! interval.

use host::process::{CpuError, CpuMeter, Detail, End, Wanted};
use host::{Counters, HiccupMeter, Missing, Wake};
use record::document::{HostLimits, MissingFact, PortRange};
use record::{GroupMemory, GroupResources, HostSecond, Interval};
use units::Nanos;

use crate::measured::resources;

/// Share of the local ports in use from which on they are counted exactly, because counting costs time.
const PORTS_WATCHED_PER_MILLE: u64 = 800;

/// Watches the host from its creation until it is dropped.
pub struct HostMonitor {
    counters: Counters,
    /// `None` if its thread could not be started.
    meter: Option<HiccupMeter>,
    no_meter: Option<MissingFact>,
    /// Destination port of the run's connections.
    port: Option<u16>,
    ports_watched: u64,
    /// The server's processes; empty if none were named, or one that was named has ended.
    server: Vec<CpuMeter>,
    /// Their memory at the run's zero.
    memory: GroupMemory,
    no_server: Option<MissingFact>,
    /// A process of the server whose children's CPU time is lost.
    discarding: Option<String>,
    /// The run's zero, from [`HostMonitor::begin`] on.
    start: Nanos,
}

impl HostMonitor {
    /// Starts watching a run whose connections go to `port`, and the resources that `processes` use.
    pub fn start(port: Option<u16>, processes: &[Wanted]) -> HostMonitor {
        let start = |wanted: &Wanted| CpuMeter::start(wanted.clone(), Detail::Processes);
        let server: Result<Vec<CpuMeter>, CpuError> = processes.iter().map(start).collect();
        let gone = |error: &CpuError| MissingFact { what: "server_cpu".to_owned(), why: error.to_string() };
        let meter = HiccupMeter::start(HiccupMeter::TICK);
        let no_meter = meter.as_ref().err().map(|error| MissingFact {
            what: "hiccup".to_owned(),
            why: format!("its thread could not be started: {error}"),
        });
        HostMonitor {
            counters: Counters::start(),
            meter: meter.ok(),
            no_meter,
            port,
            ports_watched: port_range().map_or(0, |range| range.len() * PORTS_WATCHED_PER_MILLE / 1_000),
            no_server: server.as_ref().err().map(gone),
            // Read only here and at the end, while nothing is sent: the kernel walks whole address spaces for it.
            memory: GroupMemory {
                proportional_before: server.as_ref().ok().and_then(|server| proportional(server)),
                ..GroupMemory::default()
            },
            server: server.unwrap_or_default(),
            discarding: None,
            start: Nanos::ZERO,
        }
    }

    /// Sets the run's zero. What happened before it is not part of the run.
    pub fn begin(&mut self, start: Nanos) {
        self.start = start;
        let _ = self.counters.since_last();
        let (_, _, sizes) = self.server().unwrap_or_default();
        self.memory.resident_before = sizes.resident_bytes;
        self.memory.virtual_before = sizes.virtual_bytes;
        if let Some(meter) = &self.meter {
            let _ = meter.take_before(start);
        }
    }

    /// Adds what happened since the previous call to `interval`.
    pub fn note(&mut self, interval: &mut Interval) {
        let reading = self.counters.since_last();
        let server = self.server();
        interval.host = HostSecond {
            throttled: reading.throttled,
            throttled_ns: reading.throttled_time.map(|time| time.0),
            steal_ns: reading.steal.map(|time| time.0),
            cpu_pressure_ns: reading.cpu_pressure.map(|time| time.0),
            listen_drops: reading.listen_drops,
            retransmits: reading.retransmits,
            open_files: reading.open_files,
            ports: self.port.and_then(|port| host::ports_towards(port, self.ports_watched)),
            server_cpu_ns: server.map(|(cpu, ..)| cpu.0),
            server_wait_ns: server.map(|(_, wait, _)| wait.0),
            server: server.map(|(.., resources)| resources),
        };
        if let Some(meter) = &self.meter {
            let end = self.start + interval.start + interval.length;
            let wakes = meter.take_before(end);
            wakes.iter().flat_map(Wake::ticks).for_each(|tick| interval.record_hiccup(tick.late));
        }
    }

    /// What the server's processes used since the last call, and how long their threads waited for a CPU. `None` for
    /// good once a named process has ended: what it used last can no longer be read.
    fn server(&mut self) -> Option<(Nanos, Nanos, GroupResources)> {
        let (mut cpu, mut wait, mut all) = (Nanos::ZERO, Nanos::ZERO, None::<GroupResources>);
        for meter in &mut self.server {
            meter.read();
            let span = meter.take();
            if meter.is_over() || span.processes.iter().any(|process| process.end != End::Alive) {
                self.server.clear();
                return None;
            }
            for group in &span.groups {
                cpu += group.usage.run;
                if self.discarding.is_none() {
                    self.discarding.clone_from(&group.discarding);
                }
                wait += group.usage.wait;
                let resources = resources(group);
                all = Some(all.map_or(resources, |sum| sum.plus(resources)));
            }
        }
        all.map(|resources| (cpu, wait, resources))
    }

    /// The memory of the server's processes at the run's zero and now; `last` has the sizes of the last interval.
    pub fn memory(&self, last: &GroupResources) -> Option<GroupMemory> {
        (!self.server.is_empty()).then(|| GroupMemory {
            resident_after: last.resident_bytes,
            virtual_after: last.virtual_bytes,
            proportional_after: proportional(&self.server),
            ..self.memory
        })
    }

    /// This host's limits on the client, without the client's measured ceiling.
    pub fn limits(&self) -> HostLimits {
        HostLimits {
            open_files: host::open_files_limit(),
            local_ports: port_range(),
            hiccup_tick_ns: self.meter.as_ref().map(|_| HiccupMeter::TICK.0),
            ceiling: None,
        }
    }

    /// What this host does not report, for the record.
    pub fn missing(&self) -> Vec<MissingFact> {
        let fact =
            |missing: &Missing| MissingFact { what: missing.what.to_owned(), why: missing.why.clone() };
        self.counters
            .missing()
            .iter()
            .map(fact)
            .chain(self.no_meter.clone())
            .chain(self.no_server.clone())
            .chain(self.discarding.as_deref().map(without_children))
            .collect()
    }
}

fn without_children(name: &str) -> MissingFact {
    let why = format!(
        "`{}` ignores SIGCHLD, so CPU time of its children that ended is missing; `cpu --cgroup` misses nothing",
        units::escape_text(name)
    );
    MissingFact { what: "server_cpu_of_children".to_owned(), why }
}

/// `None` if this user may not read it for one of the processes.
fn proportional(server: &[CpuMeter]) -> Option<u64> {
    server.iter().flat_map(CpuMeter::proportional).sum()
}

fn port_range() -> Option<PortRange> {
    host::local_ports().map(|(first, last)| PortRange { first, last })
}

#[cfg(test)]
mod tests {
    use record::Series;

    use super::*;

    #[test]
    fn an_interval_has_the_ticks_that_were_due_in_it() {
        let mut monitor = HostMonitor::start(Some(1), &[Wanted::Trees(vec![std::process::id()])]);
        let begin = clock::now() + Nanos::from_millis(20);
        monitor.begin(begin);
        clock::sleep_until(begin + Nanos::from_millis(120));
        monitor.begin(begin);
        let mut interval = Interval::default();
        interval.length = Nanos::from_millis(60);
        monitor.note(&mut interval);
        let ticks = interval.series(Series::Hiccup).unwrap().count();
        // The first tick may have come before the zero, which is reported late.
        assert!((5..=6).contains(&ticks), "{ticks} ticks of {}", HiccupMeter::TICK);
        let mut later = Interval::default();
        (later.start, later.length) = (interval.length, Nanos::from_secs(3_600));
        monitor.note(&mut later);
        assert!(later.series(Series::Hiccup).unwrap().count() >= 6);
        // The meters of this test alone take some.
        assert!(interval.host.server_cpu_ns > Some(0) && interval.host.server_wait_ns.is_some());
        let resources = later.host.server.unwrap();
        let memory = monitor.memory(&resources).unwrap();
        assert!(resources.resident_bytes > 0 && memory.resident_after == resources.resident_bytes);
        assert!(memory.proportional_before > Some(0) && memory.proportional_after > Some(0), "{memory:?}");
        assert!(monitor.missing().iter().all(|fact| !fact.why.is_empty()));
    }
}
