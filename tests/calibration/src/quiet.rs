//! Which tests may run concurrently: a test that measures time runs alone, those that count run together.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static QUIET: RwLock<()> = RwLock::new(());

/// For a test that measures time: nothing else of this package runs at the same time.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    // A failed test leaves nothing behind that could affect the next.
    QUIET.write().unwrap_or_else(PoisonError::into_inner)
}

/// For a test that only counts.
pub fn together() -> RwLockReadGuard<'static, ()> {
    QUIET.read().unwrap_or_else(PoisonError::into_inner)
}
