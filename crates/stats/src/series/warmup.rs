//! Where warming up ends, and what kind of course a series has.

use super::{Segment, Truncation, mean, mser5, segments};
use crate::comparison::Direction;

/// Means within this share of each other are the same state.
const SAME_STATE: f64 = 0.01;

/// Two methods agree if their cuts differ by at most this share of the later one.
const AGREEMENT: f64 = 0.2;

/// How a series runs (Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    Flat,
    WarmsUp,
    SlowsDown,
    NoSteadyState,
    /// Runs of one server differ in their course.
    Inconsistent,
    /// Fewer than 50 values.
    TooShort,
}

/// Course and length of warming up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warmup {
    pub course: Course,
    /// The number of values before the steady state; `None` if there is none, or if the series is too short to know.
    pub values: Option<usize>,
    /// Whether both methods cut at the same place, within 20 %. If not, the later one counts.
    pub methods_agree: bool,
}

/// Finds the end of warming up with two methods, [`mser5`] and [`segments`], and takes the later if they differ.
pub fn warmup(values: &[f64], direction: Direction) -> Warmup {
    let undecided = |course| Warmup { course, values: None, methods_agree: true };
    let by_error = match mser5(values) {
        Truncation::TooShort => return undecided(Course::TooShort),
        Truncation::NoSteadyState => return undecided(Course::NoSteadyState),
        Truncation::LeaveOut(values) => values,
    };
    let by_segments = steady_from(&segments(values));
    if by_segments > values.len() / 2 {
        return undecided(Course::NoSteadyState);
    }
    let later = by_error.max(by_segments);
    let difference = by_error.abs_diff(by_segments);
    Warmup {
        course: course(&values[..later], &values[later..], direction),
        values: Some(later),
        // One batch is the resolution of the first method.
        methods_agree: difference <= 5 || difference as f64 <= AGREEMENT * later as f64,
    }
}

/// The first value of the last stretch of segments with the same mean.
fn steady_from(segments: &[Segment]) -> usize {
    let Some(last) = segments.last() else { return 0 };
    let is_same = |segment: &&Segment| {
        let spread = (segment.variance.sqrt()).min(last.variance.sqrt());
        (segment.mean - last.mean).abs() <= spread.max(SAME_STATE * last.mean.abs())
    };
    segments.iter().rev().take_while(is_same).last().map_or(last.start, |segment| segment.start)
}

/// The course of a series whose first part is `before` the steady state.
pub fn course(before: &[f64], steady: &[f64], direction: Direction) -> Course {
    if before.is_empty() {
        return Course::Flat;
    }
    let difference = mean(steady) - mean(before);
    if difference.abs() <= SAME_STATE * mean(steady).abs() {
        return Course::Flat;
    }
    let improves = (difference > 0.0) == (direction == Direction::HigherIsBetter);
    if improves { Course::WarmsUp } else { Course::SlowsDown }
}

/// The course of a server from those of its runs; `None` for no runs.
pub fn course_of_all(courses: &[Course]) -> Option<Course> {
    let first = courses.first()?;
    Some(if courses.iter().all(|course| course == first) { *first } else { Course::Inconsistent })
}
