//! Ten thousand connections from one process.

use crate::drive::drive;
use crate::quiet;
use crate::serve::Serve;

/// If this fails, one machine cannot generate the load of many slow clients. Only counts are checked: so many
/// connections at once keep client and server busy with each other.
#[test]
fn each_of_ten_thousand_connections_completes_its_requests() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let run = drive(&["-c", "10k", "-n", "30k", "--connect-timeout", "30s"], &serve.url("/plaintext"));
    assert_eq!((run.scheduled(), run.ok()), (30_000, 30_000), "{}", run.line);
    assert_eq!(run.results().totals.connections_opened, 10_000, "{}", run.line);
    let truth = serve.truth();
    assert_eq!((truth.connections.accepted, truth.requests.answered), (10_000, 30_000), "{}", run.line);
}
