//! The line that explains why no server of a run can be reached.

use engine::{Place, RunPlan};
use record::document::Document;

/// One line: why no connection could be opened, and what to do.
pub fn explain(document: &Document, plan: &RunPlan) -> String {
    findings::unreachable(document, &server(plan))
}

/// The server's address, or the number of servers.
fn server(plan: &RunPlan) -> String {
    match plan.peers.as_slice() {
        [peer] => match &peer.place {
            Place::Address(address) => address.to_string(),
            Place::Name { host, port } => format!("{host}:{port}"),
            Place::Unix(path) => path.display().to_string(),
        },
        peers => format!("the {} servers", peers.len()),
    }
}
