//! What precedes a run's zero besides the run itself: idle connections, and what the server had counted.

use dataset::Sampling;
use dataset::account::{self, Accountant, Snapshot};
use engine::IdleConnections;
use record::document::{IdleFacts, ServerAccount};

use crate::prepare::PreparedRun;
use crate::statements;

/// What reads the counters of the run's first server; `None` if that was not requested.
///
/// # Errors
///
/// For a login that cannot be sent.
pub(super) fn accountant(prepared: &PreparedRun) -> anyhow::Result<Option<Accountant>> {
    if !prepared.spec.connection.server_account {
        return Ok(None);
    }
    let Some((kind, plan)) = prepared.protocol.database() else { return Ok(None) };
    Accountant::new(kind, plan.clone(), prepared.plan.peers[0].place.clone(), statements::digest).map(Some)
}

/// What the server counted since `before`, and why that is not known; and its sessions meanwhile.
pub(super) fn counted(
    accountant: &Accountant,
    before: anyhow::Result<Snapshot>,
    sampling: Option<Sampling>,
) -> (ServerAccount, Option<String>) {
    // Its own connection is closed before the server's are counted.
    let sampled = sampling.map(Sampling::finish);
    let account = before.and_then(|before| Ok(account::between(&before, &accountant.read(Some(&before))?)));
    let (mut account, warning) = match account {
        Ok(account) => (account, None),
        Err(error) => {
            let why = format!("{error:#}");
            (account::unread(why.clone()), Some(format!("--server-account: {why}")))
        }
    };
    if let Some((sessions, missing)) = sampled {
        account.sessions = (sessions.samples > 0).then_some(sessions);
        account.missing.extend(missing);
    }
    (account, warning)
}

/// What the record has of idle connections; `None` if there are none.
pub(super) fn idle_facts(idle: IdleConnections) -> Option<IdleFacts> {
    let IdleConnections { wanted, opened, lost, failure } = idle;
    let failure = failure.map(|(failure, reason)| match reason {
        Some(reason) => format!("{}: {reason}", failure.outcome.name()),
        None => failure.outcome.name().to_owned(),
    });
    (wanted > 0).then_some(IdleFacts { wanted, opened, lost, failure })
}

/// What the user has to know of them, in one line.
pub(super) fn idle_warning(idle: &IdleFacts) -> Option<String> {
    let missing = idle.wanted.saturating_sub(idle.opened);
    let failure = idle.failure.as_deref().unwrap_or("the run was ended");
    match (missing, idle.lost) {
        (0, 0) => None,
        (0, lost) => Some(format!("--idle-connections: the server closed {lost} of {}", idle.wanted)),
        _ => Some(format!("--idle-connections: {missing} of {} could not be opened: {failure}", idle.wanted)),
    }
}
