//! The form of a scenario file, as written. The source of `formats/scenario.schema.json`.
//!
//! Its meaning, and whether it can be done, is worked out in `compile`.

#[cfg(test)]
use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::settings::{OutputSettings, RunSettings};
use crate::values::{CaptureSpec, Matcher, Named, Scalar, Scalars};

/// What a run sends, to whom, how it is loaded, and what must come of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// What the scenario is for. Kept in no other place.
    pub description: Option<String>,
    /// How the run is loaded and bounded: the options of the command line, by the same names.
    pub run: RunSettings,
    /// Values for `{{name}}`, to be changed by `--set vars.name=value`. May hold `{{random 1 6}}`, `{{zipf 1 1000}}` and the like: then
    /// each journey has one of its own.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub vars: Named<Scalar>,
    /// Files whose rows fill in `{{name.column}}`.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Data>"))]
    pub data: Named<Data>,
    /// The servers, by name.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Target>"))]
    pub targets: Named<Target>,
    /// What holds for every request that does not say otherwise.
    pub defaults: Defaults,
    /// Requests that stand alone.
    #[serde(rename = "request")]
    #[cfg_attr(test, schemars(with = "Vec<Request>"))]
    pub requests: Vec<Spanned<Request>>,
    /// Requests that follow each other.
    #[serde(rename = "journey")]
    #[cfg_attr(test, schemars(with = "Vec<Journey>"))]
    pub journeys: Vec<Spanned<Journey>>,
    /// What makes the run fail, with exit code 2.
    pub thresholds: Thresholds,
    /// Where the results go.
    pub output: OutputSettings,
}

/// A server, and how it is spoken to.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Target {
    /// `http://host:port`, `https://host`; a path stands before those of the requests.
    #[cfg_attr(test, schemars(with = "String"))]
    pub url: Option<Spanned<String>>,
    /// Headers of every request to it.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub headers: Named<Scalar>,
    pub tls: Tls,
}

/// How a server proves itself, and how we do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tls {
    /// Any certificate will do; not next to `ca`.
    pub insecure: bool,
    /// A file with the certificates to trust, in PEM; from next to the scenario.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub ca: Option<Spanned<String>>,
    /// A file with our certificate, in PEM; from next to the scenario.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub cert: Option<Spanned<String>>,
    /// A file with its key, in PEM; from next to the scenario.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub key: Option<Spanned<String>>,
    /// The name to ask for and to expect, in place of the host of the URL.
    pub server_name: Option<String>,
}

/// What holds for every request that does not say otherwise.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Defaults {
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub headers: Named<Scalar>,
    pub expect: Expect,
    /// Whether statements are prepared, where they do not say.
    pub prepared: Option<bool>,
    /// How much of a body is kept for captures and checks that look into it.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub keep_body: Option<Spanned<Scalar>>,
}

/// One request: alone, or a step of a journey.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Request {
    /// Under which its figures stand; by default method and path.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub name: Option<Spanned<String>>,
    /// Its share of the arrivals, against the other requests and journeys; not for steps.
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub weight: Option<Spanned<u32>>,
    /// The name of the server, where there are several.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub target: Option<Spanned<String>>,
    /// GET, or POST with a body, unless given.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub method: Option<Spanned<String>>,
    /// Begins with a slash. Values filled in are percent-encoded.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub path: Option<Spanned<String>>,
    /// Names and values behind the `?`, percent-encoded.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub query: Named<Scalar>,
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub headers: Named<Scalar>,
    /// The body as it is.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub body: Option<Spanned<String>>,
    /// The body as JSON: a table, a list, or a text that is JSON.
    #[cfg_attr(test, schemars(with = "Option<serde_json::Value>"))]
    pub json: Option<Spanned<serde_json::Value>>,
    /// The body as a form: names and values.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub form: Named<Scalar>,
    /// A file with the body, from next to the scenario. Nothing in it is filled in.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub file: Option<Spanned<String>>,
    /// A statement to a database. Each `{{name}}` is a parameter; `{{name|name}}` is part of the statement itself, such
    /// as the number of a table.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub sql: Option<Spanned<String>>,
    /// The command, if the server is Redis: as redis-cli reads it, with `{{name}}` in its arguments.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub command: Option<Spanned<String>>,
    /// Whether each connection prepares the statement once and then executes it by number; by default as `[defaults]`
    /// says, and otherwise so.
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub prepared: Option<Spanned<bool>>,
    /// How often the statement is executed, one after the other, each time with other values.
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub repeat: Option<Spanned<u32>>,
    /// What must hold of the response; otherwise the request ends as `check_failed`.
    pub expect: Expect,
    /// Values taken from the response for the steps that follow.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, CaptureSpec>"))]
    pub capture: Named<CaptureSpec>,
    /// How long to wait between the response and the next step: `1s`, `1s..3s`, or `exp:2s`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub think: Option<Spanned<String>>,
}

/// What must hold of a response.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    /// Statuses that are good: `200`, `"2xx"`, `"200,404"`, `[200, 404]`; below 400 unless given.
    #[cfg_attr(test, schemars(with = "Option<Scalars>"))]
    pub status: Option<Spanned<Scalars>>,
    /// Text that the body must contain.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub body_contains: Option<Spanned<String>>,
    /// A regular expression that must be found in the body.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub body_matches: Option<Spanned<String>>,
    /// The digest of the whole body, in hexadecimal.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub sha256: Option<Spanned<String>>,
    /// Of headers by name.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Matcher>"))]
    pub headers: Named<Matcher>,
    /// Of places in a JSON body, by pointer.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Matcher>"))]
    pub json: Named<Matcher>,
    /// The number of rows that a statement returns: `1`, `"1..10"`, `"1.."`.
    #[cfg_attr(test, schemars(with = "Option<Scalar>"))]
    pub rows: Option<Spanned<Scalar>>,
    /// The number of rows that a statement changes, in the same form.
    #[cfg_attr(test, schemars(with = "Option<Scalar>"))]
    pub affected: Option<Spanned<Scalar>>,
    /// Of columns of the first row, by name.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Matcher>"))]
    pub columns: Named<Matcher>,
}

/// Requests that follow each other, each when the last one was answered well.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Journey {
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub name: Option<Spanned<String>>,
    /// Its share of the arrivals, against the other requests and journeys.
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub weight: Option<Spanned<u32>>,
    /// The server of its steps, where there are several.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub target: Option<Spanned<String>>,
    /// Whether cookies that a step is given go with the steps that follow; so unless it is stated otherwise.
    pub cookies: Option<bool>,
    /// How often its transaction is tried again after a deadlock, a lock wait timeout or a conflict with another
    /// transaction; 0 unless given.
    #[cfg_attr(test, schemars(with = "Option<u32>"))]
    pub retries: Option<Spanned<u32>>,
    /// Headers of all its steps.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub headers: Named<Scalar>,
    /// How long to wait between its steps, where they do not say.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub think: Option<Spanned<String>>,
    #[serde(rename = "step")]
    #[cfg_attr(test, schemars(with = "Vec<Request>"))]
    pub steps: Vec<Spanned<Request>>,
}

/// A file of rows. Each journey, or request that stands alone, has one row of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Data {
    /// CSV with a line of names, or one JSON object a line; from next to the scenario.
    #[cfg_attr(test, schemars(with = "String"))]
    pub file: Option<Spanned<String>>,
    /// By the ending of the file unless given.
    pub format: Option<DataFormat>,
    pub order: Order,
    /// What stands between the columns of a CSV, by default a comma.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub delimiter: Option<Spanned<String>>,
    /// The names of a CSV's columns, where its first line has none.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub columns: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum DataFormat {
    Csv,
    Ndjson,
}

/// Which row a journey has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One after the other, and again from the first.
    #[default]
    Sequential,
    /// Any, by the seed.
    Random,
    /// One after the other; when all have been used, nothing more is scheduled.
    Once,
}

/// What makes the run fail, with exit code 2.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Thresholds {
    /// `response.p99 > 50ms`, `error_share > 1%`: as with --fail-if.
    #[cfg_attr(test, schemars(with = "Option<Scalars>"))]
    pub fail_if: Option<Spanned<Scalars>>,
}
