//! The HTTP part of a step, and the requests and checks of a scenario in the codec's form.

use codec::web::{Checks, Header, Request, Scheme, Url};

use super::capture::{Capture, Look};
use super::cookies::{Jar, Place};
use crate::plan::{Nothing, Scenario, Step};
use crate::template::{Moment, Template};

/// One HTTP request, and what its response must satisfy.
#[derive(Debug)]
pub(crate) struct WebStep {
    pub method: String,
    pub path: Template,
    pub headers: Vec<(String, Template)>,
    pub body: Body,
    /// Its index among the prepared requests, if it has no placeholders.
    pub prepared: Option<u32>,
    pub checks: Checks,
    pub looks: Vec<Look>,
    pub captures: Vec<Capture>,
}

#[derive(Debug)]
pub(crate) enum Body {
    None,
    /// The contents of a file.
    File(Vec<u8>),
    Template(Template),
}

impl WebStep {
    /// All texts of its request.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let body = match &self.body {
            Body::Template(template) => Some(template),
            Body::None | Body::File(_) => None,
        };
        std::iter::once(&self.path).chain(self.headers.iter().map(|(_, value)| value)).chain(body)
    }
}

impl Scenario {
    /// The servers' URLs, in the codec's form.
    pub fn origins(&self) -> Vec<Url> {
        self.targets.iter().map(|target| target.url().clone()).collect()
    }

    /// The requests without placeholders, in the order of their numbers.
    pub fn prepared(&self) -> Vec<Request> {
        let fixed = self.steps.iter().filter(|step| step.web().prepared.is_some());
        fixed.map(|step| self.request(step, &Nothing, None)).collect()
    }

    /// The checks for the responses of each kind of request.
    pub fn checks(&self) -> Vec<Checks> {
        self.steps.iter().map(|step| step.web().checks.clone()).collect()
    }

    /// The URL of a step's request.
    pub(crate) fn url(&self, step: &Step, moment: &impl Moment) -> Url {
        let target = &self.targets[usize::from(step.target)];
        let mut path = target.base.clone();
        step.web().path.render_into(moment, &mut path);
        target.url().with_path(&path)
    }

    /// A step's request, filled in.
    pub(crate) fn request(&self, step: &Step, moment: &impl Moment, jar: Option<&Jar>) -> Request {
        let url = self.url(step, moment);
        let filled = step
            .web()
            .headers
            .iter()
            .map(|(name, value)| Header { name: name.clone(), value: value.render(moment) });
        let mut headers: Vec<Header> = filled.collect();
        if let Some(cookies) = jar.and_then(|jar| jar.header(place(&url))) {
            match headers.iter_mut().find(|header| header.name.eq_ignore_ascii_case("cookie")) {
                Some(own) => own.value = format!("{}; {cookies}", own.value),
                None => headers.push(Header { name: "Cookie".to_owned(), value: cookies }),
            }
        }
        let body = match &step.web().body {
            Body::None => Vec::new(),
            Body::File(bytes) => bytes.clone(),
            Body::Template(template) => template.render(moment).into_bytes(),
        };
        Request { method: step.web().method.clone(), url, headers, body, weight: 1 }
    }
}

/// The place of a URL, for cookies.
pub(crate) fn place(url: &Url) -> Place<'_> {
    let secure = url.scheme() == Scheme::Https;
    Place { host: url.host(), path: url.path_and_query(), secure }
}
