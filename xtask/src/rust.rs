//! Reading Rust source: functions with their lines, test code, and token patterns.
//!
//! It parses the language and knows no rules; the checks in `tidy` judge.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// One function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Including the type it belongs to: `Pool::take`.
    pub name: String,
    /// Its signature's first line.
    pub line: usize,
    /// From the signature to the closing brace; comments and attributes before it do not count.
    pub lines: usize,
}

/// Every function of a file, in order, including nested ones.
pub fn functions(file: &syn::File) -> Vec<Function> {
    let mut finder = FunctionFinder::default();
    finder.visit_file(file);
    finder.found
}

#[derive(Default)]
struct FunctionFinder {
    found: Vec<Function>,
    owner: Option<String>,
}

impl FunctionFinder {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        let last = block.brace_token.span.close().end().line;
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        self.found.push(Function { name, line, lines: last + 1 - line });
    }

    fn within(&mut self, owner: Option<String>, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = outer;
    }
}

impl<'ast> Visit<'ast> for FunctionFinder {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.within(type_name(&item.self_ty), |finder| visit::visit_item_impl(finder, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(Some(item.ident.to_string()), |finder| visit::visit_item_trait(finder, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(None, |finder| {
            finder.add(&item.sig, &item.block);
            visit::visit_item_fn(finder, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn type_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

/// The lines that are compiled only for tests.
pub struct TestLines(Vec<RangeInclusive<usize>>);

impl TestLines {
    /// The test code in the file at `path`: all of it if the path makes it test code.
    pub fn of(path: &str, file: &syn::File) -> TestLines {
        let all = path.starts_with("tests/")
            || path.starts_with("fuzz/")
            || path.contains("/tests/")
            || path.ends_with("/tests.rs");
        if all {
            return TestLines(vec![0..=usize::MAX]);
        }
        let mut finder = TestFinder(Vec::new());
        finder.visit_file(file);
        TestLines(finder.0)
    }

    /// Whether the line, counted from 1, is test code.
    pub fn contain(&self, line: usize) -> bool {
        self.0.iter().any(|range| range.contains(&line))
    }
}

struct TestFinder(Vec<RangeInclusive<usize>>);

impl TestFinder {
    /// Notes the item if it is test code; true if it was.
    fn note(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) -> bool {
        let is_test = attributes.iter().any(is_for_tests);
        if is_test {
            let span = item.span();
            self.0.push(span.start().line..=span.end().line);
        }
        is_test
    }
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !self.note(&item.attrs, item) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !self.note(&item.attrs, item) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !self.note(&item.attrs, item) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.attrs, item);
    }
}

/// `#[test]`, `#[…::test]`, `#[cfg(test)]`; not `#[cfg(not(test))]`.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    if attribute.path().segments.last().is_some_and(|segment| segment.ident == "test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let mut names = Vec::new();
    each_level(&list.tokens, &mut |level| {
        names.extend(level.iter().filter_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        }));
    });
    list.path.is_ident("cfg")
        && names.iter().any(|name| name == "test")
        && !names.iter().any(|name| name == "not")
}

/// Calls `look` with the tokens of the stream and of every group in it, macro arguments included.
pub fn each_level(stream: &TokenStream, look: &mut impl FnMut(&[TokenTree])) {
    let level: Vec<TokenTree> = stream.clone().into_iter().collect();
    look(&level);
    for token in &level {
        if let TokenTree::Group(group) = token {
            each_level(&group.stream(), look);
        }
    }
}

/// The inside of the group, when the token is one with this delimiter.
pub fn inside(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<TokenStream> {
    match token? {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

/// Whether the token is this punctuation character.
pub fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// Whether the token is this identifier.
pub fn is_ident(token: &TokenTree, wanted: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r"
/// A comment of two lines
/// does not count.
#[inline]
pub fn free() {
    fn nested() {}
}

impl<T> Pool<T> {
    fn take(
        &self,
    ) {
    }
}

trait Clock {
    fn now(&self) -> u64;
    fn later(&self) -> u64 {
        1
    }
}

#[cfg(test)]
mod tests {
    fn helper() {}
}

#[cfg(not(test))]
fn real() {}
";

    #[test]
    fn functions_are_named_by_their_type_and_counted_from_the_signature() {
        let found = functions(&syn::parse_file(SOURCE).unwrap());
        let findings: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(
            findings,
            [
                ("free", 5, 3),
                ("nested", 6, 1),
                ("Pool::take", 10, 4),
                ("Clock::later", 18, 3),
                ("helper", 25, 1),
                ("real", 29, 1)
            ]
        );
    }

    #[test]
    fn test_code_is_told_by_attribute_or_by_place() {
        let file = syn::parse_file(SOURCE).unwrap();
        let lines = TestLines::of("crates/a/src/lib.rs", &file);
        assert!(lines.contain(25));
        assert!(!lines.contain(6));
        assert!(!lines.contain(29));
        assert!(TestLines::of("crates/a/tests/it.rs", &file).contain(6));
    }
}
