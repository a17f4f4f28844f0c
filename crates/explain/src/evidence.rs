//! Everything known about a run once its records are joined; facts and notes are derived from it.

use export::requests::Row;
use record::Served;

use crate::host::Surroundings;
use crate::inputs::{Client, Server};
use crate::join::{JoinCounts, Match};

/// Joined records, from which sentences and figures are made.
pub(crate) struct Evidence<'a> {
    pub(crate) client: &'a Client,
    pub(crate) servers: &'a [Server],
    pub(crate) rows: &'a [Row],
    pub(crate) matches: &'a [Option<Match>],
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) join: &'a JoinCounts,
}

impl Evidence<'_> {
    /// The server and the request it served, for a row of the client.
    pub(crate) fn served(&self, row: usize) -> Option<(&Server, &Served)> {
        let Match { server, place, .. } = self.matches[row]?;
        let server = &self.servers[server];
        Some((server, &server.served[place]))
    }
}
