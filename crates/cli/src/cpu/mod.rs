//! `parallax cpu`: the CPU time of processes between two instants.

mod args;
mod order;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;

use findings::view::Subject;
use findings::{CpuTable, CpuUnit};
use record::observation::cpu::CpuLine;
use report::Style;
use run::observe::cpu::{CpuEvent, CpuHost, CpuObserved, CpuSpec, observe};

pub use self::args::Args;
use self::args::Unit;
use self::order::Order;
use crate::command_line::CommandLine;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{signals, terminal};

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been measured then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let Order { interval, count, wanted } = Order::of(args)?;
    let spec = CpuSpec {
        wanted,
        interval,
        count,
        threads: args.threads,
        split: args.split.into(),
        hide_idle: args.all,
    };
    let stop = signals::stop_flag()?;
    let process = Process::new();
    let setting = process.setting(line.effective(), args.output.as_deref(), &stop);
    let out = io::stdout();
    let mut style = terminal::style(&out, args.no_color);
    if !out.is_terminal() {
        // Lines in a file are never cut.
        style.width = usize::MAX;
    }
    let several = count != Some(1);
    let printer = Printer { args, style };
    let mut live = |event: CpuEvent<'_>| match event {
        _ if args.json => Ok(()),
        CpuEvent::Begun => {
            if several {
                let _ = writeln!(io::stderr(), "every {interval}; Ctrl-C ends it");
            }
            Ok(())
        }
        CpuEvent::Interval { n, length, line, host } => {
            let head = several.then(|| format!("interval {n}: {:.3} s", length.as_secs_f64()));
            printer.print(head, line, host, Notes::Later)
        }
    };
    let measured = observe(&spec, setting, &mut live)?;
    printer.conclude(&measured)?;
    measured.observed.check_record()?;
    Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Done })
}

/// Prints tables according to the options.
struct Printer<'a> {
    args: &'a Args,
    style: Style,
}

impl Printer<'_> {
    fn print(
        &self,
        head: Option<String>,
        line: &CpuLine,
        host: &CpuHost,
        notes: Notes,
    ) -> anyhow::Result<()> {
        let mut processes = line.processes.clone();
        if self.args.all {
            processes.sort_by_key(|process| std::cmp::Reverse(process.used.run_ns));
        }
        let table = CpuTable {
            processes: &processes,
            groups: &line.groups,
            idle: line.idle,
            cpus: host.cpus,
            tick: host.tick,
            unit: if self.args.of_machine { CpuUnit::Machine } else { self.args.figures.into() },
            commands: &host.commands,
        };
        let mut out = io::stdout().lock();
        let write = |out: &mut dyn Write| {
            if let Some(head) = head {
                writeln!(out, "{head}")?;
            }
            if notes != Notes::Alone {
                report::table(&findings::cpu_table(&table), out, self.style)?;
            }
            if notes != Notes::Later {
                report::section(Subject::Cpu, &findings::cpu_notes(&table), out, self.style)?;
            }
            out.flush()
        };
        printed(write(&mut out))
    }

    /// Prints what applies to all intervals.
    fn conclude(&self, measured: &CpuObserved) -> anyhow::Result<()> {
        let (line, host) = (&measured.line, &measured.host);
        if self.args.json {
            printed(report::json(&measured.observed.document, &mut io::stdout()))?;
        } else if measured.intervals > 1 {
            let seconds = measured.length.as_secs_f64();
            let head = format!("all {} intervals: {seconds:.3} s", measured.intervals);
            self.print(Some(head), line, host, Notes::Below)?;
        } else {
            self.print(None, line, host, Notes::Alone)?;
        }
        if let Some(why) = &measured.not_split {
            report_line(format_args!(
                "user and system time are estimated from ticks, not measured at kernel entry and exit: {why}"
            ));
        }
        if !self.args.all {
            measured.ended.iter().for_each(report_line);
        }
        Ok(())
    }
}

/// Where the notes of a table are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    Later,
    Below,
    Alone,
}

impl From<Unit> for CpuUnit {
    fn from(unit: Unit) -> CpuUnit {
        match unit {
            Unit::Machine => CpuUnit::Machine,
            Unit::Core => CpuUnit::Core,
            Unit::Seconds => CpuUnit::Seconds,
        }
    }
}
