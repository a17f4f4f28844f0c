//! Where a hypervisor writes how much of a CPU's time it took.

use libbpf_rs::btf::types::{DataSec, Struct, Var};
use libbpf_rs::btf::{Btf, ReferencesType};

/// From a CPU's run queue to its `struct kvm_steal_time`, in bytes: both are variables of which each CPU has its own,
/// and the kernel's types say where in a CPU's block of them each lies (`arch/x86/kernel/kvm.c`, since 3.1). A kernel
/// without symbols of data (`CONFIG_KALLSYMS_ALL`) gives no address, so a program goes there from the run queue. `None`:
/// a kernel without it, such as those of other machines.
pub(super) fn distance(types: &Btf<'_>) -> Option<i64> {
    let section = types.type_by_name::<DataSec<'_>>(".data..percpu")?;
    let place = |name: &str, structure: &str| {
        section.iter().find_map(|entry| {
            let variable =
                types.type_by_id::<Var<'_>>(entry.ty).filter(|one| one.name() == Some(name.as_ref()))?;
            let of = Struct::try_from(variable.referenced_type()).ok()?;
            (of.name()? == structure).then_some(i64::from(entry.offset))
        })
    };
    Some(place("steal_time", "kvm_steal_time")? - place("runqueues", "rq")?)
}
