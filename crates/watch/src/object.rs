//! The committed objects of the kernel's programs, for the machine this is built for.

/// The bytes of `objects/<machine>/$name.bpf.o`.
#[macro_export]
macro_rules! object {
    ($name:literal) => {{
        // The loader reads it as a file of 64-bit words.
        #[repr(C, align(8))]
        struct Aligned<T: ?Sized>(T);
        #[cfg(target_arch = "x86_64")]
        static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/objects/x86_64/",
            $name,
            ".bpf.o"
        )));
        #[cfg(target_arch = "aarch64")]
        static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/objects/aarch64/",
            $name,
            ".bpf.o"
        )));
        &OBJECT.0
    }};
}

#[cfg(test)]
mod tests {
    /// If this fails, the program is an empty file, or one for another machine.
    #[test]
    fn an_object_is_an_elf_file_for_bpf() {
        let object = object!("watch");
        assert_eq!(&object[..4], b"\x7fELF");
        assert_eq!(u16::from_le_bytes([object[18], object[19]]), 247, "EM_BPF");
    }
}
