//! The options of `parallax drive` that say how its servers are reached and spoken to.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueHint;
use codec::tls::{Resumption, Versions};
use codec::web::Url;

use super::args::count;

/// How servers are reached and spoken to.
#[derive(Debug, Clone, clap::Args)]
pub struct ConnectArgs {
    /// Version of HTTP. auto: what the handshake agrees on over https://, 1.1 over http://. h2c: HTTP/2 in the
    /// clear, without asking first.
    #[arg(long, value_enum, value_name = "VERSION", default_value = "auto", help_heading = "Connection")]
    pub http: HttpArg,

    /// Requests that may be outstanding on one connection of HTTP/2, as far as its server allows.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, help_heading = "Connection")]
    pub streams: u64,

    /// Connect to ADDR instead of looking HOST up, as with curl; may be given again.
    #[arg(long, value_name = "HOST:PORT:ADDR", value_parser = resolve, help_heading = "Connection")]
    pub resolve: Vec<Resolve>,

    /// Connect to this socket of the file system; the URL says what is asked for. Or: unix:/path/of.sock:/path
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Connection")]
    pub unix: Option<String>,

    /// Address of this host to connect from; given again, connections take them in turn.
    #[arg(long, visible_alias = "interface", value_name = "ADDR", help_heading = "Connection")]
    pub source: Vec<IpAddr>,

    /// Believe every server's certificate.
    #[arg(short = 'k', long, conflicts_with = "cacert", help_heading = "TLS")]
    pub insecure: bool,

    /// Believe the certificates of this PEM file, and no others [default: those of this host].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "TLS")]
    pub cacert: Option<PathBuf>,

    /// Certificate of this client, with those that vouch for it, as PEM.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key", help_heading = "TLS")]
    pub cert: Option<PathBuf>,

    /// Private key of this client, as PEM.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert", help_heading = "TLS")]
    pub key: Option<PathBuf>,

    /// Name that the server is asked for in the handshake and has to prove [default: the URL's host].
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    pub sni: Option<String>,

    /// Protocols offered in the handshake, the preferred one first [default: by --http].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "TLS")]
    pub alpn: Vec<String>,

    /// Version of TLS.
    #[arg(long, value_enum, value_name = "VERSION", default_value = "auto", help_heading = "TLS")]
    pub tls_version: TlsVersionArg,

    /// Whether a connection may go on from the handshake of an earlier one.
    #[arg(long, value_enum, value_name = "WHETHER", default_value = "on", help_heading = "TLS")]
    pub tls_resumption: SwitchArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum HttpArg {
    Auto,
    #[value(name = "1.1")]
    Http1,
    #[value(name = "2")]
    Http2,
    #[value(name = "h2c")]
    H2c,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TlsVersionArg {
    Auto,
    #[value(name = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    Tls13,
}

impl TlsVersionArg {
    pub fn versions(self) -> Versions {
        match self {
            TlsVersionArg::Auto => Versions::Any,
            TlsVersionArg::Tls12 => Versions::Only12,
            TlsVersionArg::Tls13 => Versions::Only13,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SwitchArg {
    On,
    Off,
}

impl SwitchArg {
    pub fn resumption(self) -> Resumption {
        match self {
            SwitchArg::On => Resumption::On,
            SwitchArg::Off => Resumption::Off,
        }
    }
}

/// Where to connect to for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    host: String,
    port: u16,
    pub address: IpAddr,
}

impl Resolve {
    pub fn is_for(&self, url: &Url) -> bool {
        self.port == url.port() && self.host.eq_ignore_ascii_case(url.host())
    }
}

fn resolve(text: &str) -> Result<Resolve, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_connect_to_are_read_as_curl_reads_them() {
        for (text, address) in
            [("h:443:127.0.0.1", "127.0.0.1"), ("H:443:::1", "::1"), ("h:443:[::1]", "::1")]
        {
            let resolve = resolve(text).unwrap();
            assert_eq!(resolve.address, address.parse::<IpAddr>().unwrap());
            assert!(resolve.is_for(&Url::parse("https://h/").unwrap()));
            assert!(!resolve.is_for(&Url::parse("http://h/").unwrap()));
        }
        for text in ["h", "h:443", "h:443:name", ":443:127.0.0.1", "h:x:127.0.0.1"] {
            assert!(resolve(text).unwrap_err().contains("HOST:PORT:ADDR"), "{text}");
        }
    }
}
