//! The kernel's side: the loaded programs, and what they tell.

mod calls;
mod event;
mod lanes;
pub(crate) mod load;

pub use event::{Account, Arrival, Arrived, Culprit, Edge, Event, IDLE, Opened, PARTS, Wake};
pub use load::{ClassProbe, Cost, CulpritRow, Kernel, LoadError, Losses, Settings};
pub(crate) use load::{refused, require_host_pids};
