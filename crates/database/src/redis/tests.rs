//! Servers written by hand and recorded ones, read whole, byte by byte and at random cuts; and what no server should
//! send.

use proptest::prelude::*;

use crate::sql::Keep;
use crate::testing::{self, Ending, Form, Statements, check, converse, reply};
use crate::{Database, DatabaseKind};
use codec::{CloseEvent, DecodeError, Judgement, Key, Origin, Protocol, Session};

const PLAIN: Form = Form {
    kind: DatabaseKind::Redis,
    prepared: false,
    is_local_socket: false,
    trusts_public_key: false,
    keep: Keep::Nothing,
    pipeline: 1,
};

fn run(form: Form) -> Database<Statements> {
    testing::run(&["GET key:", ""], form)
}

/// The reply to `HELLO`, and that to `SELECT`.
fn logged_in(answers: &[&str]) -> Vec<Vec<u8>> {
    let hello = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n";
    [hello, "+OK\r\n"].iter().chain(answers).map(|text| text.as_bytes().to_vec()).collect()
}

fn closed(event: CloseEvent) -> Ending {
    Ending::Closed(event)
}

#[test]
fn replies_are_counted_and_drained() {
    let nested = "*3\r\n:1\r\n*2\r\n$2\r\nab\r\n_\r\n~1\r\n#t\r\n";
    let many = ["$3\r\nabc\r\n", "$-1\r\n", "_\r\n", nested, "%1\r\n+a\r\n,1.5\r\n", "*0\r\n", "(123\r\n"];
    let (endings, sent, _) = check(&run(PLAIN), &logged_in(&many), 7);
    let replies: Vec<Ending> = (0..).zip(many).map(|(key, text)| reply(key, text.len() as u64)).collect();
    assert_eq!(endings, [&[Ending::Opened][..], &replies, &[closed(CloseEvent::Idle)]].concat());
    let login = "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$3\r\napp\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$4\r\nshop\r\n";
    let get = "*2\r\n$3\r\nGET\r\n$5\r\nkey:7\r\n";
    assert_eq!(String::from_utf8(sent).unwrap(), [login, &get.repeat(7)].concat());
}

/// If this fails, the replies of a pipeline are counted for the wrong commands, or a push for one of them.
#[test]
fn each_command_of_a_pipeline_has_its_reply() {
    let run = run(Form { pipeline: 4, ..PLAIN });
    let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n";
    let all = ["$1\r\na\r\n", push, "-WRONGTYPE Operation against a key\r\n", "|1\r\n+ttl\r\n:3\r\n:5\r\n"]
        .concat();
    let (endings, ..) = check(&run, &logged_in(&[&all, "+OK\r\n", push]), 4);
    let wrong = Ending::Reply(1, "WRONGTYPE".into(), Judgement::RequestError, 36);
    let rest = [reply(2, 18), reply(3, 5), closed(CloseEvent::Idle)];
    assert_eq!(endings, [&[Ending::Opened, reply(0, 7), wrong][..], &rest].concat());
}

#[test]
fn the_first_value_and_the_count_are_kept() {
    for (answer, count, first) in [
        ("$3\r\n4\r2\r\n", 1, Some(Some("4\r2"))),
        (":42\r\n", 1, Some(Some("42"))),
        ("$-1\r\n", 0, None),
        ("*2\r\n$1\r\na\r\n$1\r\nb\r\n", 2, Some(Some("a"))),
    ] {
        let run = run(Form { keep: Keep::FirstRow, ..PLAIN });
        let mut session = run.session(Origin(0));
        let mut out = Vec::new();
        session.open(&mut out);
        for login in logged_in(&[]) {
            session.handle_input(&login, &mut out).unwrap();
        }
        session.request(&0, Key(0), &mut out);
        session.handle_input(answer.as_bytes(), &mut out).unwrap();
        let rows = session.hand_over().unwrap();
        assert_eq!((rows.count, rows.value("value")), (count, first), "{answer}");
    }
}

#[test]
fn an_error_has_its_word_and_its_text() {
    for (text, judgement) in [
        ("ERR unknown command 'GE'", Judgement::RequestError),
        ("MOVED 3999 127.0.0.1:6381", Judgement::ServerError),
        ("LOADING Redis is loading the dataset in memory", Judgement::ServerError),
        ("READONLY You can't write against a read only replica.", Judgement::ServerError),
        ("NOAUTH Authentication required.", Judgement::RequestError),
    ] {
        let long = format!("!{}\r\n{text}\r\n", text.len());
        for answer in [format!("-{text}\r\n"), long] {
            let (endings, _, words) = check(&run(PLAIN), &logged_in(&[&answer]), 1);
            let word = text.split(' ').next().unwrap();
            let bytes = answer.len() as u64;
            assert_eq!(endings[1], Ending::Reply(0, word.into(), judgement, bytes));
            assert_eq!(words.unwrap(), text);
        }
    }
}

#[test]
fn refusals_have_the_servers_words() {
    for text in ["WRONGPASS invalid username-password pair or user is disabled.", "LOADING Redis is loading"]
    {
        let (endings, _, words) = check(&run(PLAIN), &[format!("-{text}\r\n").into_bytes()], 1);
        assert_eq!(endings, [Ending::Broke(DecodeError::Login { what: "login refused" })]);
        assert_eq!(words.unwrap(), text);
    }
    // A server quotes a command that was renamed.
    let hello =
        b"-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'app' 'secret' \r\n".to_vec();
    for text in ["'secret' ", "'sec", "secret"] {
        let auth = format!("-ERR unknown command 'AUTH', with args beginning with: 'app' {text}\r\n");
        let (endings, _, words) = check(&run(PLAIN), &[hello.clone(), auth.into_bytes()], 1);
        assert_eq!(endings, [Ending::Broke(DecodeError::Login { what: "login refused" })]);
        assert_eq!(words.unwrap(), "ERR unknown command 'AUTH'");
    }
    let (_, _, words) = check(&run(PLAIN), &logged_in(&["-ERR no secret here\r\n"]), 1);
    assert_eq!(words.unwrap(), "ERR no (redacted) here");
    // A server that is older than HELLO.
    let old =
        ["-ERR unknown command `HELLO`, with args beginning with: `3`\r\n", "+OK\r\n", "+OK\r\n", "$-1\r\n"];
    let old: Vec<Vec<u8>> = old.iter().map(|text| text.as_bytes().to_vec()).collect();
    let (endings, sent, _) = check(&run(PLAIN), &old, 1);
    assert_eq!(endings, [Ending::Opened, reply(0, 5), closed(CloseEvent::Idle)]);
    assert!(sent.windows(17).any(|window| window == b"*3\r\n$4\r\nAUTH\r\n$3\r"));
}

/// If this fails, a server chooses how much memory or time it takes, or ends the program.
#[test]
fn what_no_server_should_send_is_refused() {
    let deep = "*1\r\n".repeat(33);
    let wide = format!("+{}", "x".repeat(70_000));
    for (answer, what) in [
        ("?\r\n", "kind of a reply"),
        ("\r\n", "line of a reply"),
        ("+a\n", "line of a reply"),
        ("$x\r\n", "length"),
        ("*-2\r\n", "length"),
        ("$99999999999\r\n", "length"),
        ("$2\r\nabc\r\n", "end of a bulk string"),
        ("$9999\r\n", "bytes of result"),
        (&deep, "levels of a reply"),
        (&wide, "bytes of"),
    ] {
        let run = run(PLAIN);
        for cut in [1, usize::MAX] {
            let (endings, ..) = converse(&run, &logged_in(&[answer]), 1, || cut);
            let Some(Ending::Broke(error)) = endings.last() else { panic!("{what}: {endings:?}") };
            assert!(error.what().contains(what), "{what}: {error}");
        }
    }
    let (endings, ..) = check(&run(PLAIN), &logged_in(&["+OK\r\n", "+OK\r\n", "+OK\r\n"]), 1);
    assert_eq!(endings[2], Ending::Broke(DecodeError::Unsolicited));
}

proptest! {
    #[test]
    fn no_bytes_end_the_program(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let run = run(Form { keep: Keep::FirstRow, ..PLAIN });
        let _ = converse(&run, std::slice::from_ref(&bytes), 1, || usize::MAX);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = converse(&run, &logged_in(&[&text]), 1, || 3);
    }

    /// Lines of replies get further than any bytes.
    #[test]
    fn no_lines_end_the_program(lines in prop::collection::vec("[+$*%~|>_:#,(!=-][0-3a]{0,2}", 1..20)) {
        let run = run(Form { keep: Keep::FirstRow, pipeline: 2, ..PLAIN });
        let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        check(&run, &logged_in(&[&text]), 3);
    }
}
