//! Properties of Redis commands: what their digest shows, and what they reply.

/// What the digest of a command shows in addition to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digested {
    /// The pattern of its first argument, which is a key.
    Key,
    /// Its first argument as it is.
    Subcommand,
    /// Nothing: what follows is not a key, or is secret.
    Name,
}

pub(crate) fn digested(name: &[u8]) -> Digested {
    match name {
        b"CLIENT" | b"CONFIG" | b"CLUSTER" | b"COMMAND" | b"SCRIPT" | b"FUNCTION" | b"ACL" | b"LATENCY"
        | b"SLOWLOG" | b"MODULE" | b"PUBSUB" | b"MEMORY" | b"OBJECT" | b"XINFO" | b"XGROUP" | b"DEBUG"
        | b"SENTINEL" => Digested::Subcommand,
        b"AUTH" | b"HELLO" | b"PING" | b"ECHO" | b"SELECT" | b"QUIT" | b"EVAL" | b"EVALSHA" | b"EVAL_RO"
        | b"EVALSHA_RO" | b"FCALL" | b"FCALL_RO" | b"SCAN" | b"KEYS" | b"INFO" | b"MULTI" | b"EXEC"
        | b"DISCARD" | b"UNWATCH" | b"MONITOR" | b"SAVE" | b"BGSAVE" | b"BGREWRITEAOF" | b"DBSIZE"
        | b"FLUSHALL" | b"FLUSHDB" | b"SHUTDOWN" | b"SWAPDB" | b"TIME" | b"ROLE" | b"WAIT" | b"WAITAOF"
        | b"RESET" | b"REPLICAOF" | b"SLAVEOF" | b"REPLCONF" | b"PSYNC" | b"SYNC" | b"MIGRATE" | b"XREAD"
        | b"XREADGROUP" | b"LOLWUT" | b"ASKING" | b"READONLY" | b"READWRITE" | b"FAILOVER" => Digested::Name,
        _ => Digested::Key,
    }
}

/// The replies to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replies {
    One,
    /// One, with those of the commands that were queued.
    Transaction,
    /// One message per channel.
    Subscription,
    /// One reply, and then lines without end.
    Monitor,
    /// Not replies any more: replication.
    Stream,
    ReplyOn,
    ReplyOff,
    ReplySkip,
}

pub(super) fn replies(name: &[u8], first: &[u8], second: &[u8]) -> Replies {
    match name {
        b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" | b"SUNSUBSCRIBE" => {
            Replies::Subscription
        }
        b"MONITOR" => Replies::Monitor,
        b"EXEC" => Replies::Transaction,
        b"PSYNC" | b"SYNC" => Replies::Stream,
        b"CLIENT" if first.eq_ignore_ascii_case(b"reply") => match second.to_ascii_uppercase().as_slice() {
            b"OFF" => Replies::ReplyOff,
            b"SKIP" => Replies::ReplySkip,
            _ => Replies::ReplyOn,
        },
        _ => Replies::One,
    }
}
