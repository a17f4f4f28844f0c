//! `parallax import`: another tool's results as a record.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueHint;
use export::import::{LONGEST, Tool};
use findings::Condition;
use record::import::{Import, read_import, write_import};

use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::{printed, report_notes};
use crate::{records, terminal};
use run::folder::new_folder;

/// Import the results of another load generator, noting what they leave out.
///
/// Reads the text output of wrk, wrk2, hey and oha; hey's `-o csv`; oha's JSON; k6's --summary-export; vegeta's
/// `report -type=json`, and `encode` as JSON or CSV; sysbench, pgbench and ab with their intervals. The imported record is never `valid`, because that run was not
/// audited. A figure that the tool does not report is absent.
///
/// Exit codes: 0 imported; 1 wrong usage, or the file cannot be read; 2 a --fail-if condition is true or cannot be
/// decided; 3 nothing was measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  wrk2 -t2 -c100 -d30s -R2000 --latency http://127.0.0.1:8080/ > wrk2.txt
  parallax import wrk2.txt -o runs/wrk2
  hey -z 10s -o csv http://127.0.0.1:8080/ | parallax import - --from hey -o runs/hey
  parallax report --fail-if 'error_share > 1%' runs/hey")]
pub struct Args {
    /// File to read; `-` for standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Tool that produced the file: auto, wrk2, wrk, hey, oha, k6, vegeta, sysbench, pgbench or ab.
    #[arg(long, value_name = "TOOL", default_value = "auto", value_parser = tool)]
    from: From,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub record_mode: crate::record_mode::RecordModeArg,

    /// Exit with status 2 if this condition is true; repeat it for more.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,

    /// Print the record as JSON (formats/import.schema.json).
    #[arg(long)]
    json: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

#[derive(Debug, Clone, Copy)]
struct From(Option<Tool>);

fn tool(text: &str) -> Result<From, String> {
    if text == "auto" {
        return Ok(From(None));
    }
    Tool::from_name(text).map(|tool| From(Some(tool))).ok_or_else(|| {
        let names = Tool::ALL.map(Tool::name).join(", ");
        format!("there are auto, {names}")
    })
}

/// Runs the verb.
///
/// # Errors
///
/// When the file cannot be read or parsed, or the record cannot be written.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let shown = args.file.display().to_string();
    let bytes = read(&args.file).with_context(|| format!("cannot read `{shown}`"))?;
    let parsed =
        export::import::parse(&bytes, args.from.0).with_context(|| format!("cannot import `{shown}`"))?;
    let made = export::import::record(parsed, &shown, env!("CARGO_PKG_VERSION"));
    let (mut import, logs) = made.with_context(|| format!("cannot import `{shown}`"))?;
    import.command = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    import.options = line.effective();
    import.thresholds = findings::import_thresholds(&args.fail_if, &import.results);
    let folder = args.output.clone().unwrap_or_else(new_folder);
    write_import(&folder, &import, &logs)?;
    print(&import, &folder, args.json, args.no_color)?;
    Ok(Exit::of_import(&import))
}

/// Prints the import whose record is `folder`; if there are conditions, they are evaluated again.
///
/// # Errors
///
/// When it cannot be read.
pub fn report(folder: &Path, fail_if: &[Condition], json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let mut import = read_import(folder)?;
    if !fail_if.is_empty() {
        import.thresholds = findings::import_thresholds(fail_if, &import.results);
    }
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    records::print(&findings::import_view(&import, folder), json, &mut out, style)?;
    report_notes(&import);
    Ok(Exit::of_import(&import))
}

fn print(import: &Import, folder: &Path, json: bool, no_color: bool) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if json {
        let mut text = serde_json::to_vec_pretty(import)?;
        text.push(b'\n');
        return printed(out.write_all(&text));
    }
    let style = terminal::style(&out, no_color);
    printed(report::text(&findings::import_view(import, folder), &mut out, style))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let input: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    let bytes = units::read_at_most(input, LONGEST)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        bail!("it is empty; import what the tool wrote");
    }
    Ok(bytes)
}
