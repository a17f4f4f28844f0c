//! Outputs of the tools: whole, cut and altered. `golden/README.md` lists which were captured.

use proptest::prelude::*;
use record::Check;
use record::import::ImportedTime;

use super::*;

const WRK: &str = include_str!("../../golden/wrk-latency.txt");
const WRK_PLAIN: &str = include_str!("../../golden/wrk-plain.txt");
const WRK_ERRORS: &str = include_str!("../../golden/wrk-errors.txt");
const WRK_BAD: &str = include_str!("../../golden/wrk-bad.txt");
const WRK_TIMEOUTS: &str = include_str!("../../golden/wrk-timeouts.txt");
const WRK2: &str = include_str!("../../golden/wrk2.txt");
const HEY: &str = include_str!("../../golden/hey.txt");
const HEY_CSV: &str = include_str!("../../golden/hey.csv");
const HEY_REFUSED: &str = include_str!("../../golden/hey-refused.txt");
const OHA: &str = include_str!("../../golden/oha.json");
const OHA_TEXT: &str = include_str!("../../golden/oha.txt");
const K6: &str = include_str!("../../golden/k6.json");
const VEGETA: &str = include_str!("../../golden/vegeta-report.json");
const VEGETA_JSON: &str = include_str!("../../golden/vegeta-results.ndjson");
const VEGETA_CSV: &str = include_str!("../../golden/vegeta-results.csv");

const SYSBENCH: &str = include_str!("../../golden/sysbench.txt");
const SYSBENCH_PLAIN: &str = include_str!("../../golden/sysbench-plain.txt");
const PGBENCH: &str = include_str!("../../golden/pgbench-rate.txt");
const PGBENCH_PLAIN: &str = include_str!("../../golden/pgbench-plain.txt");
const AB: &str = include_str!("../../golden/ab.txt");
const AB_BAD: &str = include_str!("../../golden/ab-bad.txt");

const ALL: [&str; 21] = [
    WRK,
    WRK_PLAIN,
    WRK_ERRORS,
    WRK_BAD,
    WRK_TIMEOUTS,
    WRK2,
    HEY,
    HEY_CSV,
    HEY_REFUSED,
    OHA,
    OHA_TEXT,
    K6,
    VEGETA,
    VEGETA_JSON,
    VEGETA_CSV,
    SYSBENCH,
    SYSBENCH_PLAIN,
    PGBENCH,
    PGBENCH_PLAIN,
    AB,
    AB_BAD,
];

#[track_caller]
fn read(text: &str) -> Import {
    let parsed = parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}"));
    record(parsed, "file", "0").unwrap_or_else(|error| panic!("{error}")).0
}

fn at(time: &ImportedTime, q: f64) -> Option<u64> {
    time.quantiles.iter().find(|quantile| quantile.q == q).map(|quantile| quantile.ns)
}

#[test]
fn each_output_is_known_by_its_looks_and_says_what_it_cannot_know() {
    let tools = [
        "wrk", "wrk", "wrk", "wrk", "wrk", "wrk2", "hey", "hey", "hey", "oha", "oha", "k6", "vegeta",
        "vegeta", "vegeta", "sysbench", "sysbench", "pgbench", "pgbench", "ab", "ab",
    ];
    for (text, tool) in ALL.into_iter().zip(tools) {
        let import = read(text);
        assert_eq!(import.imported.tool, tool);
        assert!(import.imported.cannot_know.len() >= 4, "{tool}");
        let verdict = import.verdict.as_ref().unwrap();
        assert_ne!(verdict.word, VerdictWord::Valid, "{tool}");
        assert!(verdict.findings.iter().any(|finding| finding.check == Check::Imported));
    }
}

#[test]
fn wrk_is_service_and_wrk2_is_response() {
    let wrk = read(WRK).results;
    let time = &wrk.times[0];
    assert_eq!((time.name.as_str(), time.count, wrk.requests), ("service", Some(3_603), Some(3_603)));
    assert_eq!(
        (at(time, 0.5), at(time, 0.99), time.max_ns),
        (Some(2_070_000), Some(5_630_000), Some(8_420_000))
    );
    assert_eq!(
        (wrk.connections, wrk.elapsed_ns, wrk.bytes_received),
        (Some(4), Some(2_000_000_000), Some(533_248))
    );
    // wrk prints no line of errors if there were none.
    assert_eq!((wrk.ok, wrk.failed, wrk.bytes_sent), (Some(3_603), Some(0), None));
    assert_eq!((wrk.throughput_per_s, wrk.request_rate_per_s), (Some(1_801.5), Some(1_799.76)));

    let plain = read(WRK_PLAIN).results;
    assert_eq!((plain.times[0].quantiles.len(), plain.times[0].max_ns), (0, Some(58_860_000)));

    let wrk2 = read(WRK2).results;
    let time = &wrk2.times[0];
    assert_eq!((time.name.as_str(), time.count), ("response", Some(9_900)));
    assert_eq!(
        (at(time, 0.5), at(time, 0.1), time.mean_ns),
        (Some(2_265_000), Some(2_129_000), Some(2_431_000))
    );
    // 9 900 requests carry p99.9 but not p99.99, whatever wrk2 prints.
    assert_eq!((at(time, 0.999), at(time, 0.9999)), (Some(14_810_000), None));
    assert_eq!(wrk2.errors.len(), 2);
    // Three that broke and two that waited, none of which is among those with a response.
    assert_eq!((wrk2.requests, wrk2.ok, wrk2.failed), (Some(9_985), Some(9_980), Some(5)));
}

/// If this fails, a server that responds with errors, late or not at all looks as good as a healthy one.
#[test]
fn errors_of_wrk_are_failures() {
    // 190 responses, 48 of them bad and one after the timeout; four connections broke.
    let errors = read(WRK_ERRORS);
    let results = &errors.results;
    assert_eq!((results.requests, results.ok, results.failed), (Some(194), Some(141), Some(53)));
    assert_eq!((results.times[0].count, results.times[0].max_ns), (Some(189), Some(72_890_000)));
    assert_eq!((results.throughput_per_s, results.request_rate_per_s), (Some(141.0 / 3.03), Some(62.76)));
    let bad = read(WRK_BAD);
    assert_eq!((bad.results.ok, bad.results.failed), (Some(0), Some(80)));
    let late = read(WRK_TIMEOUTS);
    assert_eq!((late.results.requests, late.results.ok), (Some(12), Some(0)));
    assert_eq!((late.results.times[0].count, late.results.times[0].mean_ns), (Some(0), None));
    for import in [&bad, &late] {
        assert_eq!(
            (import.verdict.as_ref().unwrap().word, import.results.throughput_per_s),
            (VerdictWord::Invalid, Some(0.0))
        );
    }
}

/// If this fails, wrk2's response time is taken for service time, or its p99 for the maximum.
#[test]
fn wrk2_without_its_spectrum_is_known_by_its_calibration_or_by_name() {
    let short = "  2 threads and 10 connections\n  Thread calibration: mean lat.: 2.412ms, rate sampling interval: 10ms\n  \
                 Thread Stats   Avg      Stdev     99%   +/- Stdev\n    Latency     2.43ms    1.02ms   6.24ms   96.70%\n  \
                 9980 requests in 10.00s, 1.41MB read\nRequests/sec:    998.01\n";
    let plain = short.replace("Thread calibration:", "");
    for (text, tool, name) in [
        (short, None, "response"),
        (short, Some(Tool::Wrk), "response"),
        (plain.as_str(), Some(Tool::Wrk2), "response"),
        (plain.as_str(), None, "service"),
    ] {
        let time = parse(text.as_bytes(), tool).unwrap().results.times.remove(0);
        assert_eq!((time.name.as_str(), time.max_ns, at(&time, 0.99)), (name, None, Some(6_240_000)));
    }
}

/// If this fails, requests and error shares of a long run are made up.
#[test]
fn more_than_hey_keeps_is_not_counted() {
    let text = HEY.replace("[200]\t400 responses", "[200]\t999000 responses\n  [503]\t1000 responses");
    let hey = read(&text);
    let results = &hey.results;
    assert_eq!(
        (results.requests, results.ok, results.failed, results.throughput_per_s),
        (None, None, None, None)
    );
    assert_eq!(results.request_rate_per_s, Some(1_057.359_5));
    assert!(hey.imported.cannot_know.iter().any(|unknown| unknown.contains("1 000 000")));
}

#[test]
fn throughput_is_of_ok_answers_whatever_the_tool_counts() {
    // k6 states no elapsed time: 149.8 requests per second, of which 1485 of 1500 were good.
    let k6 = read(K6).results;
    assert_eq!((k6.throughput_per_s, k6.request_rate_per_s), (Some(149.8 * 1_485.0 / 1_500.0), Some(149.8)));
    let refused = read(HEY_REFUSED).results;
    assert_eq!((refused.throughput_per_s, refused.request_rate_per_s), (Some(0.0), Some(3_179.369_7)));
    let vegeta = read(VEGETA).results;
    assert!(vegeta.throughput_per_s.unwrap() * 1.9 < vegeta.request_rate_per_s.unwrap());
}

#[test]
fn hey_is_read_with_its_quirks() {
    let hey = read(HEY).results;
    let time = &hey.times[0];
    assert_eq!((hey.requests, hey.ok, hey.failed), (Some(400), Some(400), Some(0)));
    assert_eq!((time.name.as_str(), at(time, 0.99)), ("request", Some(60_300_000)));
    assert_eq!((time.max_ns, hey.elapsed_ns), (Some(60_700_000), Some(378_300_000)));

    let refused = read(HEY_REFUSED);
    assert_eq!(refused.verdict.as_ref().unwrap().word, VerdictWord::Invalid);
    let results = refused.results;
    assert_eq!((results.requests, results.ok, results.failed), (Some(20), Some(0), Some(20)));
    // hey prints 0 and NaN if it has no value.
    assert_eq!((results.times[0].max_ns, results.times[0].mean_ns), (None, None));
    assert!(results.errors[0].original.ends_with("connection refused"));
}

#[test]
fn every_request_of_a_csv_is_in_its_histogram_log() {
    let parsed = parse(HEY_CSV.as_bytes(), None).unwrap();
    let (import, logs) = record(parsed, "hey.csv", "0").unwrap();
    let request = &import.results.times[0];
    assert_eq!((request.count, request.log.as_deref()), (Some(400), Some("request.hlog")));
    assert!(request.quantiles.iter().all(|quantile| quantile.low_ns <= Some(quantile.ns)));
    assert_eq!((at(request, 0.5), at(request, 0.999)), (Some(2_101_247), None));
    let names: Vec<_> = logs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["request.hlog", "phase-send.hlog", "phase-wait.hlog", "phase-receive.hlog"]);
    // Four connections were opened: the other requests have no such phase.
    let set_up = import.results.times.iter().find(|time| time.original == "DNS+dialup").unwrap();
    assert_eq!(set_up.count, Some(4));
}

#[test]
fn oha_and_k6_and_vegeta_are_read_to_the_figure() {
    for text in [OHA, OHA_TEXT] {
        let oha = read(text).results;
        assert_eq!((oha.ok, oha.codes.len(), oha.elapsed_ns), (Some(1_975), 2, Some(5_001_200_000)));
        assert_eq!((at(&oha.times[0], 0.99), at(&oha.times[0], 0.999)), (Some(9_200_000), None));
    }
    let k6 = read(K6).results;
    let names: Vec<_> = k6.times.iter().map(|time| time.name.as_str()).collect();
    // Every handshake of 0 is one that was not made.
    assert_eq!(
        names,
        ["service", "phase-pool_wait", "phase-connect", "phase-send", "phase-wait", "phase-receive"]
    );
    assert_eq!((k6.ok, k6.failed, at(&k6.times[0], 0.95)), (Some(1_485), Some(15), Some(3_710_000)));
    let vegeta = read(VEGETA).results;
    assert_eq!((vegeta.requests, vegeta.ok, vegeta.failed), (Some(400), Some(200), Some(200)));
    assert_eq!((at(&vegeta.times[0], 0.99), vegeta.errors.len()), (Some(3_916_798), 2));
    // Its code 0 is not a status code.
    assert_eq!(vegeta.codes.iter().map(|code| code.code).collect::<Vec<_>>(), [200, 503]);
    assert_eq!(vegeta.elapsed_ns, Some(1_996_393_455));
    for text in [VEGETA_JSON, VEGETA_CSV] {
        let hits = read(text).results;
        assert_eq!((hits.requests, hits.ok, hits.failed), (Some(40), Some(20), Some(20)));
        let longest = hits.times[0].max_ns.unwrap();
        assert!(longest.abs_diff(3_302_283) < 3_302, "{longest}");
        assert_eq!((hits.bytes_received, hits.errors.len()), (Some(300), 2));
        assert_eq!(hits.started.as_deref(), Some("2026-11-22T01:55:51.447045151Z"));
        assert_eq!(hits.url.as_deref(), Some("http://127.0.0.1:18099/delay/0.002"));
    }
}

#[test]
fn k6_summaries_of_both_shapes_say_the_same() {
    let mut json: serde_json::Value = serde_json::from_str(K6).unwrap();
    let metrics = json["metrics"].as_object_mut().unwrap();
    for metric in metrics.values_mut() {
        *metric = serde_json::json!({ "type": "trend", "values": metric.clone() });
    }
    assert_eq!(read(&json.to_string()).results, read(K6).results);
}

#[test]
fn an_error_is_one_line_and_names_its_own() {
    for (text, tool, error) in [
        ("nothing of the kind", None, "the tool that produced this was not recognized"),
        ("{}", None, "the tool that produced this was not recognized"),
        ("{\"metrics\": 3}", Some(Tool::K6), "there is no object `metrics`"),
        ("{\n\"metrics\": {,}}", Some(Tool::K6), "line 2: not JSON: key must be a string"),
        ("Thread Stats\n  Latency  1.0ms 1.0ms -3ms 9%", None, "line 2: `-3ms` is not a time"),
        ("Thread Stats", None, "there is no line `N requests in TIME`"),
        (
            "1700000000000000000,200,1,0,0,,,,0,GET,u,\n1700000000000000000,2x0,1,0,0,,,,0,GET,u,\n",
            None,
            "line 2: `2x0` is not a status",
        ),
        ("response-time,DNS+dialup\n", None, "line 1: not the columns of hey's CSV"),
    ] {
        let original = parse(text.as_bytes(), tool).unwrap_err().to_string();
        assert!(original.starts_with(error), "{original}");
        assert_eq!(original.lines().count(), 1, "{original}");
    }
    assert_eq!(parse(&[b'a', 0xff], None).unwrap_err(), ImportError::NotText { at: 1 });
}

#[test]
fn figures_that_cannot_be_are_no_measurement() {
    for (from, to) in
        [("\"p(95)\": 3.71", "\"p(95)\": 0.5"), ("\"min\": 2.05", "\"min\": 999"), ("2.61", "1e300")]
    {
        let text = K6.replacen(from, to, 1);
        assert!(parse(text.as_bytes(), None).is_err(), "{to}");
    }
    let far = VEGETA_CSV.replacen(",3302283,", ",18446744073709551615,", 1);
    assert!(parse(far.as_bytes(), None).is_err());
}

/// Hostile input: parts left out, digits changed, bytes inserted.
fn altered() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let cut = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (0..ALL.len(), prop::collection::vec(change, 0..6), prop::option::of(cut)).prop_map(
        |(i, changes, cut)| {
            let mut bytes = ALL[i].as_bytes().to_vec();
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                // Replacing digits by digits keeps most of a file readable, so that mainly numbers are tested.
                bytes[index] = if bytes[index].is_ascii_digit() { b'0' + byte % 10 } else { byte };
            }
            if let Some((from, to)) = cut {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                bytes.drain(from.min(to)..from.max(to));
            }
            (i, bytes)
        },
    )
}

proptest! {
    /// If this fails, a malformed file can crash the importer, or make a record that cannot be read again.
    #[test]
    fn cut_and_altered_outputs_are_an_error_or_a_sound_record((_, bytes) in altered()) {
        for tool in [None, Some(Tool::Wrk), Some(Tool::Wrk2), Some(Tool::Hey), Some(Tool::Oha), Some(Tool::K6), Some(Tool::Vegeta)] {
            match parse(&bytes, tool).and_then(|parsed| record(parsed, "file", "0")) {
                Err(error) => prop_assert!(error.to_string().chars().count() < 400, "{error}"),
                Ok((import, _)) => {
                    let text = serde_json::to_string(&import).unwrap();
                    prop_assert_eq!(&serde_json::from_str::<Import>(&text).unwrap(), &import);
                    for time in &import.results.times {
                        prop_assert!(time.quantiles.windows(2).all(|pair| pair[0].ns <= pair[1].ns));
                    }
                }
            }
        }
    }
}

#[test]
fn sysbench_has_its_transactions_and_intervals() {
    let results = read(SYSBENCH).results;
    assert_eq!((results.ok, results.failed, results.connections), (Some(254), Some(0), Some(4)));
    assert_eq!((results.rate_per_s, results.request_rate_per_s), (Some(50.0), Some(50.39)));
    assert_eq!(results.elapsed_ns, Some(5_039_800_000));
    let time = &results.times[0];
    assert_eq!(
        (time.min_ns, time.mean_ns, time.max_ns),
        (Some(750_000), Some(29_300_000), Some(105_720_000))
    );
    // 254 transactions are too few for p99.
    assert_eq!(time.quantiles, []);
    assert_eq!(results.intervals.len(), 5);
    let first = results.intervals[0];
    assert_eq!((first.end_ns, first.rate_per_s), (1_000_000_000, 42.72));
    assert_eq!((first.quantile_ns, first.failed_per_s), (Some(77_190_000), Some(0.0)));
    let plain = read(SYSBENCH_PLAIN).results;
    assert_eq!((plain.ok, plain.rate_per_s, plain.intervals.len()), (Some(2_000), None, 0));
    let text = SYSBENCH_PLAIN
        .replace("ignored errors:                      0 ", "ignored errors:                      7 ");
    assert_eq!((read(&text).results.failed, read(&text).results.requests), (Some(7), Some(2_007)));
}

#[test]
fn pgbench_has_its_average_its_lag_and_its_progress() {
    let results = read(PGBENCH).results;
    assert_eq!((results.ok, results.failed, results.connections), (Some(983), Some(0), Some(4)));
    let [response, lag] = results.times.as_slice() else { panic!("{:?}", results.times) };
    assert_eq!((response.name.as_str(), response.mean_ns), ("response", Some(14_635_000)));
    assert_eq!(
        (lag.name.as_str(), lag.mean_ns, lag.max_ns),
        ("phase-schedule_lag", Some(6_546_000), Some(66_714_000))
    );
    assert_eq!(results.intervals.len(), 5);
    assert_eq!(results.intervals[4].mean_ns, Some(19_894_000));
    let plain = read(PGBENCH_PLAIN);
    // The average it prints is computed from the duration.
    assert_eq!((plain.results.times.len(), plain.results.requests), (0, Some(200)));
    assert!(plain.imported.cannot_know[0].contains("schedule lag"), "{:?}", plain.imported.cannot_know);
    assert!(plain.imported.cannot_know[1].contains("any time"), "{:?}", plain.imported.cannot_know);
    // With failures, against another server's version, with times since 1970.
    let text = PGBENCH_PLAIN.replace("15.18 (Debian 15.18-0+deb12u1)", "15.18, server 14.2");
    let text = text.replace("0.460 ms", "0.460 ms (including failures)");
    assert_eq!(read(&text).imported.tool_version.as_deref(), Some("15.18"));
    let since_1970 = (1..=5).fold(PGBENCH.to_owned(), |text, second| {
        text.replace(
            &format!("progress: {second}.0 s"),
            &format!("progress: {}.250 s", 1_790_000_000 + second),
        )
    });
    let ends: Vec<u64> =
        read(&since_1970).results.intervals.iter().map(|one| one.end_ns / 1_000_000).collect();
    assert_eq!(ends, [1_000, 2_000, 3_000, 4_000, 5_000]);
    let disordered = PGBENCH.replace("progress: 3.0 s", "progress: 1.5 s");
    assert!(parse(disordered.as_bytes(), None).is_err());
}

#[test]
fn ab_counts_another_status_as_a_failure() {
    let results = read(AB).results;
    assert_eq!((results.ok, results.failed, results.connections), (Some(300), Some(0), Some(3)));
    assert_eq!(results.url.as_deref(), Some("http://127.0.0.1:7499/delay/0.005"));
    let median = at(&results.times[0], 0.5).unwrap();
    assert!((5_000_000..9_000_000).contains(&median), "{median}");
    let bad = read(AB_BAD).results;
    assert_eq!((bad.ok, bad.failed, bad.requests), (Some(0), Some(200), Some(200)));
    assert_eq!(bad.times[0].mean_ns, Some(0));
    // The responses with another status may be those of another length.
    let both = AB_BAD.replace("Failed requests:        0", "Failed requests:        120");
    let both = read(&both.replace("Non-2xx responses:      200", "Non-2xx responses:      100"));
    assert_eq!((both.results.ok, both.results.failed), (Some(80), Some(120)));
    assert!(both.imported.cannot_know[0].contains("in common"), "{:?}", both.imported.cannot_know);
}
