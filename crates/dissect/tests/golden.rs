//! Every transcript of a real server is read as it stands in the file beside it, however it is cut.

mod transcripts;

use dissect::{EndBy, Event, Kind, MySqlCommand, Sight};
use expect_test::expect_file;
use proptest::prelude::*;
use transcripts::{Listener, Said, Story, Transcript, all, folder, hinted, named, story, whole};

#[test]
fn transcripts_are_read_as_they_stand() {
    for transcript in all() {
        let text = story(&transcript.pieces, usize::MAX, hinted(&transcript)).render();
        expect_file![folder().join(format!("{}.told", transcript.name))].assert_eq(&text);
    }
}
