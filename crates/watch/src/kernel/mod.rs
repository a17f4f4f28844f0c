//! The kernel's side: the loaded programs, and what they tell.

mod calls;
mod event;
mod lanes;
pub(crate) mod load;

pub use event::{Account, Arrival, Culprit, Edge, Event, IDLE, Opened, PARTS, Wake};
pub(crate) use load::refused;
pub use load::{ClassProbe, Cost, CulpritRow, Kernel, LoadError, Losses, Settings};
