//! The tables of `cpu`: what each process used, how sure that is, and how long it waited for a CPU.

use std::collections::BTreeMap;
use std::io::{self, Write};

use record::observation::cpu::{CpuEnd, CpuProcess, CpuSplit, CpuUse, SplitMethod};
use units::Nanos;

use crate::style::{Style, wrap};
use units::{count, plural};

/// What figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuUnit {
    /// Percent of all CPUs of the host.
    Machine,
    /// Percent of one CPU.
    Core,
    /// CPU seconds.
    Seconds,
}

/// What stands in one table.
#[derive(Debug, Clone, Copy)]
pub struct CpuTable<'a> {
    pub processes: &'a [CpuProcess],
    /// How many more were looked at and used nothing.
    pub idle: u64,
    pub cpus: u64,
    pub tick: Nanos,
    pub unit: CpuUnit,
    /// Command lines by pid and start, which a record does not hold: where there is none, the name stands.
    pub commands: &'a BTreeMap<(u32, u64), String>,
}

/// A table of processes.
pub fn cpu_table(table: &CpuTable<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let layout = Layout { unit: table.unit, cpus: table.cpus, bounded: table.is_bounded(), style };
    writeln!(out, "{}", style.faint(layout.head()))?;
    for process in table.processes {
        let known = table.commands.get(&(process.pid, process.started));
        let command = known.cloned().unwrap_or_else(|| format!("[{}]", process.name));
        let text = record::escape_text(&format!("{}{command}", fate(process)));
        let row = layout.row([user(process), process.pid.to_string()], &process.used, !process.counts_all);
        writeln!(out, "{row}  {}", cut(&text, layout.room()))?;
        threads(process, layout, out)?;
    }
    Ok(())
}

/// What a reader must know to believe a table: once, under the last.
pub fn cpu_notes(table: &CpuTable<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let unit = match table.unit {
        CpuUnit::Machine => format!("% of the {} of this host", plural(table.cpus, "CPU")),
        CpuUnit::Core => "% of one CPU".to_owned(),
        CpuUnit::Seconds => "CPU seconds".to_owned(),
    };
    let mut told = vec![format!(
        "{unit}; %CPU is the scheduler's account, of all threads; +- is what running threads may hide up to the next \
         tick ({}), and the time that reading took",
        table.tick
    )];
    if table.unit == CpuUnit::Seconds {
        told[0] = told[0].replace("%CPU", "CPU").replace(", and the time that reading took", "");
    }
    if table.splits().any(|split| split.method == SplitMethod::Ticks) {
        told.push(
            "user and system are tick-sampled: TICKS could fall into the time, and +-SPLIT holds 95 times of 100 for \
             a program that does not keep step with the tick; for one that does, the split may be all wrong"
                .to_owned(),
        );
    }
    if table.is_bounded() {
        told.push(
            "user and system are seen at the boundaries of system calls and interrupts (eBPF), on the wall's clock: \
             STOLEN of it the scheduler did not book, because the hypervisor took it"
                .to_owned(),
        );
    }
    if table.processes.iter().any(|process| outlasts_its_account(&process.used)) {
        told.push(
            "USR and SYS hold more than CPU where threads ended: what they use on their way out, after the kernel has \
             closed their accounts, is in no clock of the process"
                .to_owned(),
        );
    }
    if table.splits().any(|split| !split.reliable) {
        told.push("? : that split is unreliable, its error is over a quarter of the whole".to_owned());
    }
    if table.processes.iter().any(|process| !process.counts_all) {
        told.push(
            "> : at least; threads ended meanwhile, whose waits and switches are in no count".to_owned(),
        );
    }
    if table.idle > 0 {
        told.push(format!("{} more used no CPU time", count(table.idle)));
    }
    for note in told {
        writeln!(out, "{}", style.faint(wrap("  ", &note, style.width.min(120))))?;
    }
    Ok(())
}

/// Whether by a thousandth or more, beyond what running threads may hide.
fn outlasts_its_account(used: &CpuUse) -> bool {
    let boundary = used.split.as_ref().and_then(|split| split.boundary.as_ref());
    boundary.is_some_and(|seen| {
        let booked = seen.wall_ns.saturating_add_signed(seen.stolen_ns.saturating_neg());
        booked > used.run_ns + used.error_ns.max(used.run_ns / 1_000)
    })
}

impl CpuTable<'_> {
    fn splits(&self) -> impl Iterator<Item = &CpuSplit> {
        self.processes.iter().filter_map(|process| process.used.split.as_ref())
    }

    /// System calls and interrupts were watched.
    fn is_bounded(&self) -> bool {
        self.splits().any(|split| split.boundary.is_some())
    }
}

fn user(process: &CpuProcess) -> String {
    process.user.as_deref().map_or_else(|| process.uid.to_string(), |name| cut(&record::escape_text(name), 8))
}

/// What is said before the command of a process that was not there all the time.
fn fate(process: &CpuProcess) -> String {
    let seen = Nanos(process.used.elapsed_ns());
    let end = match process.end {
        CpuEnd::Alive => None,
        CpuEnd::Whole => Some(format!("ended, all seen in {seen}")),
        CpuEnd::Cut => Some(format!("ended, last seen after {seen}")),
        CpuEnd::Reused => Some(format!("ended, last seen after {seen}; its pid is another's now")),
    };
    let told: Vec<_> = process.began.then(|| "began".to_owned()).into_iter().chain(end).collect();
    if told.is_empty() { String::new() } else { format!("({}) ", told.join(", ")) }
}

fn threads(process: &CpuProcess, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    for thread in &process.threads {
        let row = layout.row([String::new(), thread.tid.to_string()], &thread.used, thread.ended);
        let fate = match (thread.began, thread.ended) {
            (false, false) => "",
            (true, false) => " (began)",
            (false, true) => " (ended)",
            (true, true) => " (began, ended)",
        };
        let text = format!("|__{}{fate}", record::escape_text(&thread.name));
        writeln!(out, "{row}  {}", cut(&text, layout.room()))?;
    }
    if !process.threads.is_empty() && process.unseen_ns > process.used.error_ns {
        let used = CpuUse { run_ns: process.unseen_ns, split: None, ..process.used };
        let cell = layout.figure(used.run_ns as f64, &used);
        let absent = layout.style.absent();
        let cells = layout.columns().map(|column| match column {
            Column::Total => cell.clone(),
            Column::User | Column::Pid => String::new(),
            _ => absent.to_owned(),
        });
        writeln!(out, "{}  |__threads that ended unseen", layout.line(cells))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Layout {
    unit: CpuUnit,
    cpus: u64,
    bounded: bool,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    User,
    Pid,
    InUser,
    InSystem,
    SplitError,
    Ticks,
    Interrupts,
    Stolen,
    Total,
    Error,
    Wait,
    Voluntary,
    Involuntary,
}

impl Column {
    /// By ticks, or by boundaries.
    const ALL: [[Column; 12]; 2] = {
        use Column::*;
        [
            [
                User,
                Pid,
                InUser,
                InSystem,
                SplitError,
                Ticks,
                Total,
                Error,
                Wait,
                Voluntary,
                Involuntary,
                Involuntary,
            ],
            [
                User,
                Pid,
                InUser,
                InSystem,
                SplitError,
                Interrupts,
                Stolen,
                Total,
                Error,
                Wait,
                Voluntary,
                Involuntary,
            ],
        ]
    };

    /// The figures of use have a `%` before their names, where they are percents.
    fn title(self) -> (bool, &'static str, usize) {
        match self {
            Column::User => (false, "UID", 8),
            Column::Pid => (false, "PID", 8),
            Column::InUser => (true, "USR", 9),
            Column::InSystem => (true, "SYS", 9),
            Column::SplitError => (false, "+-SPLIT", 8),
            Column::Ticks => (false, "TICKS", 6),
            Column::Interrupts => (true, "IRQ", 9),
            Column::Stolen => (true, "STOLEN", 9),
            Column::Total => (true, "CPU", 9),
            Column::Error => (false, "+-CPU", 8),
            Column::Wait => (true, "WAIT", 9),
            Column::Voluntary => (false, "VCSW", 7),
            Column::Involuntary => (false, "NVCSW", 7),
        }
    }
}

impl Layout {
    fn columns(self) -> impl Iterator<Item = Column> {
        let count = if self.bounded { 12 } else { 11 };
        Column::ALL[usize::from(self.bounded)].into_iter().take(count)
    }

    fn line(self, cells: impl Iterator<Item = String>) -> String {
        self.columns()
            .zip(cells)
            .map(|(column, cell)| format!("{cell:>width$}", width = column.title().2))
            .collect()
    }

    fn head(self) -> String {
        let title = |column: Column| match column.title() {
            (true, name, _) if self.unit != CpuUnit::Seconds => format!("%{name}"),
            (_, name, _) => name.to_owned(),
        };
        format!("{}  COMMAND", self.line(self.columns().map(title)))
    }

    /// For the command.
    fn room(self) -> usize {
        const LEAST: usize = 20;
        let taken: usize = self.columns().map(|column| column.title().2).sum();
        self.style.width.saturating_sub(taken + 2).max(LEAST)
    }

    /// `at_least` where waits and switches of some threads are in no count.
    fn row(self, who: [String; 2], used: &CpuUse, at_least: bool) -> String {
        let [uid, pid] = who;
        let mark = if at_least { ">" } else { "" };
        let counted = |switches: Option<u64>| switches.map(|switches| format!("{mark}{}", count(switches)));
        let split = used.split.as_ref();
        let boundary = split.and_then(|split| split.boundary.as_ref());
        let figure = |ns: u64| self.figure(ns as f64, used);
        let mode = |ns: fn(&CpuSplit) -> u64| {
            split.map(|split| format!("{}{}", figure(ns(split)), if split.reliable { "" } else { "?" }))
        };
        let cells = self.columns().map(|column| match column {
            Column::User => Some(uid.clone()),
            Column::Pid => Some(pid.clone()),
            // It was seen once: there is no time that a share could be of.
            _ if self.unit != CpuUnit::Seconds && used.elapsed_ns() == 0 => None,
            Column::InUser => mode(|split| split.user_ns),
            Column::InSystem => mode(|split| split.system_ns),
            Column::SplitError => split.map(|split| bound(self.scaled(split.error_ns as f64, used))),
            Column::Ticks => split.and_then(|split| split.ticks).map(count),
            Column::Interrupts => boundary.map(|seen| figure(seen.interrupt_ns)),
            Column::Stolen => boundary.map(|seen| self.figure(seen.stolen_ns as f64, used)),
            Column::Total => Some(figure(used.run_ns)),
            Column::Error => Some(self.total_error(used)),
            Column::Wait => Some(format!("{mark}{}", figure(used.wait_ns))),
            Column::Voluntary => counted(used.voluntary),
            Column::Involuntary => counted(used.involuntary),
        });
        let absent = || self.style.absent().to_owned();
        self.line(cells.map(|cell| cell.unwrap_or_else(absent)))
    }

    fn figure(self, ns: f64, used: &CpuUse) -> String {
        four_digits(self.scaled(ns, used))
    }

    /// In a percentage there is also the error of the time that it is of.
    fn total_error(self, used: &CpuUse) -> String {
        let run = used.run_ns as f64;
        let of_elapsed = match self.unit {
            CpuUnit::Seconds => 0.0,
            CpuUnit::Machine | CpuUnit::Core => {
                run * used.elapsed_error_ns as f64 / used.elapsed_ns().max(1) as f64
            }
        };
        bound(self.scaled(used.error_ns as f64 + of_elapsed, used))
    }

    fn scaled(self, ns: f64, used: &CpuUse) -> f64 {
        let elapsed = used.elapsed_ns().max(1) as f64;
        match self.unit {
            CpuUnit::Seconds => ns / 1e9,
            CpuUnit::Core => ns / elapsed * 100.0,
            CpuUnit::Machine => ns / elapsed * 100.0 / self.cpus.max(1) as f64,
        }
    }
}

/// `44.17`, `3.391`, `0.04416`; below a thousandth, millionths.
fn four_digits(value: f64) -> String {
    let size = value.abs();
    if size < 5e-7 {
        return "0.000".to_owned();
    }
    // By what will be printed: 9.99996 is 10.00, not 10.000.
    let digits = |places: i32| format!("{:.1$}", value, places.clamp(0, 6) as usize);
    let places = 3 - size.log10().floor() as i32;
    let text = digits(places);
    let grown = text.parse::<f64>().map_or(0.0, f64::abs).log10().floor() > size.log10().floor();
    if grown { digits(places - 1) } else { text }
}

/// An error is rounded up, to two digits: it must not promise more than is known.
fn bound(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let places = (1 - value.log10().floor() as i32).clamp(0, 5);
    let scale = 10f64.powi(places);
    // What binary adds behind the last digit is not known error.
    format!("{:.1$}", (value * scale - 1e-9).ceil() / scale, places as usize)
}

fn cut(text: &str, room: usize) -> String {
    text.chars().take(room).collect()
}

#[cfg(test)]
mod tests;
