//! PostgreSQL: simple and extended protocol, prepared statements, pipelines, COPY, and a connection per transaction.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use record::Protocol;

use super::super::postgres::{Postgres, id};
use super::super::run;
use super::{check_counted, make_certificate, statements, times};
use crate::support::quiet;
use crate::support::watched::Watching;

/// Its server accepts both; Debian's default is `ssl=on`.
#[test]
fn postgres_statements_are_those_of_the_server_with_tls_and_without() {
    let _together = quiet::together();
    let secrets = tempfile::tempdir().unwrap();
    let tls = secure(secrets.path());
    let postgres = Postgres::start_by(|command| {
        let settings = tls.iter().flat_map(|setting| ["-c", setting]);
        command.iter().copied().chain(settings).map(str::to_owned).collect()
    });
    postgres.prepare();
    postgres.ask("CREATE TABLE copied (n int)");
    let [script, rows] = ["pipeline.sql", "rows"].map(|name| secrets.path().join(name));
    fs::write(
        &script,
        "\\startpipeline\nselect 7;\nselect abalance from pgbench_accounts where aid = 1;\n\\endpipeline\n",
    )
    .unwrap();
    let numbers: String = (0..times(20_000)).map(|n| format!("{n}\n")).collect();
    fs::write(&rows, &numbers).unwrap();
    for secure in ["require", "disable"] {
        let database =
            format!("host=127.0.0.1 port={} user=postgres dbname=postgres sslmode={secure}", postgres.port);
        let bench = |number: u64, more: &[&str]| {
            let (pgbench, number) = (postgres.programs.join("pgbench"), number.to_string());
            run(pgbench.to_str().unwrap(), &[&["-n", "-c", "4", "-t", &number], more, &[&database]].concat());
        };
        let psql = |command: &str| run("psql", &["-X", "-q", &database, "-c", command]);
        postgres.ask("SELECT pg_stat_statements_reset()");
        let watching = Watching::start(&["-p", &postgres.pid().to_string(), "--tls"]);
        for mode in ["simple", "extended", "prepared"] {
            bench(times(250), &["-S", "-M", mode]);
        }
        for mode in ["extended", "prepared"] {
            bench(times(100), &["-M", mode, "-f", script.to_str().unwrap()]);
        }
        bench(times(20), &["-S", "-C"]);
        psql("select 1; select 2; select 3");
        psql(&format!("\\copy copied from '{}'", rows.display()));
        let watched = watching.finish();
        let own = "WHERE query NOT LIKE '%pg_stat_statements%'";
        let counted: u64 =
            postgres.ask(&format!("SELECT sum(calls) FROM pg_stat_statements {own}")).trim().parse().unwrap();
        let requests = watched.named(postgres.port);
        check_counted(
            secure,
            requests.iter().map(|(one, _)| u64::from(one.statements)).sum(),
            counted,
            &watched,
        );
        let abalance = 4 * (3 * times(250) + 2 * times(100) + times(20));
        assert_eq!(statements(&requests, "select abalance from pgbench_accounts where aid = "), abalance);
        assert_eq!(statements(&requests, "select ?; select ?; select ?"), 3);
        assert!(
            requests.iter().all(|(one, _)| one.protocol == Protocol::Postgres),
            "{:?}",
            watched.results.subject.protocols
        );
        let copy: Vec<u64> = requests
            .iter()
            .filter(|(_, text)| text.starts_with("copy copied"))
            .map(|(one, _)| one.request_bytes)
            .collect();
        // The file, five bytes for each message of at most 8 KiB, and the statement.
        let [bytes] = copy[..] else { panic!("{copy:?}") };
        let file = numbers.len() as u64;
        assert!((file..file + file / 100 + 200).contains(&bytes), "{bytes} of {file}");
    }
}

/// Settings with a certificate and a key that only the server's user can read, as it requires.
fn secure(folder: &Path) -> [String; 3] {
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    make_certificate(&certificate, &key);
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    for path in [folder, &certificate, &key] {
        chown(path, Some(id("-u")), Some(id("-g"))).unwrap();
    }
    let files = [("cert", certificate), ("key", key)]
        .map(|(what, file)| format!("ssl_{what}_file={}", file.display()));
    let [certificate, key] = files;
    ["ssl=on".to_owned(), certificate, key]
}
