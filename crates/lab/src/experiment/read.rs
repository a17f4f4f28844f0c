//! Reads an experiment file and works out what it means; errors give the place and what was probably meant.

use std::ops::Range;

use comparison::ComparedMetric;
use toml::Spanned;
use units::Nanos;

use super::factors::{compared, factors, skipped};
use super::format::{Compare, File, Load, Probe, Ready, Server};
use super::place::{Slip, slip_of};
use super::spec::{Experiment, LoadKind, LoadSpec, ProbeSpec, ReadySpec, ServerSpec};
use super::template::{Template, is_name};
use super::values::Named;

impl Experiment {
    /// Reads the text of the file `name`.
    ///
    /// # Errors
    ///
    /// The first mistake, in one line: `file:line:column: what`.
    pub fn read(name: &str, text: &str) -> Result<Experiment, String> {
        let file: Result<File, Slip> = toml::from_str(text).map_err(|error| slip_of(&error));
        file.and_then(|file| experiment(&file)).map_err(|slip| slip.line(name, text))
    }
}

/// Blocks unless given: with ten, a paired SD of 1.5 % shows a difference of 3 % in nine of ten experiments.
const BLOCKS: usize = 10;

/// More blocks than this take longer than a host stays the same.
const MOST_BLOCKS: usize = 1000;

const BUILD: Nanos = Nanos::from_secs(30 * 60);
const READY: Nanos = Nanos::from_secs(30);
const PROBE: Nanos = Nanos::from_secs(10);
const STOP: Nanos = Nanos::from_secs(10);

/// A load that takes this much longer than its window does not end.
const LOAD_SPARE: Nanos = Nanos::from_secs(60);

/// The longest time of a load whose length is not known.
const LOAD: Nanos = Nanos::from_secs(600);

fn experiment(file: &File) -> Result<Experiment, Slip> {
    let version = &file.format;
    if *version.get_ref() != 1 {
        return Err(Slip::new(version.span(), "this program reads format 1"));
    }
    if !is_name(file.name.get_ref()) {
        return Err(Slip::new(file.name.span(), "a name consists of letters, digits, - and _"));
    }
    let blocks = file.plan.blocks.as_ref();
    if let Some(blocks) = blocks.filter(|blocks| !(1..=MOST_BLOCKS).contains(blocks.get_ref())) {
        return Err(Slip::new(blocks.span(), format!("between 1 and {MOST_BLOCKS} blocks can be run")));
    }
    let factors = factors(&file.factors)?;
    let compared = compared(&file.factors, &factors)?;
    let names = Names::new(factors.iter().map(|factor| factor.name.as_str()));
    let server = file.server.as_ref().map(|server| server_of(server, &names)).transpose()?;
    let load = load_of(&file.load, &names)?;
    let is_drive = matches!(load.kind, LoadKind::Drive { .. });
    let (primary, also, margins) = metrics(&file.compare)?;
    let observers = templates(&file.observe.commands, |text| text, &names.with_pid)?;
    Ok(Experiment {
        name: file.name.get_ref().clone(),
        description: file.description.clone(),
        seed: file.seed.unwrap_or(1),
        skip: skipped(&file.plan.skip, &factors)?,
        compared,
        factors,
        blocks: blocks.map_or(BLOCKS, |blocks| *blocks.get_ref()),
        twin: file.plan.twin.unwrap_or(true) && compared.is_some(),
        order: file.plan.order,
        cpus: file.plan.cpus,
        measures_server: file.observe.cpu.unwrap_or(true) && is_drive && server.is_some(),
        server,
        load,
        observers,
        primary,
        also,
        margins,
    })
}

/// The names that a template may contain.
struct Names {
    /// Before a run exists.
    at_build: Vec<String>,
    at_start: Vec<String>,
    with_pid: Vec<String>,
}

impl Names {
    fn new<'a>(factors: impl Iterator<Item = &'a str>) -> Names {
        let labels = factors.flat_map(|name| [name.to_owned(), format!("{name}.label")]);
        let at_build: Vec<String> = labels.chain(["results".to_owned()]).collect();
        let of_run = ["port", "run", "block"].map(str::to_owned);
        let at_start: Vec<String> = at_build.iter().cloned().chain(of_run).collect();
        let with_pid = at_start.iter().cloned().chain(["pid".to_owned()]).collect();
        Names { at_build, at_start, with_pid }
    }
}

fn template(text: &str, span: Range<usize>, names: &[String]) -> Result<Template, Slip> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Template::new(text, &names).map_err(|what| Slip::new(span, what))
}

fn spanned(text: &Spanned<String>, names: &[String]) -> Result<Template, Slip> {
    if text.get_ref().trim().is_empty() {
        return Err(Slip::new(text.span(), "is empty"));
    }
    template(text.get_ref(), text.span(), names)
}

fn maybe(text: Option<&Spanned<String>>, names: &[String]) -> Result<Option<Template>, Slip> {
    text.map(|text| spanned(text, names)).transpose()
}

fn templates<T>(
    named: &Named<T>,
    text: impl Fn(&T) -> &String,
    names: &[String],
) -> Result<Vec<(String, Template)>, Slip> {
    let each = named
        .iter()
        .map(|(name, value)| Ok((name.clone(), template(text(value.get_ref()), value.span(), names)?)));
    each.collect()
}

fn time(text: Option<&Spanned<String>>, default: Nanos) -> Result<Nanos, Slip> {
    Ok(maybe_time(text)?.unwrap_or(default))
}

fn maybe_time(text: Option<&Spanned<String>>) -> Result<Option<Nanos>, Slip> {
    let Some(text) = text else { return Ok(None) };
    match text.get_ref().parse::<Nanos>() {
        Ok(time) if time > Nanos::ZERO => Ok(Some(time)),
        Ok(_) => Err(Slip::new(text.span(), "must be longer than 0")),
        Err(error) => Err(Slip::new(text.span(), error.to_string())),
    }
}

fn server_of(server: &Server, names: &Names) -> Result<ServerSpec, Slip> {
    let base = server.url.as_ref().map(Spanned::get_ref);
    let ready = server.ready.as_ref().map(|ready| ready_of(ready, base, &names.with_pid));
    let probe = |probe: &Option<Spanned<Probe>>| {
        probe.as_ref().map(|probe| probe_of(probe, base, &names.with_pid)).transpose()
    };
    Ok(ServerSpec {
        build: maybe(server.build.as_ref(), &names.at_build)?,
        build_within: time(server.build_within.as_ref(), BUILD)?,
        start: spanned(&server.start, &names.at_start)?,
        env: templates(&server.env, |value| &value.0, &names.at_start)?,
        url: maybe(server.url.as_ref(), &names.at_start)?,
        ready: ready.transpose()?,
        check: probe(&server.check)?,
        proof: probe(&server.proof)?,
        version: maybe(server.version.as_ref(), &names.with_pid)?,
        stop: maybe(server.stop.command.as_ref(), &names.with_pid)?,
        stop_within: time(server.stop.within.as_ref(), STOP)?,
    })
}

/// A path needs an address before it.
fn url(text: &str, base: Option<&String>, span: Range<usize>, names: &[String]) -> Result<Template, Slip> {
    if text.starts_with('/') && base.is_none() {
        return Err(Slip::new(span, "a path needs an address before it: give server.url"));
    }
    template(text, span, names)
}

fn ready_of(
    ready: &Spanned<Ready>,
    base: Option<&String>,
    names: &[String],
) -> Result<(ReadySpec, Nanos), Slip> {
    let (spec, span) = (ready.get_ref(), || ready.span());
    let found = match (&spec.http, &spec.tcp, &spec.log, &spec.command) {
        (Some(http), None, None, None) => ReadySpec::Http(url(http, base, span(), names)?),
        (None, Some(tcp), None, None) => {
            let place = if tcp.0.contains(':') { tcp.0.clone() } else { format!("127.0.0.1:{}", tcp.0) };
            ReadySpec::Tcp(template(&place, span(), names)?)
        }
        (None, None, Some(log), None) => ReadySpec::Log(template(log, span(), names)?),
        (None, None, None, Some(command)) => ReadySpec::Command(template(command, span(), names)?),
        _ => return Err(Slip::new(span(), "give one of http, tcp, log and command")),
    };
    Ok((found, time(spec.within.as_ref(), READY)?))
}

fn probe_of(probe: &Spanned<Probe>, base: Option<&String>, names: &[String]) -> Result<ProbeSpec, Slip> {
    let (spec, span) = (probe.get_ref(), || probe.span());
    let has_text = spec.http.is_some() || spec.command.is_some();
    if !has_text && spec.maps_contains.is_none() && spec.command_line_contains.is_none() {
        let what = "give at least one of http, command, maps_contains and command_line_contains";
        return Err(Slip::new(span(), what));
    }
    if spec.contains.is_some() && !has_text || spec.json.is_some() && spec.http.is_none() {
        return Err(Slip::new(span(), "`contains` and `json` need `http`, or a command for `contains`"));
    }
    let text = |text: &Option<String>| text.as_ref().map(|text| template(text, span(), names)).transpose();
    let json = spec.json.as_ref().map(|members| serde_json::Value::from(members.clone()).to_string());
    Ok(ProbeSpec {
        http: spec.http.as_ref().map(|http| url(http, base, span(), names)).transpose()?,
        status: spec.status.unwrap_or(200),
        contains: text(&spec.contains)?,
        json: text(&json)?,
        command: text(&spec.command)?,
        maps_contains: text(&spec.maps_contains)?,
        command_line_contains: text(&spec.command_line_contains)?,
        within: time(spec.within.as_ref(), PROBE)?,
    })
}

fn load_of(load: &Load, names: &Names) -> Result<LoadSpec, Slip> {
    let (window, warmup) = (maybe_time(load.window.as_ref())?, maybe_time(load.warmup.as_ref())?);
    let names = &names.with_pid;
    let kind = match (&load.drive, &load.scenario, &load.command) {
        (None, None, Some(command)) => {
            if let Some(text) = load.warmup.as_ref() {
                return Err(Slip::new(text.span(), "only a load of `drive` has a warm-up"));
            }
            let import = load.import.as_ref().map(|tool| tool.get_ref().clone());
            LoadKind::Program { command: spanned(command, names)?, import }
        }
        (None, None, None) => {
            return Err(Slip::new(0..0, "the load has no drive, scenario or command"));
        }
        (_, _, Some(command)) => {
            return Err(Slip::new(command.span(), "a load is either `drive` or `command`"));
        }
        (drive, scenario, None) => {
            if let Some(import) = &load.import {
                return Err(Slip::new(import.span(), "the load of `drive` has a record already"));
            }
            let words = [scenario, drive].map(|text| maybe(text.as_ref(), names));
            let [scenario, drive] = words;
            let texts = [scenario?, drive?];
            let line: Vec<&str> = texts.iter().flatten().map(Template::as_written).collect();
            LoadKind::Drive { words: template(&line.join(" "), 0..0, names)?, window }
        }
    };
    if let (Some(warmup), None) = (load.warmup.as_ref(), window) {
        return Err(Slip::new(warmup.span(), "a warm-up needs `window`, the length of what is measured"));
    }
    let length = window.or_else(|| match &kind {
        LoadKind::Drive { words, .. } => duration(words.as_written()),
        LoadKind::Program { .. } => None,
    });
    let within = length.map_or(LOAD, |length| length + LOAD_SPARE);
    Ok(LoadSpec {
        kind,
        warmup,
        expected: length.map(|length| length + warmup.unwrap_or(Nanos::ZERO)),
        within: time(load.within.as_ref(), within)?,
    })
}

/// The length that a line of `drive` gives.
fn duration(line: &str) -> Option<Nanos> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| matches!(*word, "-d" | "--duration"));
    let joined = words.iter().find_map(|word| word.strip_prefix("--duration="));
    joined.or_else(|| words.get(at? + 1).copied())?.parse().ok()
}

type Metrics = (Option<ComparedMetric>, Vec<ComparedMetric>, Vec<(String, f64)>);

fn metrics(compare: &Compare) -> Result<Metrics, Slip> {
    let metric = |name: &Spanned<String>| {
        ComparedMetric::from_name(name.get_ref()).map_err(|what| Slip::new(name.span(), what))
    };
    let margin = |(name, share): (&String, &Spanned<String>)| {
        let slip = |what| Slip::new(share.span(), what);
        let metric = ComparedMetric::from_name(name).map_err(slip)?;
        let percent = share.get_ref().strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
        let percent = percent.ok_or_else(|| slip("is no share from 0% to 100%".to_owned()))?;
        Ok((metric.name.to_owned(), percent / 100.0))
    };
    Ok((
        compare.primary.as_ref().map(metric).transpose()?,
        compare.also.iter().map(metric).collect::<Result<_, _>>()?,
        compare.same.iter().map(margin).collect::<Result<_, _>>()?,
    ))
}
