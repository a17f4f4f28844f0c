//! Rule `invariants`: an `expect` states its invariant, a relaxed lint its reason; `unsafe` stays where it is.
//!
//! Reads tokens, so arguments of macros count too. Clippy checks that there is no `unwrap`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use crate::rust::{self, TestLines};
use crate::tree::Tree;

/// A shorter message names a thing and states nothing. "invalid utf-8" has 13 characters.
const MESSAGE_LEAST: usize = 15;

/// The crates that call the kernel, and the planted server's io_uring: no maintained library offers a safe interface.
const MAY_BE_UNSAFE: &[&str] =
    &["crates/reactor/", "crates/host/", "crates/watch/", "tests/kernel/src/server/ring.rs"];

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending(".rs").flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    // Syntax errors are found by the rule `lengths`.
    let (Ok(file), Ok(tokens)) = (syn::parse_file(text), text.parse::<TokenStream>()) else {
        return Vec::new();
    };
    let tests = TestLines::of(path, &file);
    let may_be_unsafe = MAY_BE_UNSAFE.iter().any(|folder| path.starts_with(folder));
    let mut findings = Vec::new();
    rust::each_level(&tokens, &mut |level| {
        for at in 0..level.len() {
            let (line, rest) = (level[at].span().start().line, &level[at..]);
            if !tests.contain(line) && expect_is_short(rest) {
                let what = format!(
                    "`expect` with fewer than {MESSAGE_LEAST} characters; state the invariant that would be broken"
                );
                findings.push(Finding::new(path, line, what));
            }
            if let Some(name) = attribute_without_reason(rest) {
                let what =
                    format!("`#[{name}(…)]` without `reason = \"…\"`; give it, and prefer `#[expect(…)]`");
                findings.push(Finding::new(path, line, what));
            }
            if !may_be_unsafe && rust::is_ident(&level[at], "unsafe") {
                let what = "`unsafe` belongs in reactor, host and watch only; use what they offer";
                findings.push(Finding::new(path, line, what));
            }
        }
    });
    findings
}

/// `.expect("…")` with a message that is too short.
fn expect_is_short(tokens: &[TokenTree]) -> bool {
    let [dot, name, ..] = tokens else { return false };
    if !rust::is_punct(dot, '.') || !rust::is_ident(name, "expect") {
        return false;
    }
    let Some(arguments) = rust::inside(tokens.get(2), Delimiter::Parenthesis) else { return false };
    match arguments.into_iter().next() {
        Some(TokenTree::Literal(literal)) => match syn::Lit::new(literal) {
            syn::Lit::Str(message) => message.value().chars().count() < MESSAGE_LEAST,
            _ => false,
        },
        _ => false,
    }
}

/// `#[allow(…)]`, `#![allow(…)]`, `#[expect(…)]`, also within `cfg_attr`, that give no reason.
fn attribute_without_reason(tokens: &[TokenTree]) -> Option<&'static str> {
    if !rust::is_punct(tokens.first()?, '#') {
        return None;
    }
    let inner = tokens.get(1).is_some_and(|token| rust::is_punct(token, '!'));
    let attribute = rust::inside(tokens.get(1 + usize::from(inner)), Delimiter::Bracket)?;
    let mut found = None;
    rust::each_level(&attribute, &mut |level| {
        for pair in level.windows(2) {
            let name = ["allow", "expect"].into_iter().find(|name| rust::is_ident(&pair[0], name));
            let (Some(name), Some(lints)) = (name, rust::inside(pair.get(1), Delimiter::Parenthesis)) else {
                continue;
            };
            if !lints.into_iter().any(|token| rust::is_ident(&token, "reason")) {
                found = Some(name);
            }
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, source: &str) -> Vec<String> {
        check(&Tree::of(&[(path, source)])).into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect()
    }

    fn check_count(source: &str, count: usize) {
        let findings = found("crates/engine/src/lib.rs", source);
        assert_eq!(findings.len(), count, "{source}\n{findings:?}");
    }

    #[test]
    fn an_expect_that_states_nothing_is_found() {
        check_count("fn f() { x.expect(\"no x\"); }", 1);
        check_count("fn f() { x.expect(\"the pool holds every slot\"); }", 0);
        check_count("fn f() { assert!(x.expect(\"no x\") > 1); }", 1);
    }

    #[test]
    fn an_expect_of_another_kind_is_left_alone() {
        check_count("fn f() { session.expect(request); }", 0);
        check_count("fn f() { x.expect(INVARIANT); }", 0);
        check_count("// x.expect(\"no\")\nfn f() { \".expect(no)\"; }", 0);
    }

    #[test]
    fn tests_may_expect_in_few_words() {
        check_count("#[cfg(test)]\nmod tests { fn f() { x.expect(\"x\"); } }", 0);
        assert!(found("tests/e2e/src/lib.rs", "fn f() { x.expect(\"x\"); }").is_empty());
    }

    #[test]
    fn a_relaxed_lint_without_a_reason_is_found() {
        check_count("#[allow(dead_code)]\nfn f() {}", 1);
        check_count("#![allow(dead_code)]\nfn f() {}", 1);
        check_count("#[expect(dead_code)]\nfn f() {}", 1);
        check_count("#[cfg_attr(test, allow(dead_code))]\nfn f() {}", 1);
        check_count("#[allow(dead_code, reason = \"read by the kernel\")]\nfn f() {}", 0);
        check_count("#[cfg(test)]\nmod tests { #[allow(dead_code)] fn f() {} }", 1);
    }

    #[test]
    fn unsafe_code_out_of_place_is_found() {
        check_count("fn f() {\n unsafe { g() }\n}", 1);
        check_count("// unsafe in words\n#![deny(unsafe_code)]\nfn f() {}", 0);
        assert!(found("crates/reactor/src/lib.rs", "fn f() { unsafe { g() } }").is_empty());
        assert!(!found("crates/target/src/lib.rs", "fn f() { unsafe { g() } }").is_empty());
        assert!(!found("xtask/src/main.rs", "fn f() { unsafe { g() } }").is_empty());
    }
}
