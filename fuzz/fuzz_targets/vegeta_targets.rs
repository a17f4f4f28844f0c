//! Any text as a target file, in both forms: no panic, and whatever is accepted can be sent and has the meaning it
//! was written with.

#![no_main]

use codec::web::targets::{Form, detect, parse};
use codec::web::{Checks, RequestError, WebSettings, Web};
use codec::{Key, Protocol, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = detect(text);
    for form in [Form::Http, Form::Json] {
        let lines = text.lines().count();
        let requests = match parse(text, form, |path| Ok(path.as_os_str().as_encoded_bytes().to_vec())) {
            Ok(requests) => requests,
            Err(error) => {
                assert!(error.line >= 1 && error.line <= lines.max(1));
                assert!(!error.to_string().contains(['\r', '\n']), "one line: {error}");
                continue;
            }
        };
        let run = match Web::turns(&requests, &Checks::default(), WebSettings::default()) {
            Ok(run) => run,
            Err(error) => {
                // What depends on the other requests, or on the run: this one has no TLS.
                let late = !matches!(
                    error,
                    RequestError::WeightsTooFine { .. }
                        | RequestError::TooManyOrigins { .. }
                        | RequestError::NoTls { .. }
                );
                assert!(!late, "refused late: {error}");
                continue;
            }
        };
        for n in 0..requests.len() as u64 {
            let mut out = Vec::new();
            let journey = run.begin(n);
            run.session(run.route(&journey).origin).request(&journey, Key(n), &mut out);
            check_request(&out, requests[journey as usize].headers.len());
        }
    }
});

/// Read as a server would: nothing in a file may add a line to a head.
fn check_request(bytes: &[u8], given: usize) {
    let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head has an end");
    let head = std::str::from_utf8(&bytes[..head_end]).expect("heads are text");
    let lines: Vec<&str> = head.split("\r\n").collect();
    assert_eq!(lines[0].split(' ').count(), 3, "{head}");
    assert!(lines.iter().all(|line| !line.contains(['\r', '\n', '\0'])), "{head}");
    // The request line and at most four headers of ours.
    assert!(lines.len() > given && lines.len() <= given + 5, "{head}");
}
