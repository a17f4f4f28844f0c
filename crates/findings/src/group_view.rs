//! What processes used besides CPU time: memory and its growth, page faults and storage, one line each.

use record::{GroupMemory, GroupResources};

use crate::view::{Phrase, Value, phrase};

/// Sizes with their growth, and counts.
pub fn group_lines(resources: &GroupResources, memory: &GroupMemory) -> [Phrase; 2] {
    let mut sizes = vec![
        phrase!(
            "RSS {resident} ({resident_change})",
            resident = Value::Bytes(resources.resident_bytes),
            resident_change = change(memory.resident_before, memory.resident_after)
        ),
        match resources.swapped_bytes {
            Some(swapped) => phrase!("swap {swapped}", swapped = Value::Bytes(swapped)),
            None => Phrase::new("swap not known"),
        },
        phrase!(
            "virtual {size} ({size_change})",
            size = Value::Bytes(resources.virtual_bytes),
            size_change = change(memory.virtual_before, memory.virtual_after)
        ),
    ];
    if let Some((before, after)) = memory.proportional_before.zip(memory.proportional_after) {
        let change = change(before, after);
        sizes.push(phrase!(
            "PSS {proportional} ({proportional_change})",
            proportional = Value::Bytes(after),
            proportional_change = change
        ));
    }
    let mut counts = vec![match resources.minor_faults.zip(resources.major_faults) {
        Some((minor, major)) => phrase!(
            "{minor_faults} minor and {major_faults} major faults",
            minor_faults = Value::Count(minor),
            major_faults = Value::Count(major)
        ),
        None => Phrase::new("faults not known"),
    }];
    counts.push(match resources.read_bytes.zip(resources.written_bytes) {
        Some((read, written)) => phrase!(
            "{read} read from storage, {written} written",
            read = Value::Bytes(read),
            written = Value::Bytes(written)
        ),
        None => Phrase::new("storage not known"),
    });
    if let Some((voluntary, involuntary)) = resources.voluntary.zip(resources.involuntary) {
        counts.push(phrase!(
            "{voluntary} voluntary and {involuntary} involuntary context switches",
            voluntary = Value::Count(voluntary),
            involuntary = Value::Count(involuntary)
        ));
    }
    [sizes, counts].map(|facts| Phrase::join(facts, ", "))
}

fn change(before: u64, after: u64) -> Value {
    Value::BytesChange(after.cast_signed().wrapping_sub(before.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said_and_growth_has_a_sign() {
        let resources = GroupResources {
            processes: 2,
            resident_bytes: 3 << 20,
            virtual_bytes: 9 << 20,
            minor_faults: Some(1_200),
            major_faults: Some(3),
            ..GroupResources::default()
        };
        let memory = GroupMemory {
            resident_before: 2 << 20,
            resident_after: 3 << 20,
            virtual_before: 10 << 20,
            virtual_after: 9 << 20,
            ..GroupMemory::default()
        };
        assert_eq!(
            group_lines(&resources, &memory).map(|line| line.to_string()),
            [
                "RSS 3.0 MiB (+1.0 MiB), swap not known, virtual 9.0 MiB (-1.0 MiB)",
                "1200 minor and 3 major faults, storage not known"
            ]
        );
    }
}
