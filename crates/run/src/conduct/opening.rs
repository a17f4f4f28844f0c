//! The document of a run before it begins, and what it contains about this host.

use record::document::{
    ArrivalFacts, ArrivalStamps, Document, Envelope, Host, JourneyFacts, Load as LoadFacts, Model,
    RecordKind, Stamps, Subject,
};

use crate::effective::EffectiveOptions;
use crate::environment::Environment;
use crate::prepare::PreparedRun;
use crate::{load, scenario_file};

/// What is known of a run before it begins.
pub fn opening_document(
    prepared: &PreparedRun,
    options: EffectiveOptions,
    environment: &Environment<'_>,
) -> Document {
    let plan = &prepared.plan;
    Document {
        envelope: Envelope {
            command: environment.command.clone(),
            options,
            host: host_facts(),
            ..Envelope::new(RecordKind::Drive, env!("CARGO_PKG_VERSION"))
        },
        thresholds: Vec::new(),
        subject: Subject {
            url: prepared.url.clone(),
            protocol: prepared.protocol.name().to_owned(),
            request_kinds: prepared.names.len() as u64,
            targets: targets(prepared),
            journeys: journeys(prepared),
            address: None,
        },
        load: LoadFacts {
            model: if plan.load.is_open() { Model::Open } else { Model::Closed },
            rate_per_s: load::rate_per_s(&plan.load),
            arrivals: load::arrival_facts(&plan.load)
                .map(|facts| ArrivalFacts { replay: prepared.replay.clone(), ..facts }),
            think: load::think_facts(&plan.load),
            pace: load::pace_facts(plan),
            callers: plan.pool.users,
            connections: plan.pool.connections.saturating_mul(plan.peers.len() as u64),
            pipeline: prepared.depth,
            workers: plan.workers,
            duration_ns: plan.window.map(|window| window.0),
            request_limit: plan.request_limit,
            warmup: None,
            idle_connections: None,
            requests_per_connection: plan.pool.requests_per_connection,
            changes: Vec::new(),
        },
        stamps: Stamps {
            arrival: ArrivalStamps::Kernel,
            reason: None,
            pairing_error_ns: None,
            wall_clock_steps: 0,
        },
        server_account: None,
        results: None,
    }
}

/// The requests' names, if each has its own figures.
fn targets(prepared: &PreparedRun) -> Vec<String> {
    let apart = (2..=engine::KINDS_APART).contains(&prepared.names.len());
    if apart { prepared.names.clone() } else { Vec::new() }
}

/// The run's journeys; empty unless their requests have figures of their own.
fn journeys(prepared: &PreparedRun) -> Vec<JourneyFacts> {
    let scenario = prepared.protocol.scenario().filter(|_| !targets(prepared).is_empty());
    let journeys = scenario.map(|scenario| scenario_file::journeys(&scenario.kinds_named()));
    journeys.filter(|all| all.len() <= engine::JOURNEYS_APART).unwrap_or_default()
}

/// What a record contains about this host.
pub fn host_facts() -> Host {
    let facts = host::Facts::read();
    Host {
        name: facts.name,
        kernel: facts.kernel,
        cpu_model: facts.cpu_model,
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
        clock_source: facts.clock_source,
        hypervisor: facts.hypervisor,
        boot_id: facts.boot_id,
        pid: facts.pid,
        monotonic_offset_ns: facts.monotonic_offset.filter(|&offset| offset != 0),
        ..Host::default()
    }
}
