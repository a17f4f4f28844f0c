//! The checks of the audit by name: what a finding is about, and what other verbs conclude from it.
//!
//! This is the vocabulary, and part of the wire format; the rules are in `audit`. Every decision that depends on the
//! check of a finding is a method here, so that for a new check all decisions are made in one place.

use std::borrow::Cow;
use std::fmt;

#[cfg(any(test, feature = "schema"))]
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

units::named_enum! {
    /// What a check concerns.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Concern {
        /// The load generator: its program, its clock, its limits, and what its user did to it during the run.
        Client = "client",
        /// The host of the load generator: other processes took its CPU, or the whole host was stalled.
        Host = "host",
        /// The server, or the network to it.
        Server = "server",
        /// The sample: the figures are correct, but less certain than the sample size suggests.
        Sample = "sample",
    }
}

/// One row per check: its documentation, variant, name in records, and what it concerns.
macro_rules! checks {
    ($($(#[$about:meta])* $check:ident = $name:literal: $concern:ident,)+) => {
        /// A check of the audit.
        ///
        /// A record contains its name. A newer program may have checks that this one does not know: they are kept as
        /// [`Check::Other`], and shown.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check {
            $($(#[$about])* $check,)+
            /// A check that this version does not know, with its name.
            Other(String),
        }

        impl Check {
            /// Every check that this version knows, in the order of the audit.
            pub const ALL: &[Check] = &[$(Check::$check),+];

            /// The name in records and reports; stable across versions.
            pub fn name(&self) -> &str {
                match self {
                    $(Check::$check => $name,)+
                    Check::Other(name) => name,
                }
            }

            /// What it concerns. An unknown check counts against the client: a measurement is not trusted merely
            /// because this version cannot interpret a finding.
            pub fn concern(&self) -> Concern {
                match self {
                    $(Check::$check => Concern::$concern,)+
                    Check::Other(_) => Concern::Client,
                }
            }
        }
    };
}

checks! {
    /// Scheduled requests equal the sum of all outcomes.
    Conservation = "conservation": Client,
    /// At least one request succeeded.
    NothingMeasured = "nothing_measured": Server,
    /// The run ended as planned or was ended by its user, not by an error.
    BrokenOff = "broken_off": Client,
    /// The process lived until the run's end.
    CutOff = "cut_off": Client,
    /// No connection failed for lack of a file descriptor.
    Descriptors = "descriptors": Client,
    /// No connection failed for lack of a local port, and most ports stayed free.
    Ports = "ports": Client,
    /// This client was fast enough to send what the schedule required.
    OfferedLoad = "offered_load": Client,
    /// Nobody changed the load during the run.
    LoadChanged = "load_changed": Client,
    /// The server responded as fast as requests were due.
    KeptUp = "kept_up": Server,
    /// Requests were started when they were due.
    ScheduleLag = "schedule_lag": Client,
    /// Responses were read soon after they arrived.
    ClientLag = "client_lag": Client,
    /// No worker was stalled while it had work.
    ClientStall = "client_stall": Client,
    /// No single request waited long for this client.
    ClientLate = "client_late": Client,
    /// No worker was much later than the others.
    SlowWorker = "slow_worker": Client,
    /// The host was not stalled.
    HostStall = "host_stall": Host,
    /// Sleeping threads of this host woke up on time.
    Hiccups = "hiccups": Host,
    /// No CPU quota throttled the load generator.
    CpuQuota = "cpu_quota": Host,
    /// Workers got a CPU when they were ready to run.
    RunQueue = "run_queue": Host,
    /// The hypervisor left this virtual machine its CPUs.
    Steal = "steal": Host,
    /// The busiest worker had CPU time left.
    WorkerCpu = "worker_cpu": Client,
    /// The process had CPU time left.
    ProcessCpu = "process_cpu": Client,
    /// The rate was well below the load generator's own maximum.
    Ceiling = "ceiling": Client,
    /// The listen queues of this host dropped no connection.
    ListenDrops = "listen_drops": Server,
    /// TCP retransmitted hardly any segment.
    Retransmits = "retransmits": Server,
    /// The kernel timestamped the arrival of responses.
    ReadStamps = "read_stamps": Sample,
    /// Nearly every response has an arrival timestamp.
    Unstamped = "unstamped": Sample,
    /// The arrival timestamps agree with the client's own clock readings.
    StampsMoved = "stamps_moved": Client,
    /// The wall clock was not set during the run.
    WallClock = "wall_clock": Client,
    /// Mean number in flight = rate x mean time.
    LittlesLaw = "littles_law": Client,
    /// The run was stationary.
    Drift = "drift": Sample,
    /// No request ended in the outcome `unknown`.
    UnknownOutcome = "unknown_outcome": Sample,
    /// Requests are independent enough for the intervals that are printed.
    Independence = "independence": Sample,
    /// Parallax made the measurement itself; another tool's output is never audited.
    Imported = "imported": Sample,
}

impl Check {
    /// The check with that name; [`Check::Other`] if this version does not know it.
    pub fn from_name(name: &str) -> Check {
        let known = Check::ALL.iter().find(|check| check.name() == name);
        known.cloned().unwrap_or_else(|| Check::Other(name.to_owned()))
    }

    /// Whether a finding means that the load generator was unfit to measure this rate, because of itself or its host. A
    /// search then repeats the probe instead of blaming the server.
    pub fn is_against_client(&self) -> bool {
        matches!(self.concern(), Concern::Client | Concern::Host)
    }

    /// Whether a finding means that an open loop's schedule was missed, whatever the cause. A calibration looks for
    /// this.
    pub fn is_schedule_missed(&self) -> bool {
        matches!(
            self,
            Check::ScheduleLag | Check::ClientLag | Check::ClientLate | Check::OfferedLoad | Check::KeptUp
        )
    }

    /// Whether a finding means that the client or its host was stalled for a while, or lost its CPUs. Figures from such
    /// a time are no property of the client, so a calibration discards them.
    pub fn is_standstill(&self) -> bool {
        matches!(self, Check::Steal | Check::CpuQuota | Check::HostStall | Check::ClientStall)
    }

    /// Whether it requires preparation by the user (`drive --calibrate`). Most users never do that, so reports do not
    /// list it among the checks that could not be made; the record does.
    pub fn is_opt_in(&self) -> bool {
        matches!(self, Check::Ceiling)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Check {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Check, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Check::from_name(&name))
    }
}

/// Any string: a closed list would refuse the records of a program with one more check.
#[cfg(any(test, feature = "schema"))]
impl schemars::JsonSchema for Check {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Check".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for (i, check) in Check::ALL.iter().enumerate() {
            assert_eq!(Check::from_name(check.name()), *check);
            assert!(Check::ALL[i + 1..].iter().all(|other| other.name() != check.name()), "{check}");
        }
    }

    /// If this fails, a record of a newer program is refused, or loses the reason of its verdict.
    #[test]
    fn a_check_of_a_newer_program_is_kept_and_counts_against_the_client() {
        let newer: Check = serde_json::from_str("\"moon_phase\"").unwrap();
        assert_eq!(newer, Check::Other("moon_phase".to_owned()));
        assert_eq!(serde_json::to_string(&newer).unwrap(), "\"moon_phase\"");
        assert!(newer.is_against_client() && !newer.is_opt_in());
    }

    /// If this fails, a search blames the server for faults of its client, or trusts a rate that was measured with
    /// wrong timestamps.
    #[test]
    fn only_the_servers_and_the_samples_findings_leave_the_client_fit() {
        let fit: Vec<&str> =
            Check::ALL.iter().filter(|check| !check.is_against_client()).map(Check::name).collect();
        let expected = [
            "nothing_measured",
            "kept_up",
            "listen_drops",
            "retransmits",
            "read_stamps",
            "unstamped",
            "drift",
            "unknown_outcome",
            "independence",
            "imported",
        ];
        assert_eq!(fit, expected);
        let host: Vec<&str> =
            Check::ALL.iter().filter(|check| check.concern() == Concern::Host).map(Check::name).collect();
        assert_eq!(host, ["host_stall", "hiccups", "cpu_quota", "run_queue", "steal"]);
    }
}
