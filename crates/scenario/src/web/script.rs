//! One HTTP journey in progress, and the scenario as the script of a run.
//!
//! A journey travels with its requests. Until it has captured something or received a cookie it is a few numbers; a
//! request without placeholders is never copied into it.

use codec::web::{Ask, Asked, Keep, ReceivedResponse, Rendered, Script};
use codec::{FailedCheck, Next, Origin, Route};

use super::capture::Capture;
use super::cookies::Jar;
use super::step::place;
use crate::journey::{Filling, Position, Repetition};
use crate::plan::Scenario;

/// One unit of demand, about to send a request.
#[derive(Debug)]
pub struct Journey {
    at: Position,
    /// Its current request, if that was rendered for it.
    rendered: Option<Box<Rendered>>,
    kept: Option<Box<Kept>>,
}

/// What a journey keeps from its responses.
#[derive(Debug, Default)]
struct Kept {
    captured: Vec<String>,
    jar: Jar,
}

/// An expected response, with the values that its step captures, in order.
#[derive(Debug)]
pub struct Taken {
    values: Vec<String>,
    response: ReceivedResponse,
}

impl Scenario {
    /// Renders the current step's request, unless it is a prepared one.
    fn fill_in(&self, journey: &mut Journey) {
        let step = self.step(journey.at);
        let kept = journey.kept.as_deref();
        let jar = kept.map(|kept| &kept.jar);
        // A prepared request has no cookies.
        let carries = step.web().prepared.is_none() || jar.is_some_and(|jar| !jar.is_empty());
        if !carries {
            journey.rendered = None;
            return;
        }
        let captured = kept.map_or(&[][..], |kept| &kept.captured);
        let request = self.request(
            step,
            &Filling { scenario: self, n: journey.at.n, captured, repetition: Repetition::default() },
            jar,
        );
        let rendered = Rendered::new(Origin(step.target), request);
        let rendered = rendered
            .expect("the request was checked at load, and what is filled in was made fit for its place");
        journey.rendered = Some(Box::new(rendered));
    }

    /// Keeps what later steps need from a response.
    fn keep(&self, journey: &mut Journey, taken: Taken) {
        let play = self.play(journey.at);
        let step = self.step(journey.at);
        let sets_cookies = play.cookies && taken.response.header("set-cookie").is_some();
        if step.web().captures.is_empty() && !sets_cookies {
            return;
        }
        let captured = journey.kept.as_ref().map_or(&[][..], |kept| &kept.captured);
        let url = sets_cookies.then(|| {
            self.url(
                step,
                &Filling { scenario: self, n: journey.at.n, captured, repetition: Repetition::default() },
            )
        });
        let kept = journey.kept.get_or_insert_with(Box::default);
        kept.captured.resize(play.slots.len(), String::new());
        for (capture, value) in step.web().captures.iter().zip(taken.values) {
            kept.captured[usize::from(capture.slot)] = value;
        }
        if let Some(url) = url {
            let lines = taken.response.headers_named("set-cookie");
            lines.for_each(|line| kept.jar.store(line, place(&url), self.now));
        }
    }
}

impl Script for Scenario {
    type Journey = Journey;
    type Taken = Taken;

    fn begin(&self, n: u64) -> Journey {
        let mut journey = Journey { at: self.position(n), rendered: None, kept: None };
        self.fill_in(&mut journey);
        journey
    }

    fn ask<'a>(&'a self, journey: &'a Journey) -> Ask<'a> {
        let step = self.step(journey.at);
        let request = match (&journey.rendered, step.web().prepared) {
            (Some(rendered), _) => Asked::Rendered(rendered),
            (None, prepared) => Asked::Prepared(prepared.expect("what was not prepared has been filled in")),
        };
        let reads_body = step.web().looks.iter().any(|look| look.at.reads_body())
            || step.web().captures.iter().any(|capture| capture.reads_body());
        let keep = if reads_body {
            Keep::ReceivedResponse { body_bytes: self.keep_body }
        } else if !self.is_last(journey.at) || !step.web().looks.is_empty() {
            Keep::ReceivedResponse { body_bytes: 0 }
        } else {
            Keep::Nothing
        };
        Ask { request, checks: journey.at.step, keep }
    }

    fn route(&self, journey: &Journey) -> Route {
        let journey_number = self.play(journey.at).number;
        let origin = Origin(self.step(journey.at).target);
        Route { origin, kind: journey.at.step, journey: journey_number, ..Route::default() }
    }

    fn kinds(&self) -> usize {
        self.steps.len()
    }

    fn journeys(&self) -> usize {
        self.plays.iter().filter(|play| play.number.is_some()).count()
    }

    fn take(&self, checks: u16, response: ReceivedResponse) -> Result<Taken, FailedCheck> {
        let step = &self.steps[usize::from(checks)];
        if let Some(look) = step.web().looks.iter().find(|look| !look.holds(&response)) {
            return Err(look.failed(&response));
        }
        let value = |capture: &Capture| capture.take(&response).ok_or_else(|| capture.failed(&response));
        let values = step.web().captures.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Taken { values, response })
    }

    fn advance(&self, mut journey: Journey, taken: Option<Taken>) -> Next<Journey> {
        if self.is_last(journey.at) {
            return Next::End;
        }
        // Without an expected response there is nothing to continue from.
        let Some(taken) = taken else { return Next::End };
        let think = self.think(journey.at);
        self.keep(&mut journey, taken);
        journey.at.step += 1;
        self.fill_in(&mut journey);
        Next::Then { journey, think }
    }
}
