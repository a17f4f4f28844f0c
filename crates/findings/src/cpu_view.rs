//! The view of CPU use: what each process used, how accurate that is, and how long it waited for a CPU.

use std::collections::BTreeMap;

use record::observation::cpu::{
    CpuEnd, CpuGroup, CpuGroupKind, CpuProcess, CpuSplit, CpuThread, CpuUse, SplitMethod,
};
use units::{Nanos, count, plural};

use crate::group_view::group_lines;
use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View};

/// The unit of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuUnit {
    /// Percent of all CPUs of the host.
    Machine,
    /// Percent of one CPU.
    Core,
    /// CPU seconds.
    Seconds,
}

/// The contents of one table.
#[derive(Debug, Clone, Copy)]
pub struct CpuTable<'a> {
    pub processes: &'a [CpuProcess],
    /// Processes that were measured as one: each has a row of its own above the processes, if it has several.
    pub groups: &'a [CpuGroup],
    /// The number of further processes that used no CPU time.
    pub idle: u64,
    pub cpus: u64,
    pub tick: Nanos,
    pub unit: CpuUnit,
    /// Command lines by process ID and start time. A record does not contain them; the process name is shown instead.
    pub commands: &'a BTreeMap<(u32, u64), String>,
}

/// The view of CPU use: the table and its notes.
pub fn cpu_view(table: &CpuTable<'_>) -> View {
    let mut view = View::new(Subject::Cpu);
    let mut blocks = vec![Block::Table(cpu_table(table))];
    blocks.extend(cpu_notes(table).blocks);
    view.sections.push(Section::new("processes", blocks));
    view
}

/// A row for each group and each process, and one for each thread if threads were requested.
pub fn cpu_table(table: &CpuTable<'_>) -> Table {
    let figures = Figures { unit: table.unit, cpus: table.cpus, bounded: table.is_bounded() };
    let mut rows: Vec<Row> = table.several().map(|group| group_row(group, figures)).collect();
    for process in table.processes {
        let known = table.commands.get(&(process.pid, process.started));
        let command = known.cloned().unwrap_or_else(|| format!("[{}]", process.name));
        let user = process.user.as_deref().map_or_else(|| process.uid.to_string(), |name| cut(name, 8));
        let head = [user.into(), Value::Id(u64::from(process.pid)).into()];
        let text = format!("{}{command}", fate(process));
        rows.push(figures.row(head, &process.used, !process.counts_all, &text));
        rows.extend(process.threads.iter().map(|thread| thread_row(thread, figures)));
        rows.extend(unseen_threads(process, figures));
    }
    Table { id: figures.table().to_owned(), columns: figures.columns(), rows }
}

/// The notes that explain the table; printed once, under the last one.
pub fn cpu_notes(table: &CpuTable<'_>) -> Section {
    let unit = match table.unit {
        CpuUnit::Machine => format!("% of the {} of this host", plural(table.cpus, "CPU")),
        CpuUnit::Core => "% of one CPU".to_owned(),
        CpuUnit::Seconds => "CPU seconds".to_owned(),
    };
    let mut notes = vec![format!(
        "{unit}; %CPU is the scheduler's account, for all threads; +- is its error: the time of running threads since \
         their last tick ({}), and the time that reading took",
        table.tick
    )];
    if table.unit == CpuUnit::Seconds {
        notes[0] = notes[0].replace("%CPU", "CPU").replace(", and the time that reading took", "");
    }
    if table.splits().any(|split| split.method == SplitMethod::Ticks) {
        notes.push(
            "user and system time are sampled by timer ticks: TICKS is the number of samples, +-SPLIT the 95 % interval for \
             a program that is not synchronized with the tick; for one that is, the split can be completely wrong"
                .to_owned(),
        );
    }
    if table.is_bounded() {
        notes.push(
            "user and system time are measured at the boundaries of system calls and interrupts (eBPF), in wall-clock \
             time; STOLEN is the part that the hypervisor took and the scheduler did not count"
                .to_owned(),
        );
    }
    if table.processes.iter().any(|process| outlasts_its_account(&process.used)) {
        notes.push(
            "USR and SYS include more than CPU if threads ended: what an ending thread uses after the kernel has closed \
             its account is in no clock of the process"
                .to_owned(),
        );
    }
    if table.splits().any(|split| !split.reliable) {
        notes.push("? : unreliable split, its error is more than a quarter of the whole".to_owned());
    }
    if table.processes.iter().any(|process| !process.counts_all)
        || table.several().any(|group| !group.counts_all)
    {
        let why = "waits and switches of threads and processes that ended are incomplete";
        notes.push(format!("> : at least; {why}"));
    }
    notes.extend(table.groups.iter().filter(|group| group.cut > 0).map(|group| {
        format!(
            "{} of {} ended without a waiting parent; CPU time after the last reading is missing",
            processes(group.cut),
            group.name
        )
    }));
    notes.extend(table.groups.iter().filter_map(|group| {
        let name = units::escape_text(group.discarding.as_ref()?);
        Some(format!(
            "CPU is at least what is shown: `{name}` ignores SIGCHLD, so CPU time of its children that ended is missing; \
             --cgroup and --unit miss nothing"
        ))
    }));
    if table.idle > 0 {
        notes.push(format!("{} more used no CPU time", count(table.idle)));
    }
    let resources = table.groups.iter().flat_map(|group| {
        let label = if table.groups.len() > 1 { group.name.as_str() } else { "memory" };
        let [memory, counts] = group_lines(&group.resources, &group.memory);
        let counts = Block::labelled(Role::Text, if label == "memory" { "other" } else { label }, counts);
        [Block::labelled(Role::Text, label, memory), counts]
    });
    let notes = notes.into_iter().map(|note| Block::line(Role::Note, Phrase::text(note)));
    Section::new("notes", resources.chain(notes).collect())
}

/// Whether user and system time exceed the total by a thousandth or more, beyond its error.
fn outlasts_its_account(used: &CpuUse) -> bool {
    let boundary = used.split.as_ref().and_then(|split| split.boundary.as_ref());
    boundary.is_some_and(|seen| {
        let accounted = seen.wall_ns.saturating_add_signed(seen.stolen_ns.saturating_neg());
        accounted > used.run_ns + used.error_ns.max(used.run_ns / 1_000)
    })
}

impl CpuTable<'_> {
    fn splits(&self) -> impl Iterator<Item = &CpuSplit> {
        let groups = self.several().map(|group| &group.used);
        self.processes
            .iter()
            .map(|process| &process.used)
            .chain(groups)
            .filter_map(|used| used.split.as_ref())
    }

    /// The groups that are more than a single row of a process.
    fn several(&self) -> impl Iterator<Item = &CpuGroup> {
        let is_whole = |group: &CpuGroup| {
            let is_it = |process: &&CpuProcess| Some(process.pid) == group.pid;
            self.processes.iter().find(is_it).is_some_and(|process| process.used.run_ns == group.used.run_ns)
        };
        self.groups.iter().filter(move |group| {
            group.kind != CpuGroupKind::Process && (group.resources.processes > 1 || !is_whole(group))
        })
    }

    /// Whether the split comes from the boundaries of system calls and interrupts.
    fn is_bounded(&self) -> bool {
        self.splits().any(|split| split.boundary.is_some())
    }
}

/// The prefix of the command of a process that started or ended during the interval.
fn fate(process: &CpuProcess) -> String {
    let seen = Nanos(process.used.elapsed_ns());
    let end = match process.end {
        CpuEnd::Alive => None,
        CpuEnd::Whole => Some(format!("ended, all seen in {seen}")),
        CpuEnd::Cut => Some(format!("ended, last seen after {seen}")),
        CpuEnd::Reused => Some(format!("ended, last seen after {seen}; its pid is another's now")),
    };
    let words: Vec<_> = process.began.then(|| "began".to_owned()).into_iter().chain(end).collect();
    if words.is_empty() { String::new() } else { format!("({}) ", words.join(", ")) }
}

fn processes(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "process" } else { "processes" })
}

fn group_row(group: &CpuGroup, figures: Figures) -> Row {
    let processes = processes(group.resources.processes);
    let fate = match (group.began, group.ended) {
        (0, 0) => String::new(),
        (began, ended) => format!(" ({began} began, {ended} ended)"),
    };
    let of = match group.kind {
        CpuGroupKind::Cgroup => group.path.as_deref().unwrap_or(&group.name),
        CpuGroupKind::Tree | CpuGroupKind::Process => &group.name,
    };
    let pid = group.pid.map_or_else(|| "".into(), |pid| Value::Id(u64::from(pid)).into());
    figures.row(["all".into(), pid], &group.used, !group.counts_all, &format!("{of}: {processes}{fate}"))
}

fn thread_row(thread: &CpuThread, figures: Figures) -> Row {
    let fate = match (thread.began, thread.ended) {
        (false, false) => "",
        (true, false) => " (began)",
        (false, true) => " (ended)",
        (true, true) => " (began, ended)",
    };
    let head = ["".into(), Value::Id(u64::from(thread.tid)).into()];
    figures.row(head, &thread.used, thread.ended, &format!("|__{}{fate}", thread.name))
}

/// The row for threads that ended between two readings.
fn unseen_threads(process: &CpuProcess, figures: Figures) -> Option<Row> {
    if process.threads.is_empty() || process.unseen_ns <= process.used.error_ns {
        return None;
    }
    let used = CpuUse { run_ns: process.unseen_ns, split: None, ..process.used };
    let cells = figures.kinds().map(|kind| match kind {
        CpuColumn::Total => figures.figure(used.run_ns as f64, &used).into(),
        CpuColumn::User | CpuColumn::Pid => "".into(),
        CpuColumn::Command => "|__threads that ended unseen".into(),
        _ => Cell::absent(),
    });
    Some(Row::new(cells.collect()))
}

/// The unit of the figures, and the columns of the table.
#[derive(Debug, Clone, Copy)]
struct Figures {
    unit: CpuUnit,
    cpus: u64,
    bounded: bool,
}

/// The content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CpuColumn {
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
    Command,
}

impl CpuColumn {
    const BY_TICKS: &[CpuColumn] = {
        use CpuColumn::*;
        &[User, Pid, InUser, InSystem, SplitError, Ticks, Total, Error, Wait, Voluntary, Involuntary, Command]
    };
    const BY_BOUNDARIES: &[CpuColumn] = {
        use CpuColumn::*;
        &[
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
            Command,
        ]
    };

    /// Whether it is CPU time; then its ID, title, and meaning.
    fn words(self) -> (bool, &'static str, &'static str, &'static str) {
        match self {
            CpuColumn::User => (false, "user", "UID", "the user who owns the process"),
            CpuColumn::Pid => (false, "pid", "PID", "the process, or the thread"),
            CpuColumn::InUser => (true, "in_user", "USR", "CPU time in its own code"),
            CpuColumn::InSystem => (true, "in_system", "SYS", "CPU time in the kernel"),
            CpuColumn::SplitError => (false, "split_error", "+-SPLIT", "the error of user and system"),
            CpuColumn::Ticks => (false, "ticks", "TICKS", "ticks that could fall into the time"),
            CpuColumn::Interrupts => (true, "interrupts", "IRQ", "interrupts within its time"),
            CpuColumn::Stolen => (true, "stolen", "STOLEN", "time that the hypervisor took"),
            CpuColumn::Total => (true, "total", "CPU", "CPU time by the scheduler's account"),
            CpuColumn::Error => (false, "error", "+-CPU", "the error of the CPU time"),
            CpuColumn::Wait => (true, "wait", "WAIT", "time in the run queue"),
            CpuColumn::Voluntary => (false, "voluntary", "VCSW", "voluntary context switches"),
            CpuColumn::Involuntary => (false, "involuntary", "NVCSW", "involuntary context switches"),
            CpuColumn::Command => (false, "command", "COMMAND", "the command, or the name"),
        }
    }
}

impl Figures {
    fn table(self) -> &'static str {
        if self.bounded { "cpu_by_boundaries" } else { "cpu_by_ticks" }
    }

    fn kinds(self) -> impl Iterator<Item = CpuColumn> {
        let kinds = if self.bounded { CpuColumn::BY_BOUNDARIES } else { CpuColumn::BY_TICKS };
        kinds.iter().copied()
    }

    fn columns(self) -> Vec<crate::view::Column> {
        let time = if self.unit == CpuUnit::Seconds { "cpu_seconds" } else { "cpu_percent" };
        let column = |kind: CpuColumn| {
            let (is_time, id, title, meaning) = kind.words();
            let sign = if is_time && self.unit != CpuUnit::Seconds { "%" } else { "" };
            let unit = match kind {
                CpuColumn::User | CpuColumn::Command => "text",
                CpuColumn::Pid => "id",
                CpuColumn::Ticks | CpuColumn::Voluntary | CpuColumn::Involuntary => "count",
                _ => time,
            };
            crate::view::Column {
                id: id.to_owned(),
                title: format!("{sign}{title}"),
                unit: unit.to_owned(),
                meaning: meaning.to_owned(),
            }
        };
        self.kinds().map(column).collect()
    }

    /// `at_least` if the waits and switches of some threads are unknown.
    fn row(self, head: [Cell; 2], used: &CpuUse, at_least: bool, command: &str) -> Row {
        let [user, pid] = head;
        let bounded = |value: Value| if at_least { Cell::Above(value) } else { Cell::Figure(value) };
        let counted = |switches: Option<u64>| switches.map(|n| bounded(Value::Count(n)));
        let split = used.split.as_ref();
        let boundary = split.and_then(|split| split.boundary.as_ref());
        let figure = |ns: u64| self.figure(ns as f64, used);
        let mode = |ns: fn(&CpuSplit) -> u64| {
            let cell = |split: &CpuSplit| {
                let value = figure(ns(split));
                if split.reliable { Cell::Figure(value) } else { Cell::Doubtful(value) }
            };
            split.map(cell)
        };
        let cells = self.kinds().map(|kind| match kind {
            CpuColumn::User => Some(user.clone()),
            CpuColumn::Pid => Some(pid.clone()),
            CpuColumn::Command => Some(command.into()),
            // Seen only once: there is no length of time for a share.
            _ if self.unit != CpuUnit::Seconds && used.elapsed_ns() == 0 => None,
            CpuColumn::InUser => mode(|split| split.user_ns),
            CpuColumn::InSystem => mode(|split| split.system_ns),
            CpuColumn::SplitError => split.map(|split| self.figure(split.error_ns as f64, used).into()),
            CpuColumn::Ticks => split.and_then(|split| split.ticks).map(|n| Value::Count(n).into()),
            CpuColumn::Interrupts => boundary.map(|seen| figure(seen.interrupt_ns).into()),
            CpuColumn::Stolen => boundary.map(|seen| self.figure(seen.stolen_ns as f64, used).into()),
            CpuColumn::Total => Some(figure(used.run_ns).into()),
            CpuColumn::Error => Some(self.total_error(used).into()),
            CpuColumn::Wait => Some(bounded(figure(used.wait_ns))),
            CpuColumn::Voluntary => counted(used.voluntary),
            CpuColumn::Involuntary => counted(used.involuntary),
        });
        Row::new(cells.map(|cell| cell.unwrap_or_else(Cell::absent)).collect())
    }

    /// The error; of a percentage, it includes the error of the interval's length.
    fn total_error(self, used: &CpuUse) -> Value {
        let run = used.run_ns as f64;
        let of_elapsed = match self.unit {
            CpuUnit::Seconds => 0.0,
            CpuUnit::Machine | CpuUnit::Core => {
                run * used.elapsed_error_ns as f64 / used.elapsed_ns().max(1) as f64
            }
        };
        self.figure(used.error_ns as f64 + of_elapsed, used)
    }

    fn figure(self, ns: f64, used: &CpuUse) -> Value {
        let elapsed = used.elapsed_ns().max(1) as f64;
        match self.unit {
            CpuUnit::Seconds => Value::CpuSeconds(ns / 1e9),
            CpuUnit::Core => Value::CpuPercent(ns / elapsed * 100.0),
            CpuUnit::Machine => Value::CpuPercent(ns / elapsed * 100.0 / self.cpus.max(1) as f64),
        }
    }
}

fn cut(text: &str, room: usize) -> String {
    record::escape_text(text).chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use record::observation::cpu::CpuBoundary;

    use super::*;

    fn used(run_ms: u64, split: Option<CpuSplit>) -> CpuUse {
        CpuUse {
            from_ns: 1_000,
            to_ns: 10_000_001_000,
            elapsed_error_ns: 2_000,
            run_ns: run_ms * 1_000_000,
            error_ns: 4_010_000,
            wait_ns: 240_600_000,
            slices: 12_345,
            voluntary: Some(12_000),
            involuntary: Some(345),
            split,
        }
    }

    #[test]
    fn time_that_is_in_no_clock_of_the_process_is_told() {
        let reported = |run_ms: u64| {
            let boundary = CpuBoundary {
                wall_ns: 10_200_000_000,
                interrupt_ns: 0,
                stolen_ns: 200_000_000,
                system_calls: 0,
                faults: 0,
                interrupts: 0,
                missed_switches: 0,
            };
            let split = CpuSplit {
                method: SplitMethod::Ebpf,
                user_ns: 9_000_000_000,
                system_ns: 1_200_000_000,
                error_ns: 0,
                reliable: true,
                ticks: None,
                boundary: Some(boundary),
            };
            outlasts_its_account(&used(run_ms, Some(split)))
        };
        // The scheduler counted 10 s.
        assert_eq!([9_950, 9_995, 10_000, 10_010].map(reported), [true, false, false, false]);
    }
}
