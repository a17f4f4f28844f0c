//! The options of `parallax drive` that say how its servers are reached.

use clap::ValueHint;
use run::options::{self, default};

/// How servers are reached.
#[derive(Debug, Clone, clap::Args)]
pub struct ConnectArgs {
    /// HTTP version. auto: what the TLS handshake agrees on over https://, 1.1 over http://. h2c: HTTP/2 without TLS,
    /// with prior knowledge.
    #[arg(long, value_name = "VERSION", default_value = default("http"), value_parser = ["auto", "1.1", "2", "h2c"], help_heading = "Connection")]
    http: Option<String>,

    /// Maximum concurrent streams per HTTP/2 connection, as far as the server allows.
    #[arg(long, value_name = "N", default_value = default("streams"), value_parser = text("streams"), help_heading = "Connection")]
    streams: Option<String>,

    /// Connect to ADDR instead of looking HOST up, as with curl; repeat it for more.
    #[arg(long, value_name = "HOST:PORT:ADDR", value_parser = text("resolve"), help_heading = "Connection")]
    resolve: Vec<String>,

    /// Connect to this Unix domain socket; the URL then only names what to request. The URL unix:/SOCKET:/PATH names both.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Connection")]
    unix: Option<String>,

    /// Local address to connect from; if repeated, connections use the addresses in turn.
    #[arg(long, visible_alias = "interface", value_name = "ADDR", value_parser = text("source"), help_heading = "Connection")]
    source: Vec<String>,

    /// Additional connections to each server that are opened, and logged in, before the run, and then carry nothing.
    #[arg(long, value_name = "N", default_value = default("idle-connections"), value_parser = text("idle-connections"), help_heading = "Connection")]
    idle_connections: Option<String>,

    /// Close a connection after N requests and open a new one for the next request [default: never].
    #[arg(long, value_name = "N", value_parser = text("reconnect-every"), help_heading = "Connection")]
    reconnect_every: Option<String>,

    /// Open at most this many connections per second, at the start and later: 100/s. A request that needs a new
    /// connection waits for it in the phase pool_wait, within --checkout-timeout [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = text("connect-rate"), help_heading = "Connection")]
    connect_rate: Option<String>,

    #[command(flatten)]
    tls: TlsArgs,
}

/// How TLS is used.
#[derive(Debug, Clone, clap::Args)]
pub struct TlsArgs {
    /// Skip TLS certificate verification.
    #[arg(short = 'k', long, help_heading = "TLS")]
    insecure: bool,

    /// CA bundle (PEM) to trust instead of the system trust store.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "TLS")]
    cacert: Option<String>,

    /// Client certificate chain for mutual TLS (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "TLS")]
    cert: Option<String>,

    /// Private key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "TLS")]
    key: Option<String>,

    /// Server name to send in the handshake and to verify [default: the URL's host].
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    sni: Option<String>,

    /// ALPN protocols to offer, the preferred one first [default: by --http].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "TLS")]
    alpn: Vec<String>,

    /// TLS version to offer.
    #[arg(long, value_name = "VERSION", default_value = default("tls-version"), value_parser = ["auto", "1.2", "1.3"], help_heading = "TLS")]
    tls_version: Option<String>,

    /// Whether connections may resume the TLS session of an earlier one.
    #[arg(long, value_name = "WHETHER", default_value = default("tls-resumption"), value_parser = ["on", "off"], help_heading = "TLS")]
    tls_resumption: Option<String>,
}

/// Checks an option's value in the same way as a run, and keeps its text.
pub fn text(name: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |text| options::check(name, text).map(|()| text.to_owned())
}
