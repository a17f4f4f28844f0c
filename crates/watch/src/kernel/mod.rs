//! The kernel's side: the loaded programs, and their events.

mod attach;
mod backlog;
mod calls;
mod event;
mod lanes;
pub(crate) mod load;
mod steal;
mod tls;
mod wait;

pub use calls::{Sleeps, name as call_name, takes_descriptor};
pub use event::{
    Account, Arrival, Arrived, Class, Culprit, Edge, Event, IDLE, Opened, PARTS, Slept, SoFar, Wake,
};
pub use load::{CaptureSettings, ClassProbe, Cost, CulpritRow, Kernel, LoadError, Losses, Unseen};
pub(crate) use load::{refused, require_host_pids};
pub use wait::{Answered, Waited, Waker, Woken};
