//! The options of `parallax drive` for databases.

use clap::ValueHint;

use super::connect_args::text;

/// What is sent to a database, and how to log in.
#[derive(Debug, Clone, clap::Args)]
pub struct DatabaseArgs {
    /// SQL statement to execute; several take turns.
    #[arg(long, value_name = "SQL", help_heading = "Database")]
    query: Vec<String>,

    /// Prepare each statement once per connection and execute it by number, instead of sending its text.
    #[arg(long, help_heading = "Database")]
    prepared: bool,

    /// Command to Redis; several take turns. Arguments may have placeholders of scenario files: 'GET key:{{random 1
    /// 100000}}'.
    #[arg(long, value_name = "COMMAND", help_heading = "Database")]
    command: Vec<String>,

    /// SQL that each new connection executes once, at the end of its login: its time is in the phase auth, and if the
    /// server refuses it the connection ends as auth_failed. Repeat it for more.
    #[arg(long, value_name = "SQL", help_heading = "Database")]
    setup_query: Vec<String>,

    /// Record what the server counted during the run: SHOW GLOBAL STATUS and statement digests, pg_stat_database and
    /// pg_stat_statements, or INFO; and once per second, who holds the locks that others wait for. Logs in before, during and after the run;
    /// the report says what the server does not offer and how to turn it on.
    #[arg(long, help_heading = "Database")]
    server_account: bool,

    /// Built-in transactions instead of statements: oltp-point-select, oltp-read-only, oltp-read-write, oltp-write-only,
    /// as sysbench's scripts of these names, on tables that `parallax prepare` has made, or sysbench; tpcb-like, as
    /// pgbench's, on those of `parallax prepare --workload tpcb-like` or `pgbench -i`; redis-get-set, as redis-benchmark's get and set.
    #[arg(long, value_name = "NAME", help_heading = "Database")]
    workload: Option<String>,

    /// Tables of the workload [default: 1].
    #[arg(long, value_name = "N", value_parser = text("tables"), help_heading = "Database")]
    tables: Option<String>,

    /// Rows in each table of the workload; for tpcb-like, accounts, for redis-get-set, keys [default: 10000, tpcb-like 100000].
    #[arg(long, value_name = "N", value_parser = text("rows"), help_heading = "Database")]
    rows: Option<String>,

    /// Print the scenario file of the workload, to be copied and changed, and send nothing.
    #[arg(long, help_heading = "Database")]
    pub print_workload: bool,

    /// File with the password [default: MYSQL_PWD, or PGPASSWORD and ~/.pgpass, or REDISCLI_AUTH]. A password in the URL is visible to other users of this host until
    /// the program overwrites it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Database")]
    password_file: Option<String>,
}
