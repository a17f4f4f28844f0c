//! From a parsed file to a scenario that can be driven. Everything that can be refused is refused here, with its place.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use codec::web::{Url, turns};
use database::DatabaseKind;
use database::sql::Statement;
use toml::Spanned;

use crate::format::{self, Data, DataFormat, File, Journey, Order, Request, Target};
use crate::place::{Mistake, Slip, Sources};
use crate::plan::{Action, Address, Nothing, Ordinals, Play, Scenario, Server, Step, Tls};
use crate::scope::{Context, Scope};
use crate::steps::{self, Common};
use crate::table::{Table, TableSource};
use crate::template::{Template, Value};
use crate::{sql, web};

/// What compiling a scenario needs from its caller.
pub struct Surroundings<'a> {
    /// The seed of everything random.
    pub seed: u64,
    /// Reads a file by the name that the scenario gives it.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// When the run begins, in Unix seconds.
    pub now: i64,
}

/// Compiles `file`.
///
/// # Errors
///
/// The first thing that cannot be done as it is written.
pub(crate) fn compile(
    file: &File,
    sources: &Sources,
    around: &Surroundings<'_>,
) -> Result<Scenario, Mistake> {
    let compiler = Compiler { file, sources, around };
    compiler.scenario().map_err(|slip| sources.mistake(&slip))
}

struct Compiler<'a> {
    file: &'a File,
    sources: &'a Sources,
    around: &'a Surroundings<'a>,
}

impl Compiler<'_> {
    fn scenario(&self) -> Result<Scenario, Slip> {
        let file = self.file;
        let names = file.data.keys().cloned();
        let mut scope = Scope::new(self.sources, self.around.environment, self.around.seed, names);
        self.variables(&mut scope)?;
        let targets = self.targets(&mut scope)?;
        let keep_body = self.keep_body()?;
        let mut steps = Steps::default();
        let mut plays = Vec::new();
        for request in &file.requests {
            plays.push(self.alone(request, &targets, &mut scope, &mut steps)?);
        }
        for (number, journey) in (0..=u16::MAX).zip(&file.journeys) {
            let play = self.journey(journey, &targets, &mut scope, &mut steps)?;
            plays.push(Play { number: Some(number), ..play });
        }
        if plays.is_empty() {
            return Err(Slip::new(
                &(0..0),
                "nothing to send; add a [[request]] with a path, or a [[journey]] with steps",
            ));
        }
        self.name_apart(&mut steps.all)?;
        let weights: Vec<u32> = plays.iter().map(|play: &Play| play.weight).collect();
        let turns = turns(&weights).map_err(|error| Slip::new(&(0..0), error.to_string()))?;
        let tables = self.tables(&mut scope)?;
        let uses = |table: usize| {
            let uses = |play: &u32| plays[*play as usize].tables.contains(&(table as u16));
            Ordinals::new(&turns.iter().map(uses).collect::<Vec<_>>())
        };
        let ordinals = (0..tables.len()).map(uses).collect();
        let (seed, now) = (self.around.seed, self.around.now);
        let Steps { all, mut statements } = steps;
        let (spans, mut steps): (Vec<_>, Vec<_>) = all.into_iter().map(|read| (read.span, read.step)).unzip();
        let rollback = plays.iter().any(|play| play.retries > 0).then(|| {
            steps.push(sql::rollback(&mut statements));
            // There are fewer steps than a `u16` can count: see `place_of`.
            (steps.len() - 1) as u16
        });
        let scenario = Scenario {
            seed,
            targets,
            steps,
            plays,
            turns,
            tables,
            ordinals,
            keep_body,
            now,
            statements,
            rollback,
        };
        if scenario.database_kind().is_some() {
            return Ok(scenario);
        }
        // What is filled in later cannot change any of this.
        for (span, step) in spans.iter().zip(&scenario.steps) {
            scenario
                .request(step, &Nothing, None)
                .check()
                .map_err(|error| Slip::new(span, error.to_string()))?;
        }
        Ok(scenario)
    }

    fn variables(&self, scope: &mut Scope<'_>) -> Result<(), Slip> {
        for (name, value) in &self.file.vars {
            let span = value.span();
            if !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') || name.is_empty() {
                let what =
                    format!("`{name}` cannot be the name of a variable; use letters, digits, `_` and `-`");
                return Err(Slip::new(&span, what));
            }
            if let Some(what) = scope.taken(name) {
                return Err(Slip::new(
                    &span,
                    format!("`{name}` is {what} already; give the variable another name"),
                ));
            }
            let template = scope.template(&value.get_ref().0, &span, Context::Variable)?;
            scope.add_variable(name, template);
        }
        Ok(())
    }

    fn targets(&self, scope: &mut Scope<'_>) -> Result<Vec<Server>, Slip> {
        let targets = &self.file.targets;
        if targets.is_empty() {
            let what = "no server to send to; add for example\n[targets.api] url = \"http://127.0.0.1:8080\"";
            return Err(Slip::new(&(0..0), what));
        }
        let servers: Vec<Server> = targets
            .iter()
            .map(|(name, target)| self.target(name, target, scope))
            .collect::<Result<_, _>>()?;
        let kind = |server: &Server| server.address.database_kind();
        let first = servers.first().and_then(kind);
        match servers.iter().zip(targets.values()).find(|(server, _)| kind(server) != first) {
            Some((_, target)) => Err(Slip::new(
                &target.span(),
                "a scenario speaks one protocol with all its servers; write a scenario for each",
            )),
            None => Ok(servers),
        }
    }

    fn target(&self, name: &str, target: &Spanned<Target>, scope: &mut Scope<'_>) -> Result<Server, Slip> {
        let given = target.get_ref().url.as_ref();
        let given = given.ok_or_else(|| {
            Slip::new(
                &target.span(),
                format!("target `{name}` has no url; add for example url = \"http://127.0.0.1:8080\""),
            )
        })?;
        let span = given.span();
        let text = scope.template(given.get_ref(), &span, Context::Variable)?;
        let hidden = text.hides().then(|| given.get_ref().trim_end_matches('/').to_owned());
        let text = text.fixed().ok_or_else(|| {
            Slip::new(&span, "the server must be the same for all journeys; use values that do not change")
        })?;
        if DatabaseKind::of(&text).is_some() {
            let tls = tls(&target.get_ref().tls)?;
            if let Some((_, header)) = target.get_ref().headers.iter().next() {
                return Err(Slip::new(&header.span(), "a database takes no headers; leave them out"));
            }
            let address = Address::Database(text.into_owned());
            let (name, base) = (name.to_owned(), String::new());
            return Ok(Server { name, address, tls, base, hidden, headers: Vec::new() });
        }
        let url = Url::parse(&text).map_err(|error| match &hidden {
            None => Slip::new(&span, error.to_string()),
            Some(_) => {
                Slip::new(&span, "with these environment variables this is not a URL; check their values")
            }
        })?;
        let base = url.path_and_query().trim_end_matches('/').to_owned();
        if base.contains('?') {
            return Err(Slip::new(&span, "the url of a target cannot have a query; move it to the requests"));
        }
        Ok(Server {
            name: name.to_owned(),
            address: Address::Web(url),
            tls: tls(&target.get_ref().tls)?,
            base,
            hidden,
            headers: web::headers(&target.get_ref().headers, scope)?,
        })
    }

    fn keep_body(&self) -> Result<usize, Slip> {
        let Some(given) = &self.file.defaults.keep_body else { return Ok(KEEP_BODY) };
        let bytes = given.get_ref().0.parse::<units::Bytes>();
        let bytes = bytes.map_err(|error| Slip::new(&given.span(), error.to_string()))?;
        usize::try_from(bytes.0)
            .map_err(|_| Slip::new(&given.span(), "too large for the memory of this host"))
    }

    fn alone(
        &self,
        request: &Spanned<Request>,
        targets: &[Server],
        scope: &mut Scope<'_>,
        all: &mut Steps,
    ) -> Result<Play, Slip> {
        let own = request.get_ref();
        if let Some((_, capture)) = own.capture.iter().next() {
            return Err(Slip::new(
                &capture.span(),
                "a stand-alone request has no next step that could use a captured value; make it a [[journey.step]]",
            ));
        }
        if let Some(think) = &own.think {
            return Err(Slip::new(
                &think.span(),
                "a stand-alone request has no next step, so it has no think time; for virtual users with think time use run.think",
            ));
        }
        let elsewhere = self.captured_by("", 0);
        scope.begin_journey(elsewhere);
        let first = place_of(&all.all, &request.span())?;
        let common = Common {
            targets,
            journey: None,
            last: true,
            sources: self.sources,
            read: self.around.read,
            file: self.file,
        };
        let step = steps::compile(request, &common, scope, &mut all.statements)?;
        let tables = tables_of(std::slice::from_ref(&step));
        all.all.push(Read { span: name_span(request), given: own.name.is_some(), step });
        number_prepared(&mut all.all);
        Ok(Play {
            journey: None,
            number: None,
            weight: weight(own.weight.as_ref())?,
            first,
            steps: 1,
            cookies: false,
            retries: 0,
            slots: Vec::new(),
            tables,
        })
    }

    fn journey(
        &self,
        journey: &Spanned<Journey>,
        targets: &[Server],
        scope: &mut Scope<'_>,
        all: &mut Steps,
    ) -> Result<Play, Slip> {
        let own = journey.get_ref();
        let name = own.name.as_ref().map_or_else(|| "journey".to_owned(), |name| name.get_ref().clone());
        if own.steps.is_empty() {
            return Err(Slip::new(
                &journey.span(),
                format!("journey `{name}` has no steps; add a [[journey.step]] with a path"),
            ));
        }
        let first = place_of(&all.all, &journey.span())?;
        scope.begin_journey(BTreeMap::new());
        for (index, request) in own.steps.iter().enumerate() {
            if let Some(weight) = &request.get_ref().weight {
                return Err(Slip::new(&weight.span(), "a step has no weight; set the weight of the journey"));
            }
            scope.look_elsewhere(self.captured_by(&name, index));
            place_of(&all.all, &request.span())?;
            let last = index + 1 == own.steps.len();
            let common = Common {
                targets,
                journey: Some(own),
                last,
                sources: self.sources,
                read: self.around.read,
                file: self.file,
            };
            let mut step = steps::compile(request, &common, scope, &mut all.statements)?;
            step.name = format!("{name}: {}", step.name);
            all.all.push(Read { span: name_span(request), given: request.get_ref().name.is_some(), step });
        }
        let start = usize::from(first);
        // What later steps require of a captured value is known only now.
        for step in &mut all.all[start..] {
            let Action::Web(web) = &mut step.step.action else { continue };
            for capture in &mut web.captures {
                capture.needs = scope.captured()[usize::from(capture.slot)].needs;
            }
        }
        let slots = scope.captured().iter().map(|captured| captured.name.clone()).collect();
        let tables = tables_of(all.all[start..].iter().map(|named| &named.step).collect::<Vec<_>>());
        number_prepared(&mut all.all);
        Ok(Play {
            journey: Some(name),
            number: None,
            weight: weight(own.weight.as_ref())?,
            first,
            steps: (all.all.len() - start) as u16,
            cookies: own.cookies.unwrap_or(true),
            retries: retries(own, targets)?,
            slots,
            tables,
        })
    }

    /// The names that step `index` of `journey` cannot use, and where they are captured.
    fn captured_by(&self, journey: &str, index: usize) -> BTreeMap<String, String> {
        let mut elsewhere = BTreeMap::new();
        for (number, other) in self.file.journeys.iter().enumerate() {
            let other = other.get_ref();
            let fallback = format!("number {}", number + 1);
            let name = other.name.as_ref().map_or(fallback.as_str(), |name| name.get_ref().as_str());
            for (at, step) in other.steps.iter().enumerate() {
                for key in step.get_ref().capture.keys() {
                    let what = match (name == journey, at.cmp(&index)) {
                        (true, std::cmp::Ordering::Equal) => {
                            "this step captures it, for later steps".to_owned()
                        }
                        (true, _) => format!("step {} does, after this one", at + 1),
                        (false, _) => {
                            format!("journey `{name}` does, and values do not pass between journeys")
                        }
                    };
                    elsewhere.entry(key.clone()).or_insert(what);
                }
            }
        }
        elsewhere
    }

    /// Two kinds with the same name could not be distinguished in a report.
    fn name_apart(&self, steps: &mut [Read]) -> Result<(), Slip> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for named in steps {
            let count = seen.entry(named.step.name.clone()).or_insert(0);
            *count += 1;
            if *count > 1 && named.given {
                let what =
                    format!("`{}` is already the name of another request; use another name", named.step.name);
                return Err(Slip::new(&named.span, what));
            }
            if *count > 1 {
                named.step.name = format!("{} ({count})", named.step.name);
            }
        }
        Ok(())
    }

    fn tables(&self, scope: &mut Scope<'_>) -> Result<Vec<Table>, Slip> {
        let draws: Vec<u64> = (0..scope.tables.len()).map(|_| scope.next_draw()).collect();
        let uses = scope.tables.iter().zip(draws).map(|(table, draw)| {
            let data = &self.file.data[&table.name];
            self.table(&table.name, data, &table.columns, draw)
        });
        uses.collect()
    }

    fn table(
        &self,
        name: &str,
        data: &Spanned<Data>,
        wanted: &[crate::scope::ColumnUse],
        draw: u64,
    ) -> Result<Table, Slip> {
        let own = data.get_ref();
        let file = own.file.as_ref();
        let file = file.ok_or_else(|| {
            Slip::new(&data.span(), format!("data `{name}` has no file; add file = \"{name}.csv\""))
        })?;
        let span = file.span();
        let path = file.get_ref().as_str();
        let by_ending = match Path::new(path).extension().and_then(|ending| ending.to_str()) {
            Some("csv" | "tsv") => Some(DataFormat::Csv),
            Some("ndjson" | "jsonl") => Some(DataFormat::Ndjson),
            _ => None,
        };
        let format = own.format.or(by_ending);
        let format = format.ok_or_else(|| {
            Slip::new(
                &span,
                format!("`{path}` does not end in csv or ndjson; add format = \"csv\" or \"ndjson\""),
            )
        })?;
        let of_csv = [own.delimiter.as_ref().map(Spanned::span), own.columns.as_ref().map(Spanned::span)];
        if let (DataFormat::Ndjson, Some(span)) = (format, of_csv.iter().flatten().next()) {
            return Err(Slip::new(span, "this is for CSV; in NDJSON each line names its keys: leave it out"));
        }
        let delimiter = match &own.delimiter {
            None if path.ends_with(".tsv") => b'\t',
            None => b',',
            Some(given) => match given.get_ref().as_bytes() {
                [one] => *one,
                _ => {
                    return Err(Slip::new(
                        &given.span(),
                        "a delimiter is one character, such as \",\" or \"\\t\"",
                    ));
                }
            },
        };
        let bytes = (self.around.read)(Path::new(path))
            .map_err(|error| Slip::new(&span, format!("cannot read `{path}`: {error}")))?;
        let names = own.columns.as_ref().map(|columns| columns.get_ref().as_slice());
        let order = if wanted.is_empty() { Order::Sequential } else { own.order };
        let source =
            TableSource { name, file: path, bytes: &bytes, format, delimiter, names, wanted, order, draw };
        Table::read(&source).map_err(|wrong| match wrong {
            Ok(slip) => slip,
            Err(what) => Slip::new(&span, what),
        })
    }
}

/// The steps that were read so far, and the statements of databases among them.
#[derive(Default)]
struct Steps {
    all: Vec<Read>,
    statements: Vec<Statement>,
}

/// How often a transaction is tried again.
fn retries(own: &Journey, targets: &[Server]) -> Result<u32, Slip> {
    let Some(retries) = &own.retries else { return Ok(0) };
    if matches!(targets.first().map(|target| &target.address), Some(Address::Web(_))) {
        return Err(Slip::new(&retries.span(), "retries are for transactions of a database; leave them out"));
    }
    Ok(*retries.get_ref())
}

/// A step, and the place of its name in the file.
pub(crate) struct Read {
    span: crate::place::Span,
    given: bool,
    pub step: Step,
}

fn name_span(request: &Spanned<Request>) -> crate::place::Span {
    request.get_ref().name.as_ref().map_or_else(|| request.span(), Spanned::span)
}

/// The index of the next step in the list of all steps.
fn place_of(all: &[Read], span: &crate::place::Span) -> Result<u16, Slip> {
    let what = || Slip::new(span, format!("more than {} requests and steps; split the scenario", u16::MAX));
    u16::try_from(all.len()).ok().filter(|place| *place < u16::MAX).ok_or_else(what)
}

/// Prepared requests are numbered in the order of the steps.
fn number_prepared(all: &mut [Read]) {
    let prepared = all.iter_mut().filter_map(|named| match &mut named.step.action {
        Action::Web(web) => web.prepared.as_mut(),
        Action::Sql(_) => None,
    });
    (0..).zip(prepared).for_each(|(next, prepared)| *prepared = next);
}

fn weight(given: Option<&Spanned<u32>>) -> Result<u32, Slip> {
    match given {
        None => Ok(1),
        Some(zero) if *zero.get_ref() == 0 => Err(Slip::new(
            &zero.span(),
            "with weight 0 it would never be sent; give 1 or more, or take it out",
        )),
        Some(weight) => Ok(*weight.get_ref()),
    }
}

/// The tables that the texts of `steps` use.
fn tables_of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<u16> {
    let mut tables = Vec::new();
    for step in steps {
        let templates: Vec<&Template> = match &step.action {
            Action::Web(web) => web.templates().collect(),
            Action::Sql(sql) => sql.templates().collect(),
        };
        for (value, _) in templates.into_iter().flat_map(Template::values) {
            if let Value::Cell { table, .. } = value
                && !tables.contains(&table)
            {
                tables.push(table);
            }
        }
    }
    tables
}

/// As on the command line: a certificate needs its key, and a CA bundle excludes `insecure`.
fn tls(own: &format::Tls) -> Result<Tls, Slip> {
    let path = |file: &Spanned<String>| PathBuf::from(file.get_ref());
    let identity = match (&own.cert, &own.key) {
        (Some(cert), Some(key)) => Some((path(cert), path(key))),
        (Some(cert), None) => return Err(Slip::new(&cert.span(), "`cert` needs its `key`; add it")),
        (None, Some(key)) => return Err(Slip::new(&key.span(), "`key` needs its `cert`; add it")),
        (None, None) => None,
    };
    if let (true, Some(ca)) = (own.insecure, &own.ca) {
        return Err(Slip::new(&ca.span(), "`insecure` takes any certificate; leave it out, or `ca`"));
    }
    let ca = own.ca.as_ref().map(path);
    Ok(Tls { insecure: own.insecure, ca, identity, server_name: own.server_name.clone() })
}

/// Default for how much of a body is kept: enough for pages and API responses, and a thousand journeys in progress use
/// at most a gigabyte.
const KEEP_BODY: usize = 1 << 20;
