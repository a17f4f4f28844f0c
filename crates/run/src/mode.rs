//! The modes of `drive`, and the groups of options that each of them uses.

use anyhow::bail;

use crate::options::{GivenOptions, Group, named};

/// What `drive` does with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One run of URLs or targets.
    Run,
    /// One run of a scenario file.
    Scenario,
    /// One run of statements to a database.
    Database,
    Search,
    Calibrate,
}

impl Mode {
    /// Why this mode does not use the options of `group`; `None` if it uses them.
    pub fn refuses(self, group: Group) -> Option<&'static str> {
        use Group as G;
        match (self, group) {
            (Mode::Run | Mode::Scenario, G::Statement) => Some(
                "is for a database; give a URL such as mysql://USER@HOST/DATABASE, postgres://… or redis://HOST",
            ),
            (Mode::Run, G::Login) => Some(
                "is for a database; give a URL such as mysql://USER@HOST/DATABASE, postgres://… or redis://HOST",
            ),
            (Mode::Database, G::Request | G::Expectation | G::Http) => {
                Some("is for HTTP; a database is sent --query, or a scenario file")
            }
            (Mode::Database, G::Recording) => {
                Some("is for HTTP; with a database, --replay gives the times alone")
            }
            (Mode::Run | Mode::Database, G::Scenario) => {
                Some("is for a scenario; name a file that ends in .toml")
            }
            (Mode::Scenario, G::Request) => {
                Some("is for a URL; a scenario has method, headers and body under its [[request]]")
            }
            (Mode::Scenario, G::Expectation) => Some("is for a URL; a scenario has expect under [defaults]"),
            (Mode::Scenario, G::Recording) => {
                Some("is for a URL; a scenario has its own requests, and --replay gives their times")
            }
            (Mode::Search, G::Schedule | G::Recording) => {
                Some("cannot be used with --search, which sets the rate and length of each probe")
            }
            (Mode::Search, G::Thresholds) => {
                Some("cannot be used with --search, which judges by its objective")
            }
            (Mode::Search, G::Requests | G::Sinks | G::Observers) => {
                Some("cannot be used with --search, which makes several runs")
            }
            (Mode::Search, G::Tui) => {
                Some("cannot be used with --search, which has no live view; --quiet suppresses its progress")
            }
            (Mode::Search, G::Details) => Some(
                "cannot be used with --search; `parallax report -v` shows the details of one of its probes",
            ),
            (Mode::Calibrate, G::Client | G::Pipeline | G::Json) => None,
            (Mode::Calibrate, _) => Some(
                "cannot be used with --calibrate, which uses only -c, --pipeline, --workers, --pace, --stamps and --json",
            ),
            _ => None,
        }
    }

    /// The mode of one run with these options.
    pub fn of(given: &GivenOptions) -> Mode {
        match given {
            given if given.names_scenario() => Mode::Scenario,
            given if given.names_database() => Mode::Database,
            _ => Mode::Run,
        }
    }

    /// Refuses the first option that this mode does not use.
    ///
    /// # Errors
    ///
    /// One line that names the option and the mode.
    pub fn check(self, given: &GivenOptions) -> anyhow::Result<()> {
        let driven = Mode::of(given);
        for name in given.0.keys() {
            let group = named(name).map_or(Group::Users, |option| option.group);
            let by_driven = || if self == Mode::Search { driven.refuses(group) } else { None };
            if let Some(why) = self.refuses(group).or_else(by_driven) {
                let shown = if name == "url" { "a URL".to_owned() } else { format!("--{name}") };
                bail!("{shown} {why}");
            }
        }
        Ok(())
    }
}
