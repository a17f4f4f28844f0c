//! `cargo xtask bpf`: compiles the kernel's side from C to the committed objects.
//!
//! Building and running Parallax needs no C compiler: the objects in `crates/watch/objects` are part of the source.
//! They come from one compiler version and the headers of the linked libbpf, with no path of the build machine in
//! them, so that the same sources give the same bytes everywhere. `--check` compares them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

const COMPILER: &str = "clang-14";
const STRIP: &str = "llvm-strip-14";

/// The directory's name, and the compiler's name of the machine.
const MACHINES: [(&str, &str); 2] = [("x86_64", "x86"), ("aarch64", "arm64")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Write,
    Check,
}

/// Compiles every program for every machine. False if a committed object differs from what its source compiles to.
pub fn run(root: &Path, mode: Mode, out: &mut impl Write) -> anyhow::Result<bool> {
    let headers = libbpf_headers(root)?;
    let scratch = root.join("target/bpf");
    // `#include <bpf/…>`: as if libbpf were installed.
    fs::create_dir_all(scratch.join("include"))?;
    let link = scratch.join("include/bpf");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&headers, &link).context("the headers of libbpf")?;
    let mut same = true;
    for source in sources(&root.join("crates/watch/bpf"))? {
        for (folder, machine) in MACHINES {
            let made = compile(root, &scratch, &source, machine)?;
            let object = root.join("crates/watch/objects").join(folder).join(format!("{source}.o"));
            same &= settle(mode, &object, &made, out)?;
        }
    }
    Ok(same)
}

fn settle(mode: Mode, object: &Path, made: &[u8], out: &mut impl Write) -> anyhow::Result<bool> {
    let committed = fs::read(object).unwrap_or_default();
    let shown = object.display();
    match mode {
        _ if committed == made => Ok(true),
        Mode::Write => {
            fs::create_dir_all(object.parent().context("a folder of objects")?)?;
            fs::write(object, made).with_context(|| format!("cannot write {shown}"))?;
            writeln!(out, "bpf: wrote {shown}, {} bytes", made.len())?;
            Ok(true)
        }
        Mode::Check => {
            writeln!(out, "bpf: {shown} is not what its source makes; run `cargo xtask bpf`")?;
            Ok(false)
        }
    }
}

/// The names of the programs, in order.
fn sources(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".c") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "no program in {}", folder.display());
    Ok(names)
}

fn compile(root: &Path, scratch: &Path, source: &str, machine: &str) -> anyhow::Result<Vec<u8>> {
    let object = scratch.join(format!("{source}.{machine}.o"));
    // The compiler writes the paths it is given into the object: they are relative, from a fixed working directory.
    let folder = root.join("crates/watch/bpf");
    run_tool(
        Command::new(COMPILER)
            .current_dir(&folder)
            .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
            .arg(format!("-D__TARGET_ARCH_{machine}"))
            .arg(format!("-fdebug-prefix-map={}=.", folder.display()))
            .arg(format!("-fdebug-prefix-map={}=include", scratch.join("include").display()))
            .arg("-I")
            .arg(scratch.join("include"))
            .args(["-c", &format!("{source}.c"), "-o"])
            .arg(&object),
    )?;
    // Removes debug information; what the loader needs stays.
    run_tool(Command::new(STRIP).arg("-g").arg(&object))?;
    fs::read(&object).with_context(|| format!("cannot read {}", object.display()))
}

fn run_tool(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| {
        format!("cannot start {name}; `scripts/setup test` installs it (Debian's {COMPILER} and llvm-14)")
    })?;
    if !output.status.success() {
        bail!("{name} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// The headers of the libbpf that is linked, where cargo keeps its source.
fn libbpf_headers(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let package = metadata.packages.iter().find(|package| package.name == "libbpf-sys");
    let manifest = &package.context("libbpf-sys is a dependency of `watch`")?.manifest_path;
    Ok(manifest.parent().context("a manifest lies in a folder")?.join("libbpf/src"))
}
