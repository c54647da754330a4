//! Fixed work for `ci/counts`, which counts its instructions under valgrind: no clock decides anything here.
//!
//!     tidegate-counts CASE N      does the case's operation N times
//!     tidegate-counts cases       lists the cases
//!     tidegate-counts sizes       the bytes of each operation's future, a line each
#![forbid(unsafe_code)]

use std::future::{poll_fn, Future};
use std::hint::black_box;
use std::mem::size_of_val;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_channel::{bounded, Receiver, Sender};
use tidegate_runtime::{spawn_local, yield_now, Runtime};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

/// What it is called, and what does it so many times.
type Case = (&'static str, fn(u64));

const CASES: [Case; 11] = [
    ("try_send+try_recv", ready),
    ("send+recv", |times| through(times, |tx, value| tx.send(value), Receiver::recv)),
    ("send+recv+timeout", |times| {
        through(times, |tx, value| tx.send(value).timeout(HOUR), |rx| rx.recv().timeout(HOUR))
    }),
    ("send+recv+token", with_a_token),
    ("send+recv-1024-bytes", large),
    ("send+recv-blocking", blocking),
    ("recv-parks+send", hand_over),
    ("park+drop-send", park_and_drop),
    ("timer-insert+drop", timers),
    ("spawn+join", spawn_and_join),
    ("yield", yields),
];

const HOUR: Duration = Duration::from_secs(3_600);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cases"] => CASES.iter().for_each(|(name, _)| println!("{name}")),
        ["sizes"] => sizes(),
        [case, times] => match (CASES.iter().find(|(name, _)| *name == case), times.parse()) {
            (Some((_, work)), Ok(times)) => work(times),
            _ => return ExitCode::from(2),
        },
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn ready(times: u64) {
    let (tx, rx) = bounded::<u64>(64);
    for value in 0..times {
        tx.try_send(value).expect("there is room");
        assert_eq!(rx.try_recv().ok(), Some(value));
    }
}

/// Sends and receives, of which none ever waits.
fn through<'a, S, R>(times: u64, send: impl Fn(&'a Sender<u64>, u64) -> S, recv: impl Fn(&'a Receiver<u64>) -> R)
where
    S: Future<Output: Fine<()>>,
    R: Future<Output: Fine<u64>>,
{
    // Leaked: the futures borrow it for as long as the caller likes.
    let (tx, rx) = Box::leak(Box::new(bounded::<u64>(64)));
    let mut cx = Context::from_waker(Waker::noop());
    for value in 0..times {
        let sent = pin!(send(tx, value)).poll(&mut cx);
        assert!(sent.map(Fine::fine) == Poll::Ready(Some(())));
        let received = pin!(recv(rx)).poll(&mut cx);
        assert!(received.map(Fine::fine) == Poll::Ready(Some(value)));
    }
}

/// A result without its error.
trait Fine<T> {
    fn fine(self) -> Option<T>;
}

impl<T, E> Fine<T> for Result<T, E> {
    fn fine(self) -> Option<T> {
        self.ok()
    }
}

fn with_a_token(times: u64) {
    let token: &CancelToken = Box::leak(Box::new(CancelToken::new()));
    through(times, |tx, value| tx.send(value).cancel_on(token), |rx| rx.recv().cancel_on(token));
}

/// A value that takes many instructions to copy, all of which is looked at; the futures move once before they are polled, as
/// in a program.
fn large(times: u64) {
    fn at_once<F: Future>(future: F) -> F::Output {
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(future).poll(&mut cx) {
            Poll::Ready(output) => output,
            Poll::Pending => unreachable!("there is room, or a value"),
        }
    }
    let (tx, rx) = bounded::<[u64; 128]>(64);
    for value in 0..times {
        assert!(at_once(tx.send(black_box([value; 128]))).is_ok());
        let received = at_once(rx.recv()).expect("a value was sent");
        assert_eq!(black_box(&received)[7], value);
    }
}

fn blocking(times: u64) {
    let (tx, rx) = bounded::<u64>(64);
    for value in 0..times {
        assert!(tx.send(value).wait().is_ok());
        assert_eq!(rx.recv().wait().ok(), Some(value));
    }
}

/// A receive parks, a send hands its value over, the receive is polled again.
fn hand_over(times: u64) {
    let (tx, rx) = bounded::<u64>(64);
    let mut cx = Context::from_waker(Waker::noop());
    for value in 0..times {
        let mut receive = pin!(rx.recv());
        assert!(receive.as_mut().poll(&mut cx).is_pending());
        tx.try_send(value).expect("a receive waits");
        assert_eq!(receive.poll(&mut cx).map(Result::ok), Poll::Ready(Some(value)));
    }
}

fn park_and_drop(times: u64) {
    let (tx, _rx) = bounded::<u64>(1);
    tx.try_send(0).expect("there is room");
    let mut cx = Context::from_waker(Waker::noop());
    for value in 0..times {
        let send = pin!(tx.send(value));
        assert!(send.poll(&mut cx).is_pending());
    }
}

/// On a runtime: its own thread turns the wheel, and no other wakes meanwhile.
fn on_a_runtime(work: impl Future<Output = ()> + 'static) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(work).expect("nothing blocks for ever");
}

fn timers(times: u64) {
    on_a_runtime(poll_fn(move |cx| {
        for _ in 0..times {
            let sleep = pin!(sleep(HOUR));
            assert!(sleep.poll(cx).is_pending());
        }
        Poll::Ready(())
    }));
}

fn spawn_and_join(times: u64) {
    on_a_runtime(async move {
        for value in 0..times {
            assert_eq!(spawn_local(async move { value }).await.ok(), Some(value));
        }
    });
}

fn yields(times: u64) {
    on_a_runtime(async move {
        for _ in 0..times {
            yield_now().await;
        }
    });
}

fn sizes() {
    fn with<const N: usize>() {
        let (tx, rx) = bounded::<[u8; N]>(1);
        let token = CancelToken::new();
        let say = |name: &str, bytes: usize| println!("{name}/{N} {bytes}");
        say("send", size_of_val(&tx.send([0; N])));
        say("send+timeout", size_of_val(&tx.send([0; N]).timeout(HOUR)));
        say("send+token", size_of_val(&tx.send([0; N]).cancel_on(&token)));
        say("send+both", size_of_val(&tx.send([0; N]).timeout(HOUR).cancel_on(&token)));
        say("recv", size_of_val(&rx.recv()));
    }
    with::<8>();
    with::<64>();
    with::<1_024>();
}
