//! The kernel's side: the loaded programs, and their events.

mod calls;
mod event;
mod lanes;
pub(crate) mod load;

pub use event::{Account, Arrival, Arrived, Class, Culprit, Edge, Event, IDLE, Opened, PARTS, SoFar, Wake};
pub use load::{CaptureSettings, ClassProbe, Cost, CulpritRow, Kernel, LoadError, Losses, Unseen};
pub(crate) use load::{refused, require_host_pids};
