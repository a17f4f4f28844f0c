//! From one request of the file to an HTTP step: the request, and what its response must satisfy.

use std::path::Path;

use codec::web::{Checks, Sha256Digest, StatusSet};
use regex::bytes::Regex;
use serde_json::Value as Json;
use toml::Spanned;

use super::capture::{Capture, From, Look, Wanted};
use super::step::{Body, WebStep};
use crate::format::{Expect, Request};
use crate::place::{Slip, Sources, Span};
use crate::pointer::Pointer;
use crate::scope::{Context, Needs, Scope};
use crate::steps::Common;
use crate::template::{Cut, Piece, Template, cut};
use crate::values::{CaptureSpec, CaptureTable, Matcher, Named, Scalar};

/// Compiles the request `own` to the server `target`. Its number among the prepared requests is set later.
pub(crate) fn compile(
    request: &Spanned<Request>,
    target: u16,
    common: &Common<'_>,
    scope: &mut Scope<'_>,
) -> Result<WebStep, Slip> {
    let (own, span) = (request.get_ref(), request.span());
    let (body, content_type) = body(own, common, scope)?;
    let method = method(own, &body)?;
    let path = path(own, &span, scope)?;
    let mut lines = headers(&own.headers, scope)?;
    if let Some(journey) = common.journey {
        add_missing(&mut lines, headers(&journey.headers, scope)?);
    }
    add_missing(&mut lines, common.targets[usize::from(target)].headers.clone());
    add_missing(&mut lines, headers(&common.file.defaults.headers, scope)?);
    if let Some(content_type) = content_type {
        add_missing(&mut lines, vec![("Content-Type".to_owned(), Template::text(content_type))]);
    }
    let defaults = &common.file.defaults.expect;
    let checks = checks(&own.expect, defaults, scope)?;
    let mut looks = looks(&own.expect, common.sources)?;
    looks.extend(looks_not_in(defaults, &own.expect, common.sources)?);
    // Captures last: the step's own texts cannot use them yet.
    let captures = captures(&own.capture, common, scope)?;
    let mut step = WebStep { method, path, headers: lines, body, prepared: None, checks, looks, captures };
    let is_fixed = step.templates().all(|template| template.fixed().is_some());
    step.prepared = is_fixed.then_some(0);
    Ok(step)
}

/// Headers as written, in the order of their names.
pub(crate) fn headers(given: &Named<Scalar>, scope: &mut Scope<'_>) -> Result<Vec<(String, Template)>, Slip> {
    given
        .iter()
        .map(|(name, value)| {
            let span = value.span();
            let probe = codec::web::Header { name: name.clone(), value: String::new() };
            probe.check().map_err(|_| {
                Slip::new(&span, format!("`{name}` is not the name of a header; write for example X-Name"))
            })?;
            if let Some(what) = refused_header(name) {
                return Err(Slip::new(&span, what));
            }
            Ok((name.clone(), scope.template(&value.get_ref().0, &span, Context::Header)?))
        })
        .collect()
}

fn refused_header(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "content-length" => Some("Content-Length follows from the body; leave it out"),
        "transfer-encoding" => Some("bodies are sent with a Content-Length; leave Transfer-Encoding out"),
        _ => None,
    }
}

fn add_missing(lines: &mut Vec<(String, Template)>, more: Vec<(String, Template)>) {
    for (name, value) in more {
        if !lines.iter().any(|(own, _)| own.eq_ignore_ascii_case(&name)) {
            lines.push((name, value));
        }
    }
}

fn method(own: &Request, body: &Body) -> Result<String, Slip> {
    let Some(given) = &own.method else {
        return Ok(if matches!(body, Body::None) { "GET" } else { "POST" }.to_owned());
    };
    let probe = codec::web::Request {
        method: given.get_ref().clone(),
        ..codec::web::Request::get(
            codec::web::Url::parse("http://h/").expect("the literal is a URL of the right form"),
        )
    };
    probe.check().map_err(|error| Slip::new(&given.span(), error.to_string()))?;
    if given.get_ref().chars().any(|c| c.is_ascii_lowercase()) {
        let upper = given.get_ref().to_ascii_uppercase();
        return Err(Slip::new(&given.span(), format!("methods are case-sensitive; write {upper}")));
    }
    Ok(given.get_ref().clone())
}

fn path(own: &Request, span: &Span, scope: &mut Scope<'_>) -> Result<Template, Slip> {
    let Some(given) = &own.path else {
        return Err(Slip::new(span, "a request needs a path; add for example path = \"/\""));
    };
    let (text, place) = (given.get_ref(), given.span());
    let mut path = scope.template(text, &place, Context::Path)?;
    let begins = match path.pieces().first() {
        Some(Piece::Text(text) | Piece::Hidden { text, .. }) => text.starts_with(['/', '?']),
        Some(Piece::Value { escape, .. }) => *escape == crate::escape::Escape::Path,
        None => false,
    };
    if !begins {
        let advice = if text.contains("://") {
            "the server is set under [targets]"
        } else {
            "a value that is a whole path is written {{name|path}}"
        };
        return Err(Slip::new(&place, format!("a path begins with a slash; {advice}")));
    }
    let mut sign = if text.contains('?') { "&" } else { "?" };
    for (name, value) in &own.query {
        let mut encoded = String::from(sign);
        crate::escape::write(name, crate::escape::Escape::Percent, &mut encoded);
        encoded.push('=');
        path.push(Piece::Text(encoded));
        path.append(scope.template(&value.get_ref().0, &value.span(), Context::Form)?);
        sign = "&";
    }
    Ok(path)
}

/// The body, and its content type.
fn body(
    own: &Request,
    common: &Common<'_>,
    scope: &mut Scope<'_>,
) -> Result<(Body, Option<&'static str>), Slip> {
    let spans = [
        own.body.as_ref().map(Spanned::span),
        own.json.as_ref().map(Spanned::span),
        own.form.values().next().map(Spanned::span),
        own.file.as_ref().map(Spanned::span),
    ];
    if let [_, second, ..] = spans.iter().flatten().collect::<Vec<_>>().as_slice() {
        return Err(Slip::new(second, "a request has one body: keep one of body, json, form and file"));
    }
    if let Some(text) = &own.body {
        let template = scope.template(text.get_ref(), &text.span(), Context::Body)?;
        return Ok((Body::Template(template), None));
    }
    if let Some(json) = &own.json {
        return Ok((Body::Template(json_body(json, scope)?), Some("application/json")));
    }
    if let Some(file) = &own.file {
        let path = file.get_ref();
        let bytes = (common.read)(Path::new(path));
        let bytes = bytes
            .map_err(|error| Slip::new(&file.span(), format!("cannot read the body `{path}`: {error}")))?;
        return Ok((Body::File(bytes), None));
    }
    if own.form.is_empty() {
        return Ok((Body::None, None));
    }
    let mut form = Template::default();
    for (index, (name, value)) in own.form.iter().enumerate() {
        let mut encoded = String::from(if index == 0 { "" } else { "&" });
        crate::escape::write(name, crate::escape::Escape::Percent, &mut encoded);
        encoded.push('=');
        form.push(Piece::Text(encoded));
        form.append(scope.template(&value.get_ref().0, &value.span(), Context::Form)?);
    }
    Ok((Body::Template(form), Some("application/x-www-form-urlencoded")))
}

fn json_body(given: &Spanned<Json>, scope: &mut Scope<'_>) -> Result<Template, Slip> {
    let span = given.span();
    let mut out = Template::default();
    match given.get_ref() {
        // A text is JSON itself, so that JSON copied from elsewhere need not be turned into TOML.
        Json::String(text) => {
            let value: Json = serde_json::from_str(text).map_err(|error| {
                Slip::new(&span, format!("not JSON: {error}; values in it need quotes: \"{{{{name}}}}\""))
            })?;
            json_value(&value, &span, scope, &mut out)?;
        }
        value => json_value(value, &span, scope, &mut out)?,
    }
    Ok(out)
}

fn json_value(value: &Json, span: &Span, scope: &mut Scope<'_>, out: &mut Template) -> Result<(), Slip> {
    let text = |out: &mut Template, text: &str| out.push(Piece::Text(text.to_owned()));
    match value {
        Json::String(string) => return json_string(string, span, scope, out),
        Json::Array(list) => {
            text(out, "[");
            for (index, item) in list.iter().enumerate() {
                text(out, if index == 0 { "" } else { "," });
                json_value(item, span, scope, out)?;
            }
            text(out, "]");
        }
        Json::Object(object) => {
            text(out, "{");
            for (index, (key, item)) in object.iter().enumerate() {
                text(out, if index == 0 { "" } else { "," });
                text(out, &format!("{}:", Json::from(key.as_str())));
                json_value(item, span, scope, out)?;
            }
            text(out, "}");
        }
        value => text(out, &value.to_string()),
    }
    Ok(())
}

fn json_string(string: &str, span: &Span, scope: &mut Scope<'_>, out: &mut Template) -> Result<(), Slip> {
    let template = scope.template(string, span, Context::Json)?;
    let cuts = cut(string).unwrap_or_default();
    let is_number = |cut: &Cut<'_>| cut.expression().is_some_and(|(_, filter)| filter == "number");
    match cuts.as_slice() {
        // The whole string is one number: no quotes.
        [one] if is_number(one) => out.append(template),
        several if several.iter().any(is_number) => {
            let what = "`number` replaces the whole string: write \"{{name|number}}\" alone";
            return Err(Slip::new(span, what));
        }
        _ => {
            out.push(Piece::Text("\"".to_owned()));
            out.append(template);
            out.push(Piece::Text("\"".to_owned()));
        }
    }
    Ok(())
}

fn checks(own: &Expect, defaults: &Expect, scope: &mut Scope<'_>) -> Result<Checks, Slip> {
    let mut checks = Checks::default();
    if let Some(status) = own.status.as_ref().or(defaults.status.as_ref()) {
        let set = status.get_ref().0.join(",").parse::<StatusSet>();
        checks.expect_status = Some(set.map_err(|error| Slip::new(&status.span(), error.to_string()))?);
    }
    if let Some(text) = own.body_contains.as_ref().or(defaults.body_contains.as_ref()) {
        let template = scope.template(text.get_ref(), &text.span(), Context::Variable)?;
        let what = "expected values must be the same for all journeys; use values that do not change";
        let fixed = template.fixed().ok_or_else(|| Slip::new(&text.span(), what))?;
        if fixed.is_empty() {
            return Err(Slip::new(&text.span(), "the text is empty; give the text that must be present"));
        }
        checks.expect_body_contains = Some(fixed.as_bytes().to_vec());
    }
    if let Some(digest) = own.sha256.as_ref().or(defaults.sha256.as_ref()) {
        let parsed = digest.get_ref().parse::<Sha256Digest>();
        checks.expect_sha256 = Some(parsed.map_err(|error| Slip::new(&digest.span(), error.to_string()))?);
    }
    Ok(checks)
}

/// The conditions of the defaults that the request does not override.
fn looks_not_in(defaults: &Expect, own: &Expect, sources: &Sources) -> Result<Vec<Look>, Slip> {
    let mut rest = defaults.clone();
    rest.headers.retain(|name, _| !own.headers.contains_key(name));
    rest.json.retain(|pointer, _| !own.json.contains_key(pointer));
    if own.body_matches.is_some() {
        rest.body_matches = None;
    }
    looks(&rest, sources)
}

fn looks(expect: &Expect, sources: &Sources) -> Result<Vec<Look>, Slip> {
    let mut looks = Vec::new();
    if let Some(text) = &expect.body_matches {
        looks.push(Look { at: From::Body, wanted: Wanted::Matches(regex(text)?) });
    }
    for (name, matcher) in &expect.headers {
        looks.extend(look(&From::Header(name.clone()), matcher)?);
    }
    for (pointer, matcher) in &expect.json {
        looks.extend(look(&From::Json(json_pointer(pointer, &matcher.span(), sources)?), matcher)?);
    }
    Ok(looks)
}

fn look(at: &From, matcher: &Spanned<Matcher>) -> Result<Vec<Look>, Slip> {
    Ok(wanted(matcher)?.into_iter().map(|wanted| Look { at: at.clone(), wanted }).collect())
}

/// What a value is compared with.
///
/// # Errors
///
/// A regular expression that is none, and a table without a condition.
pub(crate) fn wanted(matcher: &Spanned<Matcher>) -> Result<Vec<Wanted>, Slip> {
    let table = match matcher.get_ref() {
        Matcher::Equals(value) => return Ok(vec![Wanted::Equals(value.clone())]),
        Matcher::Table(table) => table,
    };
    let mut all = Vec::new();
    all.extend(table.equals.iter().map(|value| Wanted::Equals(value.clone())));
    if let Some(text) = &table.matches {
        all.push(Wanted::Matches(regex(text)?));
    }
    all.extend(table.contains.iter().map(|text| Wanted::Contains(text.clone())));
    all.extend(table.exists.iter().map(|exists| Wanted::Exists(*exists)));
    if all.is_empty() {
        return Err(Slip::new(
            &matcher.span(),
            "nothing to compare with; write equals, matches, contains or exists",
        ));
    }
    Ok(all)
}

fn captures(
    given: &Named<CaptureSpec>,
    common: &Common<'_>,
    scope: &mut Scope<'_>,
) -> Result<Vec<Capture>, Slip> {
    let mut captures = Vec::new();
    for (name, spec) in given {
        let span = spec.span();
        if common.last {
            let what = format!("no later step can use `{name}`; to check the response use expect");
            return Err(Slip::new(&span, what));
        }
        let slot = scope.capture(name, &span)?;
        let (from, regex, default) = match spec.get_ref() {
            CaptureSpec::Json(pointer) => {
                (From::Json(json_pointer(pointer, &span, common.sources)?), None, None)
            }
            CaptureSpec::Table(table) => {
                let regex = table.regex.as_ref().map(regex).transpose()?;
                (capture_from(table, &span, common.sources)?, regex, table.default.clone())
            }
        };
        captures.push(Capture { slot, from, regex, default, needs: Needs::default() });
    }
    Ok(captures)
}

fn capture_from(table: &CaptureTable, span: &Span, sources: &Sources) -> Result<From, Slip> {
    if table.column.is_some() {
        return Err(Slip::new(
            span,
            "`column` is for a database; take the value by json, header, cookie or regex",
        ));
    }
    match (&table.json, &table.header, &table.cookie, &table.regex) {
        (Some(pointer), None, None, _) => {
            Ok(From::Json(json_pointer(pointer.get_ref(), &pointer.span(), sources)?))
        }
        (None, Some(name), None, _) => Ok(From::Header(name.clone())),
        (None, None, Some(name), _) => Ok(From::Cookie(name.clone())),
        (None, None, None, Some(_)) => Ok(From::Body),
        (None, None, None, None) => Err(Slip::new(
            span,
            "where from? write json = \"/pointer\", header = \"Name\", cookie = \"name\" or regex = \"...\"",
        )),
        _ => Err(Slip::new(span, "a value is taken from one place: keep one of json, header and cookie")),
    }
}

fn json_pointer(text: &str, span: &Span, sources: &Sources) -> Result<Pointer, Slip> {
    Pointer::parse(text).ok_or_else(|| {
        let what = format!("`{text}` is not a JSON pointer; write for example /data/token or /items/0/id");
        Slip { span: sources.narrow(span, text), what }
    })
}

fn regex(text: &Spanned<String>) -> Result<Regex, Slip> {
    Regex::new(text.get_ref()).map_err(|error| {
        // The last line of the error has the message; the lines before it draw the expression.
        let message = error.to_string();
        let last = message.lines().last().unwrap_or("").trim().trim_start_matches("error: ");
        Slip::new(&text.span(), format!("`{}` is not a regular expression: {last}", text.get_ref()))
    })
}
