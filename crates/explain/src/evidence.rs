//! What is known of a run once its records are joined: what facts and notes are drawn from.

use export::requests::Row;
use record::Served;

use crate::host::Surroundings;
use crate::inputs::{Client, Server};
use crate::join::{JoinCounts, Match};

/// What is known, for the sentences next to the figures.
pub(crate) struct Evidence<'a> {
    pub(crate) client: &'a Client,
    pub(crate) servers: &'a [Server],
    pub(crate) rows: &'a [Row],
    pub(crate) matches: &'a [Option<Match>],
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) join: &'a JoinCounts,
}

impl Evidence<'_> {
    /// The server of a row of the client, and the request that it served.
    pub(crate) fn served(&self, row: usize) -> Option<(&Server, &Served)> {
        let Match { server, place, .. } = self.matches[row]?;
        let server = &self.servers[server];
        Some((server, &server.served[place]))
    }
}
