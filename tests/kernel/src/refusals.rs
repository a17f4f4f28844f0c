//! What cannot be watched is reported in one line; if the server ends while it is watched, the record ends with what
//! was seen.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use units::Nanos;

use crate::support::planted::Plan;
use crate::support::watched::Watching;
use crate::support::{binary, quiet, wait};

/// The user id of `nobody`, on Debian and elsewhere.
const NOBODY: u32 = 65_534;

fn watch(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary::parallax());
    command.arg("watch").args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Refused in one line on standard error, with the exit code of a run that never began, and no record.
#[track_caller]
fn check_refused(output: &Output, reported: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.starts_with("parallax: "), "{message}");
    reported.iter().for_each(|text| assert!(message.contains(text), "`{text}` is not in: {message}"));
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    // Above the largest number that the kernel gives to a process.
    let output = watch(&["-p", "4194305", "-d", "1s", "-o", record.to_str().unwrap()]).output().unwrap();
    check_refused(&output, &["4194305"]);
    assert!(!record.exists(), "bad input began a record");
}

#[test]
fn a_port_without_a_listener_is_refused() {
    let _together = quiet::together();
    let port = crate::support::port::free().to_string();
    check_refused(&watch(&["--port", &port, "-d", "1s"]).output().unwrap(), &[&port]);
}

/// The program where `nobody` may run it, started as `nobody`: the build may be in a directory of root.
fn as_nobody(folder: &std::path::Path) -> Command {
    let copy = folder.join("parallax");
    binary::copy_to(&copy);
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder, all).unwrap();
    let mut command = Command::new(copy);
    command.env("NO_COLOR", "1").current_dir("/").stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    command
}

#[test]
fn a_user_without_the_privilege_learns_what_is_needed() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let server = Plan::of("threads").start();
    let pid = server.pid().to_string();
    let mut command = as_nobody(folder.path());
    command.args(["watch", "-p", &pid, "-d", "1s", "-o"]).arg(folder.path().join("record"));
    check_refused(&command.output().unwrap(), &["root"]);
    let mut command = as_nobody(folder.path());
    check_refused(&command.args(["cpu", "--split", "ebpf", "0.1", "--", &pid]).output().unwrap(), &["root"]);
}

/// The capabilities that the help, the messages and `doctor` name, and no other.
const CAPABILITIES: &str = "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
const SETPRIV: &str = "+bpf,+perfmon,+sys_ptrace,+dac_read_search";

/// If this fails, the capabilities that we ask for are too few, or more than needed.
#[test]
fn a_user_with_exactly_the_capabilities_named_can_observe_a_server_of_another_user() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let server = Plan::of("threads").start();
    let pid = server.pid().to_string();
    // The copy that nobody may run.
    drop(as_nobody(folder.path()));
    let with = |capabilities: &str, arguments: &[&str]| {
        let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()];
        let sets = ["bounding-set", "inh-caps", "ambient-caps"];
        let sets = sets.map(|set| format!("--{set}=-all,{capabilities}"));
        let mut command = Command::new("setpriv");
        command.args(ids).args(sets).arg(folder.path().join("parallax")).args(arguments);
        command.env("NO_COLOR", "1").current_dir("/").stdin(Stdio::null()).output().unwrap()
    };
    let record = folder.path().join("record");
    let watch = ["watch", "-p", &pid, "-d", "300ms", "-o", record.to_str().unwrap()];
    let profiled = folder.path().join("profile");
    let profile = ["profile", "-p", &pid, "-d", "300ms", "-o", profiled.to_str().unwrap()];
    let cpu = ["cpu", "--split", "ebpf", "0.1", "--", &pid];
    for arguments in [&watch[..], &profile, &cpu] {
        let output = with(SETPRIV, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let doctor = with(SETPRIV, &["doctor", "--json"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("permitted by CAP_BPF and CAP_PERFMON"), "{doctor}");
    // Without the last two, the server of another user is refused, and all four are named.
    let other = folder.path().join("other");
    let watch = ["watch", "-p", &pid, "-d", "300ms", "-o", other.to_str().unwrap()];
    check_refused(&with("+bpf,+perfmon", &watch), &[CAPABILITIES]);
    check_refused(&with("+sys_ptrace,+dac_read_search", &watch), &[CAPABILITIES]);
    for verb in ["watch", "profile", "cpu"] {
        let help = Command::new(binary::parallax()).args([verb, "--help"]).output().unwrap();
        let help =
            String::from_utf8_lossy(&help.stdout).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(CAPABILITIES), "{verb}");
    }
}

/// Its total needs no privilege. If this fails, a user without privileges gets a library's message, or none.
#[test]
fn cpu_without_the_privilege_divides_by_ticks_and_reports_why() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let server = Plan::of("threads").start();
    let pid = server.pid().to_string();
    let output = as_nobody(folder.path()).args(["cpu", "0.1", "--", &pid]).output().unwrap();
    let (out, message) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(&pid), "{out}{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(
        message.starts_with(
            "parallax: user and system time are estimated from ticks, not measured at kernel entry and exit: "
        ) && message.contains("root"),
        "{message}"
    );
}

/// The program as in a container: the first process of a new PID namespace.
fn contained(arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc"]).arg(binary::parallax()).args(arguments);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// If this fails, a watch from within a container sees and reports nothing, or sees another process.
#[test]
fn what_needs_the_hosts_process_ids_is_refused_without_them() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    for (n, verb) in [
        &["watch", "-d", "1s", "-p", "1"][..],
        // It does not exist in the namespace; the reason is reported nevertheless.
        &["watch", "-d", "1s", "-p", "4711"],
        &["profile", "-d", "1s", "-p", "1"],
        &["cpu", "--split", "ebpf", "-p", "1", "1"],
    ]
    .into_iter()
    .enumerate()
    {
        let record = folder.path().join(n.to_string());
        let output = contained(verb).arg("-o").arg(&record).output().unwrap();
        check_refused(&output, &["PID namespace", "--pid=host"]);
        assert!(!record.exists(), "{verb:?} began a record");
    }
}

#[test]
fn cpu_time_is_measured_in_any_pid_namespace() {
    let _together = quiet::together();
    let output = contained(&["cpu", "--json", "-p", "1", "0.2"]).output().unwrap();
    let reported: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(reported["cpu"]["processes"][0]["pid"], 1, "{reported}");
    let missing = reported["missing"].to_string();
    assert!(missing.contains("split_by_ebpf") && missing.contains("PID namespace"), "{missing}");
}

#[test]
fn doctor_reports_a_pid_namespace() {
    let _together = quiet::together();
    for (mut command, status) in
        [(contained(&["doctor", "--json"]), "missing"), (Command::new(binary::parallax()), "ok")]
    {
        if status == "ok" {
            command.args(["doctor", "--json"]);
        }
        let reported: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let checks = reported["checks"].as_array().unwrap();
        let ids = checks.iter().find(|check| check["check"] == "process_ids").unwrap();
        assert_eq!(ids["status"], status, "{ids}");
    }
}

#[test]
fn a_server_that_ends_ends_the_record_with_what_was_seen() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let mut watching = Watching::of(&server);
    let mut client = server.new_client();
    (0..50).for_each(|_| drop(client.http("/burn=100us")));
    drop(server);
    assert!(wait::until(Nanos::from_secs(10), || watching.has_ended()), "the watch goes on without a server");
    let watched = watching.finish();
    assert_eq!(watched.served.len(), 50, "{}", watched.losses());
}

/// Two observers of one server see the same, or the second is refused in one line; in no case is the first disturbed.
#[test]
fn a_second_observer_does_not_disturb_the_first() {
    let _together = quiet::together();
    let server = Plan::of("threads").start();
    let first = Watching::of(&server);
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut second = watch(&["-p", &server.pid().to_string(), "-d", "1s", "-o", record.to_str().unwrap()]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut client = server.new_client();
    (0..100).for_each(|_| drop(client.http("/burn=100us,sleep=10ms")));
    let output = second.wait_with_output().unwrap();
    if !output.status.success() {
        check_refused(&output, &["watch"]);
    }
    let watched = first.finish();
    assert_eq!(watched.served.len(), 100, "{}", watched.losses());
}
