//! A wire type as a JSON tree and back, both by way of its text.
//!
//! serde generates the code of a type once for each format that it is read from or written to, and the wire types are
//! many: with trees as a format of their own the crate would have a quarter more code to compile. Records are read and
//! written as text anyway.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// `value` as the tree of what is written of it.
///
/// # Panics
///
/// Never for a wire type of this crate.
pub(crate) fn of(value: &impl Serialize) -> Value {
    // Pretty because documents are written like that.
    let text = serde_json::to_vec_pretty(value).expect("a wire type has nothing that can fail to be written");
    serde_json::from_slice(&text).expect("what was written is JSON")
}

/// What is read from the text of `tree`.
///
/// # Errors
///
/// When it is not a `T`.
pub(crate) fn read<T: DeserializeOwned>(tree: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_slice(&serde_json::to_vec(tree)?)
}
