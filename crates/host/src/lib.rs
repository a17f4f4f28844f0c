//! CPU accounting and facts of this host.
