//! The values of a run's options: each is parsed from the text that users write, and printed as that text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use codec::tls::{Resumption, Versions};
use codec::web::Url;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Nanos;

/// A value together with the text it was parsed from, so that a record shows what the user wrote.
///
/// In JSON it is that text; a text of digits only is a number.
#[derive(Debug, Clone)]
pub struct Written<T> {
    text: String,
    pub value: T,
}

impl<T> Written<T> {
    /// The text as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<T> PartialEq for Written<T> {
    fn eq(&self, other: &Written<T>) -> bool {
        self.text == other.text
    }
}

impl<T: FromStr<Err: fmt::Display>> FromStr for Written<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Written<T>, String> {
        let value = text.parse::<T>().map_err(|error| error.to_string())?;
        Ok(Written { text: text.to_owned(), value })
    }
}

impl<T> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text.parse::<u64>() {
            Ok(number) if number.to_string() == self.text => serializer.serialize_u64(number),
            _ => serializer.serialize_str(&self.text),
        }
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written<T>, D::Error> {
        let text = deserializer.deserialize_any(TextOrNumber)?;
        text.parse().map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
    }
}

struct TextOrNumber;

impl Visitor<'_> for TextOrNumber {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, or a whole number")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

#[cfg(test)]
impl<T> schemars::JsonSchema for Written<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["string", "integer"],
            "description": "As it is written on the command line, with its unit: 2s, 500/s, 64KiB, 20.",
        })
    }
}

/// The value of a field, if it is given.
pub fn value<T>(field: &Option<Written<T>>) -> Option<&T> {
    field.as_ref().map(|written| &written.value)
}

/// A number of at least 1.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        match units::parse_count(text) {
            Ok(0) => Err("must be at least 1".to_owned()),
            Ok(count) => Ok(Count(count)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A length of time longer than 0.
#[derive(Debug, Clone, Copy)]
pub struct Length(pub Nanos);

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        match text.parse() {
            Ok(Nanos::ZERO) => Err("must be longer than 0".to_owned()),
            Ok(time) => Ok(Length(time)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A timeout, or `off` for none.
#[derive(Debug, Clone, Copy)]
pub struct Timeout(pub Option<Nanos>);

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Timeout, String> {
        if text == "off" {
            return Ok(Timeout(None));
        }
        text.parse::<Length>().map(|time| Timeout(Some(time.0))).map_err(|error| format!("{error}, or off"))
    }
}

/// How long the end of a run waits for responses: unlike a timeout, it may be 0.
#[derive(Debug, Clone, Copy)]
pub struct Drain(pub Option<Nanos>);

impl FromStr for Drain {
    type Err = String;

    fn from_str(text: &str) -> Result<Drain, String> {
        if text == "off" {
            return Ok(Drain(None));
        }
        text.parse()
            .map(|time| Drain(Some(time)))
            .map_err(|error: units::ParseError| format!("{error}, or off"))
    }
}

/// A stage of a schedule; `steps` yields several.
#[derive(Debug, Clone)]
pub struct StageText(pub Vec<schedule::Written>);

impl FromStr for StageText {
    type Err = schedule::StageError;

    fn from_str(text: &str) -> Result<StageText, schedule::StageError> {
        schedule::parse_written(text).map(StageText)
    }
}

/// How an invalid measurement affects the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInvalid {
    /// Not at all: the verdict is printed, and the conditions decide.
    Warn,
    Fail,
    /// The run is repeated up to this many times; then it fails.
    Retry(u64),
}

impl FromStr for OnInvalid {
    type Err = String;

    fn from_str(text: &str) -> Result<OnInvalid, String> {
        match text.split_once(':') {
            None if text == "warn" => Ok(OnInvalid::Warn),
            None if text == "fail" => Ok(OnInvalid::Fail),
            Some(("retry", times)) => match times.parse() {
                Ok(times @ 1..=100) => Ok(OnInvalid::Retry(times)),
                _ => Err("retry: takes a number from 1 to 100".to_owned()),
            },
            _ => Err("is one of warn, fail or retry:2".to_owned()),
        }
    }
}

/// A process id.
#[derive(Debug, Clone, Copy)]
pub struct Pid(pub u32);

impl FromStr for Pid {
    type Err = String;

    fn from_str(text: &str) -> Result<Pid, String> {
        match text.parse() {
            Ok(pid @ 1..=0x7fff_ffff) => Ok(Pid(pid)),
            _ => Err(format!("`{text}` is not a process ID; `pgrep NAME` prints the IDs of a name")),
        }
    }
}

/// A server process to watch: `4711`, or `ssh:HOST:4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchSubject {
    /// Host name for ssh; `None` for this host.
    pub host: Option<String>,
    pub pid: u32,
}

impl FromStr for WatchSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<WatchSubject, String> {
        let form = "is a process ID, or ssh:HOST:PID";
        let (host, pid) = match text.strip_prefix("ssh:") {
            None => (None, text),
            Some(rest) => {
                let (host, pid) = rest.rsplit_once(':').ok_or(form)?;
                // ssh would take a leading dash for an option.
                if host.is_empty() || host.starts_with('-') {
                    return Err(form.to_owned());
                }
                (Some(host.to_owned()), pid)
            }
        };
        match pid.parse() {
            Ok(pid @ 1..) => Ok(WatchSubject { host, pid }),
            _ => Err(form.to_owned()),
        }
    }
}

/// Processes whose CPU time is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measured {
    /// A process with its descendants.
    Tree(u32),
    /// A process without its children.
    Only(u32),
    /// A control group, by its path.
    Cgroup(String),
    /// A systemd unit.
    Unit(String),
}

impl FromStr for Measured {
    type Err = String;

    fn from_str(text: &str) -> Result<Measured, String> {
        match text.split_once(':') {
            Some(("only", pid)) => pid.parse().map(|Pid(pid)| Measured::Only(pid)),
            Some(("cgroup", path)) if !path.is_empty() => Ok(Measured::Cgroup(path.to_owned())),
            Some(("unit", name)) if !name.is_empty() => Ok(Measured::Unit(name.to_owned())),
            Some(_) => Err(format!("`{text}` is not one of PID, only:PID, cgroup:PATH and unit:NAME")),
            None => text.parse().map(|Pid(pid)| Measured::Tree(pid)),
        }
    }
}

/// An address to listen on: ADDR:PORT, or a port of the loopback interface.
#[derive(Debug, Clone, Copy)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
        match port.map(|port| SocketAddr::from(([127, 0, 0, 1], port))).or_else(|_| text.parse()) {
            Ok(address) => Ok(ListenAddress(address)),
            Err(_) => Err(format!(
                "`{text}` is not an address to listen on; write for example 127.0.0.1:9464 or 9464"
            )),
        }
    }
}

/// The address to connect to for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    host: String,
    port: u16,
    pub address: IpAddr,
}

impl Resolve {
    /// Whether it applies to the host and port of `url`.
    pub fn is_for(&self, url: &Url) -> bool {
        self.port == url.port() && self.host.eq_ignore_ascii_case(url.host())
    }
}

impl FromStr for Resolve {
    type Err = String;

    fn from_str(text: &str) -> Result<Resolve, String> {
        let wanted = "write HOST:PORT:ADDR, for example example.com:443:127.0.0.1".to_owned();
        // An IPv6 address has colons of its own, with or without brackets; a host name has none.
        let mut parts = text.splitn(3, ':');
        let (Some(host), Some(port), Some(address)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wanted);
        };
        let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
        match (host.is_empty(), port.parse(), bare.parse()) {
            (false, Ok(port), Ok(address)) => Ok(Resolve { host: host.to_owned(), port, address }),
            _ => Err(wanted),
        }
    }
}

/// Declares an enum whose variants are words of an option, read by [`FromStr`].
macro_rules! choice {
    ($(#[$doc:meta])* $Name:ident { $($Variant:ident = $word:literal),+ $(,)? }) => {
        units::named_enum! {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $Name { $($Variant = $word,)+ }
        }

        impl FromStr for $Name {
            type Err = String;

            fn from_str(text: &str) -> Result<$Name, String> {
                let all = || $Name::ALL.map($Name::name).join(", ");
                $Name::from_name(text).ok_or_else(|| format!("must be one of {}", all()))
            }
        }
    };
}

choice! {
    /// How the requests of one rate are spaced.
    Spacing { Even = "even", Poisson = "poisson" }
}
choice! {
    /// How closely an open loop follows its schedule.
    PaceChoice { Precise = "precise", Balanced = "balanced", Efficient = "efficient" }
}
choice! {
    /// Who timestamps the arrival of a response.
    StampSource { Kernel = "kernel", Read = "read" }
}
choice! {
    /// The version of HTTP that servers are spoken to in.
    HttpChoice { Auto = "auto", Http1 = "1.1", Http2 = "2", H2c = "h2c" }
}
choice! {
    /// The versions of TLS that are offered.
    TlsVersionChoice { Auto = "auto", Tls12 = "1.2", Tls13 = "1.3" }
}
choice! {
    /// Whether something is done.
    Switch { On = "on", Off = "off" }
}

impl From<PaceChoice> for engine::Pace {
    fn from(pace: PaceChoice) -> engine::Pace {
        match pace {
            PaceChoice::Precise => engine::Pace::Precise,
            PaceChoice::Balanced => engine::Pace::Balanced,
            PaceChoice::Efficient => engine::Pace::Efficient,
        }
    }
}

impl From<TlsVersionChoice> for Versions {
    fn from(version: TlsVersionChoice) -> Versions {
        match version {
            TlsVersionChoice::Auto => Versions::Any,
            TlsVersionChoice::Tls12 => Versions::Only12,
            TlsVersionChoice::Tls13 => Versions::Only13,
        }
    }
}

impl From<Switch> for Resumption {
    fn from(switch: Switch) -> Resumption {
        match switch {
            Switch::On => Resumption::On,
            Switch::Off => Resumption::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_connect_to_are_read_as_curl_reads_them() {
        for (text, address) in
            [("h:443:127.0.0.1", "127.0.0.1"), ("H:443:::1", "::1"), ("h:443:[::1]", "::1")]
        {
            let resolve: Resolve = text.parse().unwrap();
            assert_eq!(resolve.address, address.parse::<IpAddr>().unwrap());
            assert!(resolve.is_for(&Url::parse("https://h/").unwrap()));
            assert!(!resolve.is_for(&Url::parse("http://h/").unwrap()));
        }
        for text in ["h", "h:443", "h:443:name", ":443:127.0.0.1", "h:x:127.0.0.1"] {
            assert!(text.parse::<Resolve>().unwrap_err().contains("HOST:PORT:ADDR"), "{text}");
        }
    }

    #[test]
    fn processes_are_named_by_id_control_group_or_unit() {
        for (text, measured) in [
            ("7141", Measured::Tree(7_141)),
            ("only:7141", Measured::Only(7_141)),
            (
                "cgroup:/system.slice/nginx.service",
                Measured::Cgroup("/system.slice/nginx.service".to_owned()),
            ),
            ("unit:nginx", Measured::Unit("nginx".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(measured));
        }
        for text in ["nginx", "only:nginx", "only:", "unit:", "comm:nginx", "0"] {
            assert!(text.parse::<Measured>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_printed_as_it_was_written() {
        for json in ["\"1k/s\"", "20", "\"010\"", "\"2s\""] {
            let read: Result<Written<String>, _> = serde_json::from_str(json);
            assert_eq!(serde_json::to_string(&read.unwrap()).unwrap(), json);
        }
        let refused = serde_json::from_str::<Written<Count>>("0").unwrap_err().to_string();
        assert!(refused.contains("must be at least 1"), "{refused}");
    }

    #[test]
    fn whom_to_watch_is_read_or_refused() {
        assert_eq!("4711".parse(), Ok(WatchSubject { host: None, pid: 4711 }));
        let there = WatchSubject { host: Some("me@db1".to_owned()), pid: 9 };
        assert_eq!("ssh:me@db1:9".parse(), Ok(there));
        for nonsense in
            ["", "0", "-1", "ssh:", "ssh:db1", "ssh::9", "ssh:-oProxyCommand=x:9", "ssh:db1:x", "nginx"]
        {
            assert!(nonsense.parse::<WatchSubject>().is_err(), "{nonsense}");
        }
    }
}
