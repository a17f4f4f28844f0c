//! One journey in progress, and the scenario as the script of a run.
//!
//! A journey travels with its requests. Until it has captured something or was given a cookie it is a few numbers;
//! a request in which nothing is filled in is never copied into it.

use codec::web::{Ask, Asked, Keep, ReceivedResponse, Rendered, Script};
use codec::{FailedCheck, Next, Origin, Route};

use crate::capture::Capture;
use crate::cookies::Jar;
use crate::plan::{Play, Scenario, Step, place, think};
use crate::template::Moment;

/// What one unit of demand is about to ask for.
#[derive(Debug)]
pub struct Journey {
    /// The unit's number in the run.
    n: u64,
    play: u32,
    /// Its current step's place in the list of all.
    step: u16,
    /// Its current request, where that was made for it.
    rendered: Option<Box<Rendered>>,
    kept: Option<Box<Kept>>,
}

/// What a journey keeps of its answers.
#[derive(Debug, Default)]
struct Kept {
    captured: Vec<String>,
    jar: Jar,
}

/// A response that was wanted, with the values that its step captures, in their order.
#[derive(Debug)]
pub struct Taken {
    values: Vec<String>,
    response: ReceivedResponse,
}

/// What a step's texts are filled in from.
struct Filling<'a> {
    scenario: &'a Scenario,
    n: u64,
    captured: &'a [String],
}

impl Moment for Filling<'_> {
    fn captured(&self, slot: u16) -> &str {
        self.captured.get(usize::from(slot)).map_or("", String::as_str)
    }

    fn cell(&self, table: u16, column: u16) -> &str {
        let index = usize::from(table);
        let (table, ordinals) = (&self.scenario.tables[index], &self.scenario.ordinals[index]);
        table.cell(table.row(self.scenario.seed, self.n, ordinals.of(self.n)), column)
    }

    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    fn n(&self) -> u64 {
        self.n
    }
}

impl Scenario {
    fn play(&self, journey: &Journey) -> &Play {
        &self.plays[journey.play as usize]
    }

    fn step(&self, journey: &Journey) -> &Step {
        &self.steps[usize::from(journey.step)]
    }

    /// Whether the journey's current step is its last.
    fn is_last(&self, journey: &Journey) -> bool {
        let play = self.play(journey);
        journey.step + 1 >= play.first + play.steps
    }

    /// Makes the current step's request, unless it was prepared for all.
    fn fill_in(&self, journey: &mut Journey) {
        let step = self.step(journey);
        let kept = journey.kept.as_deref();
        let jar = kept.map(|kept| &kept.jar);
        // A prepared request knows no cookies.
        let carries = step.prepared.is_none() || jar.is_some_and(|jar| !jar.is_empty());
        if !carries {
            journey.rendered = None;
            return;
        }
        let captured = kept.map_or(&[][..], |kept| &kept.captured);
        let request = self.request(step, &Filling { scenario: self, n: journey.n, captured }, jar);
        let rendered = Rendered::new(Origin(step.target), request);
        let rendered = rendered
            .expect("the request was checked at load, and what is filled in was made fit for its place");
        journey.rendered = Some(Box::new(rendered));
    }

    /// Keeps of a response what the steps that follow need.
    fn keep(&self, journey: &mut Journey, taken: Taken) {
        let play = self.play(journey);
        let step = self.step(journey);
        let sets_cookies = play.cookies && taken.response.header("set-cookie").is_some();
        if step.captures.is_empty() && !sets_cookies {
            return;
        }
        let captured = journey.kept.as_ref().map_or(&[][..], |kept| &kept.captured);
        let url = sets_cookies.then(|| self.url(step, &Filling { scenario: self, n: journey.n, captured }));
        let kept = journey.kept.get_or_insert_with(Box::default);
        kept.captured.resize(play.slots.len(), String::new());
        for (capture, value) in step.captures.iter().zip(taken.values) {
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
        // Below the length of a vector, so the conversion loses nothing.
        let play = self.turns[(n % self.turns.len() as u64) as usize];
        let step = self.plays[play as usize].first;
        let mut journey = Journey { n, play, step, rendered: None, kept: None };
        self.fill_in(&mut journey);
        journey
    }

    fn ask<'a>(&'a self, journey: &'a Journey) -> Ask<'a> {
        let step = self.step(journey);
        let request = match (&journey.rendered, step.prepared) {
            (Some(rendered), _) => Asked::Rendered(rendered),
            (None, prepared) => Asked::Prepared(prepared.expect("what was not prepared has been filled in")),
        };
        let reads_body = step.looks.iter().any(|look| look.at.reads_body())
            || step.captures.iter().any(|capture| capture.reads_body());
        let keep = if reads_body {
            Keep::ReceivedResponse { body_bytes: self.keep_body }
        } else if !self.is_last(journey) || !step.looks.is_empty() {
            Keep::ReceivedResponse { body_bytes: 0 }
        } else {
            Keep::Nothing
        };
        Ask { request, checks: journey.step, keep }
    }

    fn route(&self, journey: &Journey) -> Route {
        let journey_number = self.play(journey).number;
        let origin = Origin(self.step(journey).target);
        Route { origin, kind: journey.step, journey: journey_number, ..Route::default() }
    }

    fn kinds(&self) -> usize {
        self.steps.len()
    }

    fn journeys(&self) -> usize {
        self.plays.iter().filter(|play| play.number.is_some()).count()
    }

    fn take(&self, checks: u16, response: ReceivedResponse) -> Result<Taken, FailedCheck> {
        let step = &self.steps[usize::from(checks)];
        if let Some(look) = step.looks.iter().find(|look| !look.holds(&response)) {
            return Err(look.failed(&response));
        }
        let value = |capture: &Capture| capture.take(&response).ok_or_else(|| capture.failed(&response));
        let values = step.captures.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Taken { values, response })
    }

    fn advance(&self, mut journey: Journey, taken: Option<Taken>) -> Next<Journey> {
        if self.is_last(&journey) {
            return Next::End;
        }
        // Without a response, or one that was wanted, there is nothing to go on from.
        let Some(taken) = taken else { return Next::End };
        let think = think(self, self.step(&journey), journey.n);
        self.keep(&mut journey, taken);
        journey.step += 1;
        self.fill_in(&mut journey);
        Next::Then { journey, think }
    }
}
