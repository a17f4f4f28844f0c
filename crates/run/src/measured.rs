//! What processes used, as a record has it.

use host::process::{CpuSpan, GroupOf, GroupUse, Usage};
use record::observation::cpu::{CpuGroup, CpuGroupKind, CpuSplit, CpuUse, SplitMethod};
use record::{GroupMemory, GroupResources};
use units::Nanos;

/// The trees, single processes or control group of a span.
pub fn groups(span: &CpuSpan, tick: Nanos) -> Vec<CpuGroup> {
    span.groups.iter().map(|group| group_of(group, tick)).collect()
}

/// Adds memory with shared pages divided (PSS), which is read before and after all spans only.
pub fn set_proportional(groups: &mut [CpuGroup], before: &[Option<u64>], after: &[Option<u64>]) {
    for (group, (before, after)) in groups.iter_mut().zip(before.iter().zip(after)) {
        (group.memory.proportional_before, group.memory.proportional_after) = (*before, *after);
    }
}

fn group_of(group: &GroupUse, tick: Nanos) -> CpuGroup {
    let (kind, pid, path) = match &group.of {
        GroupOf::Tree { pid, .. } => (CpuGroupKind::Tree, Some(*pid), None),
        GroupOf::Process { pid, .. } => (CpuGroupKind::Process, Some(*pid), None),
        GroupOf::Cgroup { path } => (CpuGroupKind::Cgroup, None, Some(path.clone())),
    };
    CpuGroup {
        kind,
        pid,
        path,
        name: group.name.clone(),
        used: used(&group.usage, tick),
        began: group.began,
        ended: group.ended,
        cut: group.cut,
        counts_all: group.counts_all,
        resources: resources(group),
        memory: GroupMemory {
            resident_before: group.memory_before.resident,
            resident_after: group.memory.resident,
            virtual_before: group.memory_before.virtual_size,
            virtual_after: group.memory.virtual_size,
            ..GroupMemory::default()
        },
    }
}

/// What was used, with its division by ticks.
pub fn used(usage: &Usage, tick: Nanos) -> CpuUse {
    let split = usage.split(tick).map(|split| CpuSplit {
        method: SplitMethod::Ticks,
        user_ns: split.user.0,
        system_ns: split.system.0,
        error_ns: split.error.0,
        reliable: split.is_reliable(),
        ticks: Some(split.ticks),
        boundary: None,
    });
    CpuUse {
        from_ns: usage.from.middle().0,
        to_ns: usage.to.middle().0,
        elapsed_error_ns: usage.elapsed_error().0,
        run_ns: usage.run.0,
        error_ns: usage.error.0,
        wait_ns: usage.wait.0,
        slices: usage.slices,
        voluntary: usage.switches.map(|switches| switches.voluntary),
        involuntary: usage.switches.map(|switches| switches.involuntary),
        split,
    }
}

/// In the words of a record.
pub fn resources(group: &GroupUse) -> GroupResources {
    GroupResources {
        processes: group.processes,
        resident_bytes: group.memory.resident,
        swapped_bytes: group.memory.swapped,
        virtual_bytes: group.memory.virtual_size,
        minor_faults: group.faults.map(|faults| faults.minor),
        major_faults: group.faults.map(|faults| faults.major),
        read_bytes: group.storage.map(|storage| storage.read),
        written_bytes: group.storage.map(|storage| storage.written),
        voluntary: group.usage.switches.map(|switches| switches.voluntary),
        involuntary: group.usage.switches.map(|switches| switches.involuntary),
    }
}
