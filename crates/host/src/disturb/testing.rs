//! Real processes to disturb, for the tests of this module.

use std::process::{Child, Command};

use units::Nanos;

use super::guard::{Guard, Program};

/// A process that sleeps until it is killed.
pub(crate) struct Sleeper(Child);

impl Sleeper {
    pub(crate) fn start() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, holds: impl Fn() -> bool) {
        let begin = clock::now();
        while !holds() {
            assert!(clock::now() < begin + Nanos::from_secs(10), "waited for 10 s");
            clock::sleep_until(clock::now() + Nanos::from_millis(1));
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A guard that agrees to everything and undoes nothing: a shell script.
pub(crate) fn agreeing_guard() -> Guard {
    let script = "echo ready; while read -r line; do echo ok; done";
    let program =
        Program { path: "/bin/sh".into(), guard: ["-c", script].map(Into::into).into(), worker: Vec::new() };
    Guard::start(&program).unwrap()
}
