//! Which frames show what a thread waits for: rules as data, tried in order on each stack.
//!
//! The order is from the cause to the mechanism: waiting for a connection of a pool is done with a lock, and the lock
//! with a system call. An event loop that polls, and a pool's thread without work, wait for nothing: they are idle.

use crate::observation::profile::WaitKind;

use super::Stacks;

/// What a frame shows about the stacks that contain it.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub kind: WaitKind,
    /// What is waited for, as text for people.
    pub what: &'static str,
    /// Names of functions, any of which makes the rule apply. Each is searched for as whole words in a frame's name.
    pub frames: &'static [&'static str],
}

const fn rule(kind: WaitKind, what: &'static str, frames: &'static [&'static str]) -> Rule {
    Rule { kind, what, frames }
}

/// Apply to stacks off the CPU.
pub const RULES: &[Rule] = &[
    rule(
        WaitKind::Pool,
        "a connection of Apache HttpClient's pool",
        &[
            "PoolingHttpClientConnectionManager",
            "AbstractConnPool.getPoolEntryBlocking",
            "StrictConnPool.lease",
            "LaxConnPool.lease",
            "InternalExecRuntime.acquireEndpoint",
        ],
    ),
    rule(
        WaitKind::Pool,
        "a connection of HikariCP's pool",
        &["HikariPool.getConnection", "ConcurrentBag.borrow"],
    ),
    rule(
        WaitKind::Pool,
        "a connection of a JDBC pool",
        &[
            "BasicDataSource.getConnection",
            "GenericObjectPool.borrowObject",
            "ConnectionPool.borrowConnection",
            "C3P0PooledConnectionPool.checkoutPooledConnection",
            "BasicResourcePool.checkoutResource",
            "DruidDataSource.getConnectionInternal",
            "AgroalDataSource.getConnection",
            "agroal.pool.ConnectionPool.getConnection",
        ],
    ),
    rule(
        WaitKind::Pool,
        "a connection of Jedis' or Lettuce's pool",
        &["JedisPool.getResource", "ConnectionPoolSupport"],
    ),
    rule(
        WaitKind::Pool,
        "a connection of Go's database pool",
        &["database/sql.(*DB).conn", "database.sql.(*DB).conn"],
    ),
    rule(
        WaitKind::Pool,
        "a connection of Go's HTTP pool",
        &["net/http.(*Transport).queueForIdleConn", "net/http.(*Transport).getConn"],
    ),
    rule(
        WaitKind::Pool,
        "a connection of libpq's or a Rust pool",
        &["pgpool_get", "r2d2::Pool", "deadpool::managed::Pool", "sqlx_core::pool::inner::PoolInner"],
    ),
    rule(
        WaitKind::Idle,
        "work, in an idle thread of a pool",
        &[
            "ThreadPoolExecutor.getTask",
            "ForkJoinPool.awaitWork",
            "ScheduledThreadPoolExecutor$DelayedWorkQueue.take",
            "CompileQueue::get",
            "VMThread::loop",
            "VMThread::wait_for_vm_thread_exit",
            "MonitorDeflationThread",
            "ServiceThread::service_thread_entry",
            "WatcherThread::sleep",
            "ReferenceHandler",
            "Reference.waitForReferencePendingList",
            "ReferenceQueue.remove",
            "signal_thread_entry",
            "Threads::destroy_vm",
            "runtime.stopm",
            "runtime.findRunnable",
            "runtime.sysmon",
            "tokio::runtime::scheduler::multi_thread::worker::Context::park",
            "tp_wait_for_request",
            "srv_purge_coordinator_suspend",
        ],
    ),
    rule(
        WaitKind::Idle,
        "the next event, in an event loop",
        &[
            "ep_poll",
            "epoll_wait",
            "epoll_pwait",
            "do_epoll_wait",
            "do_sys_poll",
            "poll_schedule_timeout",
            "do_select",
            "io_cqring_wait",
            "inet_csk_accept",
            "inet_csk_wait_for_connect",
            "EPoll.wait",
            "do_sigtimedwait",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a Java monitor",
        &[
            "ObjectMonitor",
            "ObjectMonitor::enter",
            "ObjectSynchronizer::enter",
            "SharedRuntime::complete_monitor_locking_C",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a Java lock or condition",
        &[
            "LockSupport.park",
            "LockSupport.parkNanos",
            "Unsafe.park",
            "Unsafe_Park",
            "AbstractQueuedSynchronizer",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a mutex",
        &[
            "pthread_mutex_lock",
            "__pthread_mutex_lock",
            "___pthread_mutex_lock",
            "pthread_mutex_timedlock",
            "__lll_lock_wait",
            "__lll_lock_wait_private",
            "lll_mutex_lock_optimized",
            "g_mutex",
            "g_mutex_lock",
            "g_mutex_lock_slowpath",
            "std::mutex::lock",
            "sync.(*Mutex).Lock",
            "sync.runtime_SemacquireMutex",
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "futex_lock_pi",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a read-write lock",
        &[
            "pthread_rwlock_rdlock",
            "pthread_rwlock_wrlock",
            "___pthread_rwlock_rdlock",
            "___pthread_rwlock_wrlock",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a lock of the database",
        &[
            "LWLockAcquire",
            "ProcSleep",
            "ProcWaitForSignal",
            "lock_wait_suspend_thread",
            "lock_wait",
            "MDL_context::acquire_lock",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a condition or semaphore",
        &[
            "pthread_cond_wait",
            "pthread_cond_timedwait",
            "___pthread_cond_wait",
            "___pthread_cond_timedwait64",
            "sem_wait",
            "sync.(*Cond).Wait",
            "do_semtimedop",
        ],
    ),
    rule(
        WaitKind::Lock,
        "a futex: a lock or condition of its runtime",
        &["futex_wait", "__futex_wait", "do_futex", "runtime.futex"],
    ),
    rule(
        WaitKind::Lock,
        "a lock of the kernel",
        &[
            "rwsem_down_read_slowpath",
            "rwsem_down_write_slowpath",
            "__mutex_lock",
            "mutex_lock",
            "down_read",
            "down_write",
        ],
    ),
    rule(
        WaitKind::Disk,
        "the disk",
        &[
            "io_schedule",
            "blk_mq_get_tag",
            "submit_bio_wait",
            "folio_wait_bit_common",
            "folio_wait_bit",
            "jbd2_log_wait_commit",
            "do_fsync",
            "vfs_fsync_range",
            "wait_on_page_writeback",
            "folio_wait_writeback",
        ],
    ),
    rule(
        WaitKind::Network,
        "bytes of a connection",
        &[
            "sk_wait_data",
            "tcp_recvmsg",
            "tcp_sendmsg",
            "sk_stream_wait_memory",
            "unix_stream_read_generic",
            "unix_stream_recvmsg",
            "inet_stream_connect",
            "__skb_wait_for_more_packets",
        ],
    ),
    rule(WaitKind::Other, "a pipe", &["pipe_read", "pipe_write", "anon_pipe_read", "anon_pipe_write"]),
    rule(WaitKind::Other, "a child", &["do_wait", "kernel_wait4"]),
    rule(
        WaitKind::Sleep,
        "a time to pass",
        &[
            "hrtimer_nanosleep",
            "common_nsleep",
            "do_nanosleep",
            "clock_nanosleep",
            "nanosleep",
            "usleep",
            "Thread.sleep",
        ],
    ),
];

/// The weight of a picture's stacks to which a rule applies.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub rule: &'static Rule,
    pub weight: u64,
}

/// The rule that applies to a stack: the first one with a frame anywhere in it.
pub fn rule_of<S: AsRef<str>>(frames: &[S]) -> Option<&'static Rule> {
    let holds = |rule: &&Rule| {
        rule.frames.iter().any(|name| frames.iter().any(|frame| has_words(frame.as_ref(), name)))
    };
    RULES.iter().find(holds)
}

/// What the stacks wait for, the largest weight first.
pub fn found(stacks: &Stacks) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (frames, weight) in stacks.iter() {
        // The root names the thread.
        let frames: Vec<_> = frames.skip(1).collect();
        let Some(rule) = rule_of(&frames) else { continue };
        match found.iter_mut().find(|found| std::ptr::eq(found.rule, rule)) {
            Some(found) => found.weight += weight,
            None => found.push(Found { rule, weight }),
        }
    }
    found.sort_by_key(|found| std::cmp::Reverse(found.weight));
    found
}

/// Whether `name` is in `frame` without a letter, digit or underscore next to it.
pub(super) fn has_words(frame: &str, name: &str) -> bool {
    let frame = plain(frame);
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    frame.match_indices(name).any(|(at, _)| {
        let bytes = frame.as_bytes();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_word(before) && !is_word(bytes.get(at + name.len()))
    })
}

/// A frame's name without the mark of its origin, such as `_[k]`, and without the C library's prefix of exported names.
pub fn plain(frame: &str) -> &str {
    let name = ["_[k]", "_[i]", "_[j]"].iter().find_map(|mark| frame.strip_suffix(mark)).unwrap_or(frame);
    name.strip_prefix("__GI_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stack: &str, kind: WaitKind, what: &str) {
        let rule = rule_of(&stack.split(';').collect::<Vec<_>>()).expect("a rule holds");
        assert_eq!((rule.kind, rule.what), (kind, what), "{stack}");
    }

    /// Each name of each rule, as a symbolizer writes it, leads to its rule and not to an earlier one.
    #[test]
    fn every_name_leads_to_its_rule() {
        for rule in RULES {
            for name in rule.frames {
                let frames = [name.to_string(), format!("{name}_[k]"), format!("void {name}(long, int)_[j]")];
                for frame in frames {
                    let found = rule_of(&["main", &frame, "leaf"]);
                    assert_eq!(found.map(|rule| rule.what), Some(rule.what), "{frame}");
                }
            }
        }
    }

    /// If this fails, waiting for a pool is reported as waiting for a lock, and a pool that is too small is not
    /// noticed.
    #[test]
    fn who_waits_for_a_pool_waits_for_no_lock() {
        let stack = "Interpreter_[j];java.sql.Connection com.zaxxer.hikari.pool.HikariPool.getConnection(long)_[j];\
                     void java.util.concurrent.locks.LockSupport.parkNanos(java.lang.Object, long)_[j];Unsafe_Park;\
                     pthread_cond_timedwait;do_futex_[k];futex_wait_[k];schedule_[k]";
        check(stack, WaitKind::Pool, "a connection of HikariCP's pool");
        let stack = "org.apache.http.impl.conn.PoolingHttpClientConnectionManager.leaseConnection_[j];\
                     java.util.concurrent.locks.LockSupport.park_[j];futex_wait_[k]";
        check(stack, WaitKind::Pool, "a connection of Apache HttpClient's pool");
    }

    /// If this fails, every idle thread of a server seems to wait for a lock.
    #[test]
    fn a_thread_without_work_is_idle() {
        let stack = "java.util.concurrent.ThreadPoolExecutor.getTask_[j];LockSupport.park_[j];futex_wait_[k]";
        check(stack, WaitKind::Idle, "work, in an idle thread of a pool");
        check(
            "main;epoll_wait;do_epoll_wait_[k];ep_poll_[k];schedule_[k]",
            WaitKind::Idle,
            "the next event, in an event loop",
        );
    }

    #[test]
    fn a_lock_is_told_by_what_holds_it() {
        check(
            "main;f;pthread_mutex_lock;__lll_lock_wait;do_futex_[k];futex_wait_[k]",
            WaitKind::Lock,
            "a mutex",
        );
        check("main;f;__GI___lll_lock_wait;do_futex_[k];futex_wait_[k]", WaitKind::Lock, "a mutex");
        check(
            "main;f;[libc.so.6];do_futex_[k];__futex_wait_[k]",
            WaitKind::Lock,
            "a futex: a lock or condition of its runtime",
        );
    }

    #[test]
    fn part_of_a_name_is_no_name() {
        assert!(!has_words("my_futex_wait", "futex_wait"));
        assert!(!has_words("futex_wait_queue_[k]", "futex_wait"));
        assert!(has_words("futex_wait_[k]", "futex_wait"));
        assert!(has_words("void a.b.LockSupport.park(java.lang.Object)_[j]", "LockSupport.park"));
        assert!(!has_words("void a.b.LockSupport.parkNanos(long)_[j]", "LockSupport.park"));
    }
}
