//! The histogram logs, read by an independent program: the Python port of HdrHistogram.

use std::process::Command;

use serde_json::Value;
use units::Nanos;

use crate::support::nginx::Nginx;
use crate::support::python::python;
use crate::support::run::{argument, drive, number};
use crate::support::turn;

const READER: &str = "
import json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
HOUR = 3600 * 10**9
total = HdrHistogram(1, HOUR, 3)
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, HOUR, 3))
intervals = 0
while True:
    one = reader.get_next_interval_histogram()
    if one is None:
        break
    intervals += 1
    total.add(one)
values = {str(p): total.get_value_at_percentile(p) for p in (50, 90, 99, 100)}
print(json.dumps({'count': total.get_total_count(), 'intervals': intervals, 'values': values}))
";

/// If this fails, other tools read figures that differ from ours.
#[test]
fn the_python_reader_sees_the_same_histograms() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; } location /slow { limit_rate 400k; }");
    std::fs::write(nginx.file("slow"), vec![1; 250_000]).unwrap();
    let run = drive(&["-r", "200/s", "-d", "2s", "-c", "60", "-w", "2", &nginx.url("/slow")]);
    for (file, recorded) in [("response.hlog", "/results/response"), ("service.hlog", "/results/service")] {
        let output = Command::new(python())
            .args(["-c", READER, &argument(&run.record().join(file))])
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{file}: {message}");
        let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(number(&theirs, "/count"), number(&run.json, &format!("{recorded}/count")), "{file}");
        assert!(number(&theirs, "/intervals") >= 2, "{file}: {theirs}");
        let recording = record::read(&run.record()).unwrap();
        let total = &recording.total;
        let ours = if file == "response.hlog" { total.response() } else { total.service() }.unwrap();
        for percent in [50, 90, 99, 100] {
            let rank = (ours.count() * percent).div_ceil(100);
            let value = ours.at_rank(rank).unwrap();
            let their_value = Nanos(number(&theirs, &format!("/values/{percent}")));
            // Equal within the width of a bucket of three digits.
            let same = ours.histogram().equivalent(value.0, their_value.0);
            assert!(same, "{file} p{percent}: ours {value}, theirs {their_value}");
        }
    }
}
