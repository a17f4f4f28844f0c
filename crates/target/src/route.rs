//! Parses what a request target asks for. A pure function of its text; sends nothing itself.

use units::Nanos;

use crate::capacity::{Capacity, Over};
use crate::fault::{Fault, FaultPlan, Share};
use crate::query::{Query, seconds};

/// Everything a request can ask for, its numbers parsed and within limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Route {
    Index,
    Plaintext,
    Json,
    Echo,
    Delay {
        delay: Nanos,
        jitter: Option<Jitter>,
    },
    Status(u16),
    Bytes {
        count: u64,
        chunked: bool,
    },
    Drip(Drip),
    Capacity(Capacity),
    /// The response to a request over a capacity that refuses it.
    OverCapacity,
    Fault(FaultPlan),
    /// The truth so far; with `reset`, counting then starts from zero.
    Truth {
        reset: bool,
    },
    NotFound,
    MethodNotAllowed,
    /// The route exists but a value in it is invalid; the text describes valid ones.
    BadValue(&'static str),
}

/// A uniform addition to a delay, from 0 to `up_to`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jitter {
    pub up_to: Nanos,
    pub seed: u64,
}

/// A body sent evenly: byte `i` of `count` is due `delay + over * i / (count - 1)` after the arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drip {
    pub count: u64,
    pub over: Nanos,
    pub delay: Nanos,
}

units::named_enum! {
    /// The names under which requests are counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RouteKind {
        /// `/`: the list of routes.
        Index = "index",
        /// `/plaintext`.
        Plaintext = "plaintext",
        /// `/json`.
        Json = "json",
        /// `/echo`.
        Echo = "echo",
        /// `/delay`, in all its forms.
        Delay = "delay",
        /// `/status/CODE`.
        Status = "status",
        /// `/bytes/COUNT`.
        Bytes = "bytes",
        /// `/drip`.
        Drip = "drip",
        /// `/capacity`.
        Capacity = "capacity",
        /// `/fault/NAME`, whichever it is.
        Fault = "fault",
        /// No such route: 404.
        NotFound = "not_found",
        /// A method that no route takes: 405.
        MethodNotAllowed = "method_not_allowed",
        /// A route with an unusable value: 400.
        BadValue = "bad_value",
    }
}

impl RouteKind {
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl Route {
    /// The route it is counted as; `None` for `/truth`, which is not counted.
    pub(crate) fn kind(&self) -> Option<RouteKind> {
        Some(match self {
            Route::Index => RouteKind::Index,
            Route::Plaintext => RouteKind::Plaintext,
            Route::Json => RouteKind::Json,
            Route::Echo => RouteKind::Echo,
            Route::Delay { .. } => RouteKind::Delay,
            Route::Status(_) => RouteKind::Status,
            Route::Bytes { .. } => RouteKind::Bytes,
            Route::Drip(_) => RouteKind::Drip,
            Route::Capacity(_) | Route::OverCapacity => RouteKind::Capacity,
            Route::Fault(_) => RouteKind::Fault,
            Route::NotFound => RouteKind::NotFound,
            Route::MethodNotAllowed => RouteKind::MethodNotAllowed,
            Route::BadValue(_) => RouteKind::BadValue,
            Route::Truth { .. } => return None,
        })
    }

    /// Parses a request's method and target.
    pub(crate) fn parse(method: &str, target: &str) -> Route {
        // Refused because they make no sense here: there is no tunnel, and a trace would be another echo.
        if matches!(method, "CONNECT" | "TRACE") {
            return Route::MethodNotAllowed;
        }
        let target = origin_form(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = Query(query);
        match path {
            "/plaintext" => Route::Plaintext,
            "/json" => Route::Json,
            "/" => Route::Index,
            "/echo" => Route::Echo,
            "/delay" => delay(query),
            "/drip" => drip(query),
            "/capacity" => capacity(query),
            "/truth" => Route::Truth { reset: false },
            "/truth/reset" => Route::Truth { reset: true },
            _ => with_value(path, query),
        }
    }
}

/// The target without the scheme and authority that a client of a proxy would put before it.
fn origin_form(target: &str) -> &str {
    let Some(rest) = target.strip_prefix("http://") else { return target };
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

/// Routes that carry a value in their path.
fn with_value(path: &str, query: Query<'_>) -> Route {
    if let Some(text) = path.strip_prefix("/delay/") {
        return match seconds(text) {
            Some(delay) if delay <= LONGEST_DELAY => Route::Delay { delay, jitter: None },
            _ => Route::BadValue(BAD_DELAY),
        };
    }
    if let Some(text) = path.strip_prefix("/status/") {
        return match text.parse() {
            // 101 would end HTTP on this connection, and nothing here supports another protocol.
            Ok(code @ (100 | 102..=599)) => Route::Status(code),
            _ => Route::BadValue("the status must be 100 or 102 to 599"),
        };
    }
    if let Some(text) = path.strip_prefix("/bytes/") {
        return match text.parse() {
            Ok(count) if count <= MOST_BYTES => {
                Route::Bytes { count, chunked: query.text("chunked").is_some_and(|value| value != "0") }
            }
            _ => Route::BadValue("the number of bytes must be 0 to 1073741824"),
        };
    }
    match path.strip_prefix("/fault/").and_then(Fault::from_name) {
        Some(which) => fault(which, query),
        None => Route::NotFound,
    }
}

fn delay(query: Query<'_>) -> Route {
    let read = || -> Result<Route, ()> {
        let delay = query.nanos("us", Nanos(1_000))?.or(query.nanos("ms", Nanos(1_000_000))?).ok_or(())?;
        let up_to = query.nanos("jitter_us", Nanos(1_000))?;
        let seed = query.whole("seed")?.unwrap_or(0);
        let longest = delay.saturating_add(up_to.unwrap_or(Nanos::ZERO));
        let jitter = up_to.map(|up_to| Jitter { up_to, seed });
        if longest <= LONGEST_DELAY { Ok(Route::Delay { delay, jitter }) } else { Err(()) }
    };
    read().unwrap_or(Route::BadValue(BAD_DELAY))
}

fn drip(query: Query<'_>) -> Route {
    const MS: Nanos = Nanos(1_000_000);
    let read = || -> Result<Route, ()> {
        let count = query.whole("bytes")?.or(query.whole("numbytes")?).unwrap_or(10);
        let over = query.nanos("over_ms", MS)?.or(query.seconds("duration")?);
        let delay = query.nanos("delay_ms", MS)?.or(query.seconds("delay")?);
        // httpbin's defaults, so that a bare `/drip` behaves as its users expect.
        let drip =
            Drip { count, over: over.unwrap_or(Nanos::from_secs(2)), delay: delay.unwrap_or(Nanos::ZERO) };
        let fits = count <= MOST_DRIPPED && drip.over.saturating_add(drip.delay) <= LONGEST_DELAY;
        if fits { Ok(Route::Drip(drip)) } else { Err(()) }
    };
    read().unwrap_or(Route::BadValue(
        "use /drip?bytes=N&over_ms=M&delay_ms=D with at most 10485760 bytes and one hour",
    ))
}

fn capacity(query: Query<'_>) -> Route {
    let read = || -> Result<Route, ()> {
        let rate = query.text("rate").ok_or(())?.parse().map_err(|_| ())?;
        let burst = query.whole("burst")?.unwrap_or(1);
        let by = query.nanos("ms", Nanos(1_000_000))?.unwrap_or(Nanos::from_millis(100));
        let over = match query.text("over") {
            None | Some("queue") => Over::Queue,
            Some("refuse") => Over::Refuse,
            Some("slow") => Over::Slow(by),
            Some(_) => return Err(()),
        };
        let fits = (1..=MOST_BURST).contains(&burst) && by <= LONGEST_DELAY;
        if fits { Ok(Route::Capacity(Capacity { rate, burst, over })) } else { Err(()) }
    };
    read().unwrap_or(Route::BadValue(
        "use /capacity?rate=2000/s&burst=N&over=queue, over=refuse, or over=slow&ms=N, at most one hour",
    ))
}

fn fault(fault: Fault, query: Query<'_>) -> Route {
    let read = || -> Result<Route, ()> {
        let seed = query.whole("seed")?.unwrap_or(0);
        let share = query.share("p")?.map(|p| Share { p, seed });
        let length = query.nanos("ms", Nanos(1_000_000))?.unwrap_or(Nanos::from_millis(100));
        if length > LONGEST_FREEZE {
            return Err(());
        }
        Ok(Route::Fault(FaultPlan { fault, share, length }))
    };
    read().unwrap_or(Route::BadValue("p must be 0 to 1, seed a whole number, ms at most 60000"))
}

const BAD_DELAY: &str = "use /delay/SECONDS, /delay?us=N or /delay?ms=N, with jitter_us=M, at most one hour";

/// The longest duration the histograms hold.
const LONGEST_DELAY: Nanos = record::LONGEST;
const LONGEST_FREEZE: Nanos = Nanos::from_secs(60);
const MOST_BYTES: u64 = 1 << 30;
const MOST_BURST: u64 = 1_000_000_000;
/// httpbin's own limit.
const MOST_DRIPPED: u64 = 10 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str) -> Route {
        Route::parse("GET", target)
    }

    fn delay(delay: Nanos) -> Route {
        Route::Delay { delay, jitter: None }
    }

    #[test]
    fn targets_are_read() {
        for (target, route) in [
            ("/", Route::Index),
            ("/plaintext", Route::Plaintext),
            ("/plaintext?x=1", Route::Plaintext),
            ("http://host:8080/json", Route::Json),
            ("http://host", Route::Index),
            ("/delay/0.25", delay(Nanos::from_millis(250))),
            ("/delay?us=2000", delay(Nanos::from_millis(2))),
            ("/delay?ms=3", delay(Nanos::from_millis(3))),
            (
                "/delay?us=1&jitter_us=2&seed=3",
                Route::Delay { delay: Nanos(1_000), jitter: Some(Jitter { up_to: Nanos(2_000), seed: 3 }) },
            ),
            ("/status/204", Route::Status(204)),
            ("/bytes/10?chunked=1", Route::Bytes { count: 10, chunked: true }),
            ("/truth/reset", Route::Truth { reset: true }),
            (
                "/drip?numbytes=5&duration=0.5&delay=1",
                Route::Drip(Drip { count: 5, over: Nanos::from_millis(500), delay: Nanos::from_secs(1) }),
            ),
            (
                "/capacity?rate=2k/s&over=slow&ms=5",
                Route::Capacity(Capacity {
                    rate: "2000/s".parse().unwrap(),
                    burst: 1,
                    over: Over::Slow(Nanos::from_millis(5)),
                }),
            ),
            (
                "/fault/close?p=0.5&seed=7",
                Route::Fault(FaultPlan {
                    fault: Fault::Close,
                    share: Some(Share { p: 0.5, seed: 7 }),
                    length: Nanos::from_millis(100),
                }),
            ),
            ("/nothing", Route::NotFound),
            ("/fault/unheard-of", Route::NotFound),
        ] {
            assert_eq!(get(target), route, "{target}");
        }
        assert_eq!(Route::parse("CONNECT", "host:1"), Route::MethodNotAllowed);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for target in [
            "/delay",
            "/delay/x",
            "/delay/-1",
            "/delay/3601",
            "/delay?us=x",
            "/delay?ms=3600001",
            "/delay?us=3600000000&jitter_us=1",
            "/status/99",
            "/status/101",
            "/status/600",
            "/bytes/1073741825",
            "/bytes/",
            "/drip?bytes=10485761",
            "/capacity",
            "/capacity?rate=0",
            "/capacity?rate=10&burst=0",
            "/capacity?rate=10&over=board",
            "/fault/reset?p=2",
            "/fault/freeze?ms=60001",
        ] {
            assert!(matches!(get(target), Route::BadValue(_)), "{target}");
        }
    }
}
