//! Where a hypervisor writes how much of a CPU's time it took.

use libbpf_rs::btf::types::{DataSec, Struct, Var};
use libbpf_rs::btf::{Btf, ReferencesType};

/// From a CPU's run queue to its `struct kvm_steal_time`, in bytes: both are variables of which each CPU has its own,
/// and the kernel's types say where in a CPU's block of them each lies (`arch/x86/kernel/kvm.c`, since 3.1). A kernel
/// without symbols of data (`CONFIG_KALLSYMS_ALL`) gives no address, so a program goes there from the run queue. `None`:
/// a kernel without it, such as those of other machines.
pub(super) fn distance(types: &Btf<'_>) -> Option<i64> {
    let section = types.type_by_name::<DataSec<'_>>(".data..percpu")?;
    let place = |name: &str| {
        let variable = types.type_by_name::<Var<'_>>(name)?;
        let entry = section.iter().find(|entry| entry.ty == variable.type_id())?;
        Some((variable, i64::from(entry.offset)))
    };
    let (steal, at) = place("steal_time")?;
    let written = Struct::try_from(steal.referenced_type()).ok()?;
    (written.name()? == "kvm_steal_time").then_some(at - place("runqueues")?.1)
}
