//! The relay between real sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;

use super::*;

/// A server that sends back what it gets, for any number of connections, until the process ends.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut bytes = [0; 4_096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

fn relay(effects: Effects) -> Relay {
    Relay::start("127.0.0.1:0".parse().unwrap(), echo(), effects, 1).unwrap()
}

fn client(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// How long a byte takes to come back.
fn turn(client: &mut TcpStream) -> Nanos {
    let begin = clock::now();
    client.write_all(b"x").unwrap();
    client.read_exact(&mut [0]).unwrap();
    clock::now() - begin
}

#[test]
fn bytes_pass_whole_and_in_order_with_the_end_of_the_stream() {
    let effects = Effects {
        direction: Direction::Both,
        delay: Nanos::from_millis(2),
        jitter: Nanos::from_millis(2),
        ..Effects::default()
    };
    let relay = relay(effects);
    relay.order(Order::Begin).unwrap();
    let mut sender = client(&relay);
    let mut receiver = sender.try_clone().unwrap();
    let sent: Vec<u8> = (0..1_000_000u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let expected = sent.clone();
    let writer = thread::spawn(move || {
        sender.write_all(&sent).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    receiver.read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
}

/// A delay is only a lower bound: the host adds to it.
#[test]
fn responses_are_delayed_during_an_episode_only() {
    let delay = Nanos::from_millis(30);
    let relay = relay(Effects { delay, ..Effects::default() });
    let mut client = client(&relay);
    let quick = (0..20).map(|_| turn(&mut client)).min().unwrap();
    assert!(quick < delay, "{quick}");
    relay.order(Order::Begin).unwrap();
    assert!((0..5).all(|_| turn(&mut client) >= delay));
    relay.order(Order::End).unwrap();
    let quick = (0..20).map(|_| turn(&mut client)).min().unwrap();
    assert!(quick < delay, "{quick}");
}

#[test]
fn a_black_hole_passes_nothing_and_loses_nothing() {
    let relay = relay(Effects { cut: Cut::BlackHole, ..Effects::default() });
    let mut client = client(&relay);
    turn(&mut client);
    relay.order(Order::Begin).unwrap();
    client.write_all(b"abc").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    let error = client.read(&mut [0; 3]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    relay.order(Order::End).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = [0; 3];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"abc");
}

#[test]
fn a_reset_reaches_the_client_and_only_in_the_episode() {
    let relay = relay(Effects { cut: Cut::Reset, ..Effects::default() });
    let mut early = client(&relay);
    turn(&mut early);
    relay.order(Order::Begin).unwrap();
    assert_eq!(early.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut within = TcpStream::connect(relay.address()).unwrap();
    assert_eq!(within.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    relay.order(Order::End).unwrap();
    turn(&mut client(&relay));
    assert_eq!(relay.shared.counters.read()[3], 2);
}

#[test]
fn an_unreachable_target_is_counted_and_the_client_is_disconnected() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let relay = Relay::start("127.0.0.1:0".parse().unwrap(), nobody, Effects::default(), 1).unwrap();
    assert!(client(&relay).read(&mut [0]).is_err());
    assert_eq!(relay.shared.counters.read()[4], 1);
}

#[test]
fn an_address_in_use_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = Relay::start(address, address, Effects::default(), 1).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on {address}: ")), "{error}");
}

#[test]
fn dropping_the_relay_closes_its_sockets() {
    let relay = relay(Effects::default());
    let address = relay.address();
    let mut client = client(&relay);
    turn(&mut client);
    drop(relay);
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    assert!(TcpStream::connect(address).is_err());
}
