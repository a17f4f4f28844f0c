//! Built-in workloads as scenario files, from the options that name them.

use anyhow::{Context, ensure};
use database::{DatabaseKind, without_password};
use scenario::workloads::{self, Size, workload};

use crate::options::GivenOptions;
use crate::values::Count;

/// The workload `name` with the URL, tables and rows among `given`.
///
/// # Errors
///
/// One line for a name that is not known, and for numbers that cannot be used.
pub fn text(name: &str, given: &GivenOptions) -> anyhow::Result<String> {
    let text = |option: &str| given.0.get(option).and_then(|given| given.texts.last()).map(String::as_str);
    let url = text("url").context("a workload needs a database; give its URL")?;
    let count = |option: &str, otherwise: u64| -> anyhow::Result<u64> {
        let Some(text) = text(option) else { return Ok(otherwise) };
        let count: Count = text.parse().map_err(|error| anyhow::anyhow!("--{option} {text}: {error}"))?;
        Ok(count.0)
    };
    let default = Size::default_of(name);
    let size = Size { tables: count("tables", default.tables)?, rows: count("rows", default.rows)? };
    Ok(workload(name, &without_password(url), size)?)
}

/// The scenario of the commands to Redis among `given`.
///
/// # Errors
///
/// One line for a database that is not Redis.
pub fn commands(given: &GivenOptions) -> anyhow::Result<String> {
    let url = given.first("url").context("a command needs a database; give its URL")?;
    let is_redis = DatabaseKind::of(url) == Some(DatabaseKind::Redis);
    ensure!(is_redis, "--command is for Redis (redis://HOST); other databases are sent --query");
    let texts = given.0.get("command").map_or(&[][..], |given| &given.texts);
    Ok(workloads::commands(&without_password(url), texts))
}

#[cfg(test)]
mod tests {
    use scenario::workloads::NAMES;

    use crate::testing::prepared;

    #[test]
    fn each_workload_is_a_scenario() {
        let urls = ["mysql://app@127.0.0.1/db", "postgres://app@127.0.0.1:5432/db"];
        // Statements per table, and besides: BEGIN, COMMIT, and ROLLBACK where there are retries.
        let oltp = [
            ("oltp-point-select", 1, 0),
            ("oltp-read-only", 5, 2),
            ("oltp-read-write", 9, 3),
            ("oltp-write-only", 4, 3),
        ];
        for url in urls {
            for (name, per_table, others) in oltp {
                let arguments = [url, "--workload", name, "--tables", "3", "--rows", "500"];
                let prepared = prepared(&arguments).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                assert_eq!(prepared.url, format!("{name} at {url}"));
                let scenario = prepared.protocol.scenario().unwrap();
                assert_eq!(scenario.statements().len(), 3 * per_table + others, "{name}");
            }
        }
        for url in urls {
            let tpcb = prepared(&[url, "--workload", "tpcb-like", "--rows", "300k"]).unwrap();
            assert_eq!(tpcb.protocol.scenario().unwrap().statements().len(), 8, "{url}");
        }
        let redis = "redis://127.0.0.1/1";
        prepared(&[redis, "--workload", "redis-get-set", "--pipeline", "4"]).unwrap();
        let commands = ["--command", "GET key:{{random 1 9}}", "--command", "get key:7", "--command", "PING"];
        let commands = prepared(&[&[redis][..], &commands].concat()).unwrap();
        assert_eq!(commands.names, ["GET key:{}", "get key:7", "PING"]);
        assert_eq!(NAMES.len(), oltp.len() + 2);
        let error = |arguments: &[&str]| prepared(arguments).map(|_| ()).unwrap_err().to_string();
        let url = urls[0];
        assert!(error(&[url, "--workload", "tpcc"]).contains("oltp-read-write"));
        assert!(error(&[redis, "--workload", "tpcb-like"]).contains("not for Redis"));
        assert!(error(&[redis, "--workload", "oltp-read-only"]).contains("not for Redis"));
        assert!(error(&[redis, "--query", "SELECT 1"]).contains("--command"));
        assert!(error(&[url, "--command", "GET a"]).contains("--query"));
        assert!(error(&[redis, "--command", "SUBSCRIBE a"]).contains("one reply"));
        assert!(error(&[urls[1], "--workload", "tpcb-like", "--rows", "5"]).contains("100000"));
        assert!(error(&[urls[1], "--workload", "tpcb-like", "--tables", "5"]).contains("pgbench -i"));
        assert!(error(&[url, "--workload", NAMES[0], "--tables", "5000"]).contains("1 to 1000"));
        assert!(error(&["http://h/", "--workload", NAMES[0]]).contains("needs a database"));
        assert!(error(&[url, "--tables", "2"]).contains("--workload"));
        assert!(error(&[url, "--query", "SELECT 1", "--pipeline", "2"]).contains("one statement at a time"));
        prepared(&[urls[1], "--query", "SELECT 1", "--pipeline", "2"]).unwrap();
    }
}
