//! The options of a run by name: where each is in a [`RunSpec`], its default, and its group.
//!
//! One table for everything that handles options by name: flags, the `[run]` keys of a scenario, the record's list of
//! effective values, and the modes, which each use some groups and refuse the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use codec::web::{Sha256Digest, StatusSet};
use database::is_database;
use findings::Condition;
use record::document::OptionSource;
use regex::Regex;
use schedule::{Jitter, Speed, Think};
use serde_json::{Map, Value};
use units::{Bytes, Rate};

use crate::replay::Methods;
use crate::requests_file::KeepRequests;
use crate::spec::RunSpec;
use crate::values::{
    Count, Drain, HttpChoice, Length, ListenAddress, Measured, OnInvalid, PaceChoice, Pid, Resolve, Spacing,
    StageText, StampSource, Switch, Timeout, TlsVersionChoice, WatchSubject, Written, value,
};
use record::record_mode::RecordMode;

/// Options that a mode uses or refuses together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What is requested: URLs or a file of targets.
    Target,
    /// The parts of each request to a URL.
    Request,
    /// Statements to a database.
    Statement,
    /// How to log in to a database.
    Login,
    /// What a response must be like.
    Expectation,
    /// Changes to a scenario file.
    Scenario,
    /// When requests are due, how long and how many.
    Schedule,
    /// Which requests of a recording are sent.
    Recording,
    /// How the requests of one rate are spaced.
    Spacing,
    /// The random seed.
    Seed,
    /// How many requests may be in flight or queued.
    Users,
    /// The shape of the client: connections, threads, pace, timestamps.
    Client,
    /// How to connect to the servers.
    Connection,
    /// What only HTTP has: its version, headers, and names that are looked up in another way.
    Http,
    /// Requests in flight on one connection.
    Pipeline,
    Tls,
    /// Timeouts, and the largest response.
    Limits,
    /// What fails the run: conditions, and an invalid measurement.
    Thresholds,
    /// CPU time of the server's processes.
    ServerCpu,
    /// Observers that run during the measurement.
    Observers,
    /// What is kept besides sums: individual requests, or no record at all.
    Requests,
    /// Where figures are sent during the run.
    Sinks,
    /// The results directory, and its permissions.
    Folder,
    /// Results as JSON.
    Json,
    /// No progress.
    Quiet,
    /// The details of a report.
    Details,
    /// No live view.
    Tui,
    /// No colors.
    Color,
}

/// How the texts of an option are laid out in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    /// An option that may be repeated.
    List,
    Flag,
}

/// One option of a run.
#[derive(Debug)]
pub struct RunOption {
    /// The name on the command line, without dashes.
    pub name: &'static str,
    pub group: Group,
    /// JSON pointers to its places in a spec. The request decides which of several is used.
    paths: &'static [&'static str],
    shape: Shape,
    /// The default value, if it does not depend on anything else.
    pub default: Option<&'static str>,
    check: fn(&str) -> Result<(), String>,
}

fn reads<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(|_| ()).map_err(|error| error.to_string())
}

type Row = (
    &'static str,
    Group,
    &'static [&'static str],
    Shape,
    Option<&'static str>,
    fn(&str) -> Result<(), String>,
);

const fn option((name, group, paths, shape, default, check): Row) -> RunOption {
    RunOption { name, group, paths, shape, default, check }
}

use Group as G;
use Shape::{Flag, List, One};

/// All options of a run.
#[rustfmt::skip]
pub static OPTIONS: &[RunOption] = &[
    option(("url", G::Target, &["/request/urls/url", "/request/scenario/file", "/request/scenario/database", "/request/statements/url"], List, None, reads::<String>)),
    option(("targets", G::Target, &["/request/targets/file"], One, None, reads::<String>)),
    option(("method", G::Request, &["/request/urls/method"], One, None, reads::<String>)),
    option(("header", G::Request, &["/request/targets/header", "/request/urls/header"], List, None, reads::<String>)),
    option(("body", G::Request, &["/request/urls/body"], One, None, reads::<String>)),
    option(("query", G::Statement, &["/request/statements/query"], List, None, reads::<String>)),
    option(("prepared", G::Statement, &["/request/statements/prepared"], Flag, Some(""), reads::<bool>)),
    option(("workload", G::Scenario, &["/request/scenario/workload"], One, None, reads::<String>)),
    option(("command", G::Scenario, &["/request/scenario/command"], List, None, reads::<String>)),
    option(("tables", G::Scenario, &["/request/scenario/tables"], One, None, reads::<Count>)),
    option(("rows", G::Scenario, &["/request/scenario/rows"], One, None, reads::<Count>)),
    option(("set", G::Scenario, &["/request/scenario/set"], List, None, reads::<String>)),
    option(("users", G::Users, &["/load/model/closed/users"], One, None, reads::<Count>)),
    option(("max-in-flight", G::Users, &["/load/model/open/max_in_flight"], One, None, reads::<Count>)),
    option(("think", G::Schedule, &["/load/model/closed/think"], One, None, reads::<Think>)),
    option(("rate", G::Schedule, &["/load/model/open/schedule/steady/rate"], One, None, reads::<Rate>)),
    option(("arrivals", G::Spacing, &["/load/model/open/schedule/steady/arrivals"], One, None, reads::<Spacing>)),
    option(("jitter", G::Spacing, &["/load/model/open/schedule/steady/jitter"], One, None, reads::<Jitter>)),
    option(("stage", G::Schedule, &["/load/model/open/schedule/stages/stage"], List, None, reads::<StageText>)),
    option(("replay", G::Schedule, &["/load/model/open/schedule/replay/file"], One, None, reads::<String>)),
    option(("speed", G::Schedule, &["/load/model/open/schedule/replay/speed"], One, None, reads::<Speed>)),
    option(("replay-column", G::Schedule, &["/load/model/open/schedule/replay/column"], One, None, reads::<String>)),
    option(("replay-times-only", G::Recording, &["/load/model/open/schedule/replay/times_only"], Flag, None, reads::<bool>)),
    option(("replay-methods", G::Recording, &["/load/model/open/schedule/replay/methods"], One, None, reads::<Methods>)),
    option(("replay-filter", G::Recording, &["/load/model/open/schedule/replay/filter"], One, None, reads::<Regex>)),
    option(("replay-credentials", G::Recording, &["/load/model/open/schedule/replay/credentials"], Flag, None, reads::<bool>)),
    option(("duration", G::Schedule, &["/load/duration"], One, None, reads::<Length>)),
    option(("count", G::Schedule, &["/load/count"], One, None, reads::<Count>)),
    option(("warmup", G::Schedule, &["/load/warmup"], One, None, reads::<Length>)),
    option(("seed", G::Seed, &["/load/seed"], One, None, reads::<u64>)),
    option(("pace", G::Client, &["/load/pace"], One, Some("balanced"), reads::<PaceChoice>)),
    option(("connections", G::Client, &["/pool/connections"], One, Some("10"), reads::<Count>)),
    option(("idle-connections", G::Connection, &["/pool/idle_connections"], One, Some("0"), reads::<u64>)),
    option(("reconnect-every", G::Connection, &["/pool/reconnect_every"], One, None, reads::<Count>)),
    option(("connect-rate", G::Connection, &["/pool/connect_rate"], One, None, reads::<Rate>)),
    option(("pipeline", G::Pipeline, &["/pool/pipeline"], One, Some("1"), reads::<Count>)),
    option(("workers", G::Client, &["/pool/workers"], One, None, reads::<Count>)),
    option(("stamps", G::Client, &["/limits/stamps"], One, Some("kernel"), reads::<StampSource>)),
    option(("http", G::Http, &["/connection/http"], One, Some("auto"), reads::<HttpChoice>)),
    option(("streams", G::Http, &["/connection/streams"], One, Some("1"), reads::<Count>)),
    option(("resolve", G::Http, &["/connection/resolve"], List, None, reads::<Resolve>)),
    option(("unix", G::Connection, &["/connection/unix"], One, None, reads::<String>)),
    option(("password-file", G::Login, &["/connection/password_file"], One, None, reads::<String>)),
    option(("setup-query", G::Login, &["/connection/setup_query"], List, None, reads::<String>)),
    option(("server-account", G::Login, &["/connection/server_account"], Flag, Some(""), reads::<bool>)),
    option(("source", G::Connection, &["/connection/source"], List, None, reads::<IpAddr>)),
    option(("insecure", G::Tls, &["/tls/insecure"], Flag, Some(""), reads::<bool>)),
    option(("cacert", G::Tls, &["/tls/cacert"], One, None, reads::<String>)),
    option(("cert", G::Tls, &["/tls/cert"], One, None, reads::<String>)),
    option(("key", G::Tls, &["/tls/key"], One, None, reads::<String>)),
    option(("sni", G::Tls, &["/tls/sni"], One, None, reads::<String>)),
    option(("alpn", G::Http, &["/tls/alpn"], List, None, reads::<String>)),
    option(("tls-version", G::Tls, &["/tls/tls_version"], One, Some("auto"), reads::<TlsVersionChoice>)),
    option(("tls-resumption", G::Tls, &["/tls/tls_resumption"], One, Some("on"), reads::<Switch>)),
    option(("expect-status", G::Expectation, &["/checks/expect_status"], One, None, reads::<StatusSet>)),
    option(("expect-body-contains", G::Expectation, &["/checks/expect_body_contains"], One, None, reads::<String>)),
    option(("expect-sha256", G::Expectation, &["/checks/expect_sha256"], One, None, reads::<Sha256Digest>)),
    option(("fail-if", G::Thresholds, &["/checks/fail_if"], List, None, reads::<Condition>)),
    option(("on-invalid", G::Thresholds, &["/checks/on_invalid"], One, Some("fail"), reads::<OnInvalid>)),
    option(("max-head", G::Http, &["/checks/max_head"], One, Some("64KiB"), reads::<Bytes>)),
    option(("max-body", G::Limits, &["/checks/max_body"], One, Some("1GiB"), reads::<Bytes>)),
    option(("timeout", G::Limits, &["/limits/timeout"], One, Some("30s"), reads::<Timeout>)),
    option(("connect-timeout", G::Limits, &["/limits/connect_timeout"], One, Some("5s"), reads::<Timeout>)),
    option(("checkout-timeout", G::Limits, &["/limits/checkout_timeout"], One, Some("30s"), reads::<Timeout>)),
    option(("drain", G::Limits, &["/limits/drain"], One, None, reads::<Drain>)),
    option(("keep-trying", G::Limits, &["/limits/keep_trying"], Flag, Some(""), reads::<bool>)),
    option(("watch", G::Observers, &["/observers/watch"], One, None, reads::<WatchSubject>)),
    option(("profile", G::Observers, &["/observers/profile"], One, None, reads::<Pid>)),
    option(("watch-cpu", G::ServerCpu, &["/observers/watch_cpu"], List, None, reads::<Measured>)),
    option(("prometheus", G::Sinks, &["/sinks/prometheus"], One, None, reads::<ListenAddress>)),
    option(("prometheus-linger", G::Sinks, &["/sinks/prometheus_linger"], One, Some("off"), reads::<Timeout>)),
    option(("otlp", G::Sinks, &["/sinks/otlp"], One, None, reads::<String>)),
    option(("otlp-interval", G::Sinks, &["/sinks/otlp_interval"], One, Some("10s"), reads::<Length>)),
    option(("jsonl", G::Sinks, &["/sinks/jsonl"], One, None, reads::<String>)),
    option(("csv", G::Sinks, &["/sinks/csv"], One, None, reads::<String>)),
    option(("output", G::Folder, &["/output/folder"], One, None, reads::<String>)),
    option(("record-mode", G::Folder, &["/output/record_mode"], One, None, reads::<RecordMode>)),
    option(("block", G::Requests, &["/output/block"], One, None, reads::<String>)),
    option(("no-record", G::Requests, &["/output/no_record"], Flag, Some(""), reads::<bool>)),
    option(("requests", G::Requests, &["/output/requests"], One, None, reads::<KeepRequests>)),
    option(("json", G::Json, &["/output/json"], Flag, Some(""), reads::<bool>)),
    option(("quiet", G::Quiet, &["/output/quiet"], Flag, Some(""), reads::<bool>)),
    option(("verbose", G::Details, &["/output/verbose"], Flag, Some(""), reads::<bool>)),
    option(("no-tui", G::Tui, &["/output/no_tui"], Flag, Some(""), reads::<bool>)),
    option(("no-color", G::Color, &["/output/no_color"], Flag, Some(""), reads::<bool>)),
];

/// The option of this name.
pub fn named(name: &str) -> Option<&'static RunOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

/// Reads `text` as a value of the option `name`.
///
/// # Errors
///
/// Why the text is not a value of that option, without the option's name.
pub fn check(name: &str, text: &str) -> Result<(), String> {
    named(name).map_or(Ok(()), |option| (option.check)(text))
}

/// The default of the option `name`; panics if it has none.
pub fn default(name: &str) -> &'static str {
    let known = named(name).and_then(|option| option.default);
    known.expect("only an option with a constant default is asked for it")
}

/// The value of a field, or the default of the option `name`.
pub fn or_default<T: Clone + std::str::FromStr<Err: std::fmt::Display>>(
    field: &Option<Written<T>>,
    name: &str,
) -> T {
    value(field)
        .cloned()
        .unwrap_or_else(|| default(name).parse().ok().expect("the default of an option is one of its values"))
}

/// A given option: its texts, and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption {
    /// More than one if the option was repeated; `true` for a flag.
    pub texts: Vec<String>,
    pub source: OptionSource,
}

/// The options that were given, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenOptions(pub BTreeMap<String, GivenOption>);

impl GivenOptions {
    /// Adds an option given by the user, or replaces it.
    pub fn set(&mut self, name: &str, texts: impl IntoIterator<Item = impl Into<String>>) {
        let texts = texts.into_iter().map(Into::into).collect();
        self.0.insert(name.to_owned(), GivenOption { texts, source: OptionSource::Given });
    }

    /// Marks the option as not given, even if a scenario file sets it.
    pub fn withhold(&mut self, name: &str) {
        self.set(name, [""; 0]);
    }

    /// Whether the option was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|given| !given.texts.is_empty())
    }

    /// A copy without the options `names`.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> GivenOptions {
        let kept = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        GivenOptions(kept.map(|(name, given)| (name.clone(), given.clone())).collect())
    }

    /// The first text of an option, if it was given.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.texts.first().map(String::as_str)
    }

    /// Whether the target is a scenario: a file, or a built-in one.
    pub fn names_scenario(&self) -> bool {
        self.is_built_in()
            || self.first("url").is_some_and(|text| text.ends_with(".toml") && !text.contains("://"))
    }

    /// Whether the target is a scenario that is made here: a workload, or commands.
    pub fn is_built_in(&self) -> bool {
        self.has("workload") || self.has("command")
    }

    /// Whether the target is a database.
    pub fn names_database(&self) -> bool {
        self.first("url").is_some_and(is_database)
    }

    /// Whether the load is an open loop.
    pub fn is_open(&self) -> bool {
        ["rate", "stage", "replay"].iter().any(|name| self.has(name))
    }

    /// The spec of these options.
    ///
    /// # Errors
    ///
    /// One line for a value that cannot be read, and for options that exclude or need each other.
    pub fn spec(&self) -> anyhow::Result<RunSpec> {
        self.check_together()?;
        let mut spec = Value::Object(Map::new());
        for (name, given) in self.0.iter().filter(|(_, given)| !given.texts.is_empty()) {
            let option = self.meant(name)?;
            for text in &given.texts {
                (option.check)(text).map_err(|error| {
                    anyhow::anyhow!("invalid value '{text}' for '--{name}': {error}; see --help")
                })?;
            }
            let value = match option.shape {
                Shape::One => given.texts.last().cloned().map_or(Value::Null, Value::String),
                Shape::List => given.texts.clone().into(),
                Shape::Flag => Value::Bool(given.texts.last().is_some_and(|text| text == "true")),
            };
            self.insert(&mut spec, option, value);
        }
        let others: BTreeMap<&String, OptionSource> = self
            .0
            .iter()
            .filter(|(_, given)| given.source != OptionSource::Given)
            .map(|(name, given)| (name, given.source))
            .collect();
        if !others.is_empty() {
            spec["sources"] = serde_json::to_value(others)?;
        }
        // By way of text, as a spec that is given: a second way of reading would be its code once more.
        serde_json::from_str(&spec.to_string()).context("cannot make a run of these options")
    }

    /// The option that `name` refers to: `callers` is the older name of two.
    fn meant(&self, name: &str) -> anyhow::Result<&'static RunOption> {
        let name = match name {
            "callers" if self.is_open() => "max-in-flight",
            "callers" => "users",
            name => name,
        };
        named(name).with_context(|| format!("a run has no option `{name}`"))
    }

    fn insert(&self, spec: &mut Value, option: &RunOption, value: Value) {
        let (path, value) = match option.name {
            "url" if self.is_built_in() => ("/request/scenario/database", value),
            "url" if self.names_scenario() => {
                ("/request/scenario/file", value.get(0).cloned().unwrap_or_default())
            }
            "url" if self.names_database() => ("/request/statements/url", value),
            "url" => ("/request/urls/url", value),
            "header" if self.has("targets") => ("/request/targets/header", value),
            "header" => ("/request/urls/header", value),
            _ => (option.paths[0], value),
        };
        let mut at = spec;
        for part in path.trim_start_matches('/').split('/') {
            at = at
                .as_object_mut()
                .expect("an option is below groups alone")
                .entry(part)
                .or_insert_with(|| Value::Object(Map::new()));
        }
        *at = value;
    }

    /// Refuses options that exclude each other, and those whose own needs are not met.
    fn check_together(&self) -> anyhow::Result<()> {
        const EXCLUSIVE: [(&str, &str); 17] = [
            ("rate", "stage"),
            ("replay", "stage"),
            ("rate", "replay"),
            ("targets", "url"),
            ("method", "targets"),
            ("body", "targets"),
            ("insecure", "cacert"),
            ("callers", "users"),
            ("callers", "max-in-flight"),
            ("arrivals", "stage"),
            ("jitter", "stage"),
            ("arrivals", "replay"),
            ("no-record", "output"),
            ("no-record", "record-mode"),
            ("no-record", "requests"),
            ("no-record", "watch"),
            ("no-record", "profile"),
        ];
        for (one, other) in EXCLUSIVE {
            let advice = if matches!(one, "arrivals" | "jitter") {
                "; add it to the stage: --stage 'ramp 100/s..1k/s 30s poisson'"
            } else {
                ""
            };
            ensure!(
                !(self.has(one) && self.has(other)),
                "'--{one}' cannot be used with {}{advice}; see --help",
                if other == "url" { "a URL".to_owned() } else { format!("'--{other}'") }
            );
        }
        self.check_needs()
    }

    /// Refuses options that need another one that is missing.
    fn check_needs(&self) -> anyhow::Result<()> {
        let needs = |names: &[&str], holds: bool, what: &str| -> anyhow::Result<()> {
            match names.iter().find(|name| self.has(name)) {
                Some(name) if !holds => bail!("--{name} {what}"),
                _ => Ok(()),
            }
        };
        needs(&["arrivals", "jitter"], self.has("rate"), "needs --rate or --search")?;
        let of_replay = [
            "speed",
            "replay-column",
            "replay-times-only",
            "replay-methods",
            "replay-filter",
            "replay-credentials",
        ];
        needs(&of_replay, self.has("replay"), "needs --replay FILE")?;
        needs(&["cert"], self.has("key"), "needs --key FILE, the private key of the certificate")?;
        needs(&["key"], self.has("cert"), "needs --cert FILE, the certificate of the key")?;
        needs(
            &["workload", "command"],
            self.names_database(),
            "needs a database; give a URL such as mysql://USER@HOST/DATABASE, postgres://… or redis://HOST",
        )?;
        needs(&["tables", "rows"], self.has("workload"), "needs --workload NAME")?;
        needs(&["prometheus-linger"], self.has("prometheus"), "needs --prometheus ADDR")?;
        needs(&["otlp-interval"], self.has("otlp"), "needs --otlp URL")?;
        let is_open = self.is_open();
        needs(
            &["think"],
            !is_open,
            "is for the virtual users of a closed loop; leave out either --think, or --rate, --stage and --replay",
        )?;
        needs(
            &["users"],
            !is_open,
            "is the number of virtual users of a closed loop; with --rate, --stage or --replay use --max-in-flight",
        )?;
        needs(
            &["max-in-flight"],
            is_open,
            "limits an open loop (--rate, --stage or --replay); in a closed loop use --users",
        )
    }
}

impl RunSpec {
    /// The options that the spec gives, by name.
    pub fn given(&self) -> GivenOptions {
        let value = serde_json::to_value(self).expect("a spec is made of texts, numbers and flags");
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut given = GivenOptions::default();
        for option in OPTIONS {
            let found = option.paths.iter().find_map(|path| value.pointer(path));
            match found {
                None | Some(Value::Null) => {}
                Some(Value::Array(list)) => given.set(option.name, list.iter().map(text)),
                Some(one) => given.set(option.name, [text(one)]),
            }
        }
        for (name, source) in &self.sources {
            given.0.entry(name.clone()).and_modify(|given| given.source = *source);
        }
        given
    }

    /// Reads a spec from JSON.
    ///
    /// # Errors
    ///
    /// One line that names a field that is unknown, or whose value cannot be parsed.
    pub fn from_json(text: &str) -> anyhow::Result<RunSpec> {
        let value: Value = serde_json::from_str(text).context("the spec is not JSON")?;
        for option in OPTIONS {
            for path in option.paths {
                // Otherwise a list is read as a group without names: `[]` has no fields, so all of them are absent.
                for group in path.match_indices('/').map(|(at, _)| &path[..at]) {
                    let what = group.trim_start_matches('/').replace('/', ".");
                    let is_group = value.pointer(group).is_none_or(Value::is_object);
                    ensure!(is_group || what.is_empty(), "{what} must be an object");
                    ensure!(is_group, "a spec must be a JSON object, as --print-spec prints it");
                }
                let values = match value.pointer(path) {
                    Some(Value::Array(list)) => list.as_slice(),
                    Some(one) => std::slice::from_ref(one),
                    None => &[],
                };
                for one in values.iter().filter_map(Value::as_str) {
                    let field = path.trim_start_matches('/').replace('/', ".");
                    (option.check)(one).map_err(|error| anyhow::anyhow!("{field}: `{one}`: {error}"))?;
                }
            }
        }
        let spec: RunSpec = serde_json::from_str(text).context("the spec cannot be used")?;
        spec.given().check_together()?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests;
