//! `parallax report`.
use crate::exit::Exit;
/// Report
#[derive(Debug, clap::Args)]
pub struct Args {}
pub fn run(_args: &Args) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}
