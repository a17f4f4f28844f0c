use codec::http1::*;
use engine::*;
use record::*;
use std::sync::atomic::AtomicBool;
use units::*;
struct L(Interval);
impl Listener for L {
    fn started(&mut self, s: &Started) { println!("{s:?}"); }
    fn interval(&mut self, i: &Interval) { self.0.merge(i); println!("{} {:?} ok {} cpu {}", i.index, i.length, i.counts.ok, i.worker_cpu); }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let url: Url = Url::parse(&a[1]).unwrap();
    let conns: u64 = a[2].parse().unwrap();
    let secs: u64 = a[3].parse().unwrap();
    let load = a.get(4).map_or(Load::Closed, |r| Load::Open(schedule::Arrivals::Constant(r.parse().unwrap())));
    let peer = format!("{}:{}", url.host(), url.port()).parse().map_or(Peer::Name{host: url.host().to_owned(), port: url.port()}, Peer::Address);
    let p = Http1::new(&[Request::get(url)], 1, &Checks::default(), Limits::default()).unwrap();
    let plan = Plan { load, window: Some(Nanos::from_secs(secs)), request_limit: None, pool: PoolPlan { connections: conns, callers: if a.len() > 4 {100000} else {conns}, checkout_timeout: None, connect_timeout: Some(Nanos::from_secs(5)), request_timeout: Some(Nanos::from_secs(30)) }, peer, workers: 1, kernel_stamps: std::env::var("NOSTAMP").is_err(), drain: Nanos::from_secs(5), interval: Nanos::from_secs(1) };
    let c0 = host::process_cpu().unwrap();
    let mut l = L(Interval::default());
    let f = run(&plan, &p, &AtomicBool::new(false), &mut l).unwrap();
    let c = host::process_cpu().unwrap() - c0;
    println!("{f:?}\n{:?} ended {}", l.0.counts, l.0.ended());
    println!("{:?}", l.0.failures());
    for ph in Phase::ALL { if let Some(d) = l.0.phase(ph) { println!("{:14} n {} mean {} p50 {} p99 {} max {}", ph.name(), d.count(), d.mean().unwrap(), d.at_rank(d.count()/2+1).unwrap(), d.at_rank((d.count() as f64*0.99) as u64).unwrap(), d.max().unwrap()); } }
    println!("cpu/req {:.3} us  {:.0}/s", c.0 as f64/1e3/l.0.counts.sent as f64, l.0.counts.ok as f64/f.elapsed.as_secs_f64());
}
