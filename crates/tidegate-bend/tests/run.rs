//! The machine: what programs compute, whatever they are made of, on one thread and on several.
//!
//! What effects do is tested with the command (`tidegate-cli/tests/run.rs`).

mod run {
    pub(crate) mod chance;
}

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_bend::run::{End, Output, Ran, Runnable, Settings};
use tidegate_bend::{check_text, Options};

/// A place to print to that can be read.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn compiled(body: &str) -> Result<Runnable, String> {
    let text = format!("import Base\n\n{body}");
    let checked = check_text("test.bend", &text, Options::default())
        .unwrap_or_else(|failure| panic!("{}\n{text}", failure.render()));
    Runnable::new(&checked).map_err(|refused| refused.to_string())
}

fn on_threads(runnable: &Runnable, threads: usize) -> (Ran, String) {
    let page = Page::default();
    let threads = NonZeroUsize::new(threads).expect("there is a thread");
    let settings = Settings { threads, arguments: vec![String::from("an argument")] };
    let ran = runnable.run(settings, &Output::to(page.clone()));
    let printed = page.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (ran, String::from_utf8(printed).expect("UTF-8"))
}

/// What a program prints, on one thread and on several.
pub(crate) fn printed(body: &str) -> String {
    let runnable = compiled(body).expect("it can run");
    let outputs: Vec<String> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let (ran, printed) = on_threads(&runnable, threads);
            assert!(matches!(ran.end, End::Finished), "{:?}\n{body}", ran.end);
            printed
        })
        .collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:?}\n{body}");
    outputs[0].clone()
}

/// How a program fails.
fn failure(body: &str) -> String {
    let (ran, _) = on_threads(&compiled(body).expect("it can run"), 1);
    match ran.end {
        End::Failed(text) => text,
        other => panic!("{other:?}\n{body}"),
    }
}

#[test]
fn functions_take_fewer_and_more_arguments() {
    let body = "
def three(a: U32, b: U32, c: U32) -> U32:
  (a * 100 + b * 10 + c : U32)

def adder(k: U32) -> U32 -> U32 -> U32:
  x => y => (k * 100 + x * 10 + y : U32)

def call(f: U32 -> U32, x: U32) -> U32:
  f(x)

def main() -> List<U32>:
  [call(three(1, 2), 3), adder(4, 5, 6), call(adder(7, 8), 9), call(U32.add(1), 1), call(U32.inc, 1)]
";
    assert_eq!(printed(body), "[123, 456, 789, 2, 2]\n");
}

#[test]
fn a_shared_closure_keeps_what_it_captured() {
    let body = "
def apply(f: U32 -> List<U32>, x: U32) -> List<U32>:
  f(x)

def both(+xs: List<&2, U32>) -> List<&2, U32> & List<&2, U32>:
  (List.append(&2, U32, xs, xs), List.reverse(&2, U32, xs))

def main() -> List<&2, U32> & List<&2, U32>:
  both([1, 2, 3])
";
    assert_eq!(printed(body), "([1, 2, 3, 1, 2, 3], [3, 2, 1])\n");
}

#[test]
fn values_that_have_forms_of_their_own_are_constructors_too() {
    let body = "
def upper(c: Char) -> Char:
  match c:
    case Chr{+code}: Chr{(code - 32 : U32)}

def shout(s: String) -> String:
  match s:
    case SNil{}: \"!\"
    case SCon{c, rest}: SCon{upper(c), shout(rest)}

def pred(n: Nat) -> Nat:
  match n:
    case Zero{}: Zero{}
    case Succ{p}: p

def starts(s: String) -> U32:
  match s:
    case SCon{'a', SCon{'b', _}}: 1
    case SCon{'a', _}: 2
    case \"xyz\": 3
    case _: 4

def sum(a: Array<U32>) -> U32:
  match a:
    case ALeaf{x}: x
    case ANode{xs, ys}: (sum(xs) + sum(ys) : U32)

def filled() -> Array<U32>:
  a = [3 : U32*4n]
  a[6] <- 10
  a

def main() -> String & Nat & Nat & List<U32> & U32 & Array<U32>:
  (shout(\"abc\"), pred(Succ{Succ{1n}}), pred(0n),
   [starts(\"abx\"), starts(\"ax\"), starts(\"xyz\"), starts(\"\")],
   sum(filled()), ANode{ALeaf{1}, ALeaf{2}})
";
    assert_eq!(printed(body), "(\"ABC!\", 2n, 0n, [1, 2, 3, 4], 19, [1, 2])\n");
}

#[test]
fn the_first_row_that_fits_wins() {
    let body = "
def f(n: Nat, xs: List<&2, Nat>, b: Bool) -> U32:
  match n xs b:
    case 0n [] _: 1
    case 2n+p [0n] True{}: 2
    case n 1n+k <> _ _: U32.from_nat(Nat.add(n, k))
    case 5n _ False{}: 4
    case other x <> rest _: U32.from_nat(Nat.add(other, Nat.add(x, List.length(&2, Nat, rest))))
    case _ _ _: 6

def main() -> List<U32>:
  [f(0n, [], True{}), f(3n, [0n], True{}), f(3n, [41n], True{}), f(5n, [], False{}), f(7n, [0n, 9n], True{}), f(1n, [], True{})]
";
    assert_eq!(printed(body), "[1, 2, 43, 4, 8, 6]\n");
}

#[test]
fn parallel_lets_of_any_shape() {
    let body = "
def tree(n: Nat, +k: U32) -> U32:
  match n:
    case 0n: k
    case 1n++p:
      a b c = tree(p, (k + 1 : U32)) tree(p, k) U32.add(k, 1)
      (a + b * 3 + c : U32)

def main() -> U32:
  tree(16n, 1)
";
    fn tree(n: u32, k: u32) -> u32 {
        match n {
            0 => k,
            _ => {
                let (a, b, c) = (tree(n - 1, k.wrapping_add(1)), tree(n - 1, k), k.wrapping_add(1));
                a.wrapping_add(b.wrapping_mul(3)).wrapping_add(c)
            }
        }
    }
    assert_eq!(printed(body), format!("{}\n", tree(16, 1)));
}

#[test]
fn an_error_in_a_side_of_a_parallel_let_is_the_programs() {
    let body = "
def tree(n: Nat) -> Nat:
  match n:
    case 0n: Nat.mul(281474976710655n, 2n)
    case 1n++p:
      a b = tree(p) tree(p)
      Nat.add(a, b)

def main() -> Nat:
  tree(15n)
";
    let runnable = compiled(body).expect("it can run");
    for threads in [1, 4] {
        let (ran, printed) = on_threads(&runnable, threads);
        assert!(matches!(&ran.end, End::Failed(text) if text.contains("2^48-1")), "{:?}", ran.end);
        assert_eq!((ran.end.status(), printed.as_str()), (1, ""));
    }
}

#[test]
fn depth_costs_heap_only_and_has_an_end() {
    let body = "
def down(n: Nat) -> U32:
  match n:
    case 0n: 0
    case 1n+p: (1 + down(p) : U32)

def main() -> U32:
  down(1000000n)
";
    assert_eq!(printed(body), "1000000\n");
    let endless = "
@unsafe
def down(n: U32) -> U32:
  (1 + down(n) : U32)

def main() -> U32:
  down(1)
";
    assert!(failure(endless).contains("recursion without end"), "{}", failure(endless));
}

#[test]
fn long_literals_and_deep_values_are_built_printed_and_dropped() {
    let numbers: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let list = numbers.join(", ");
    let body = format!(
        "
def one() -> U32:
  1

def main() -> List<U32> & List<U32>:
  ([{list}], [{}one()])
",
        "one(), ".repeat(2_000)
    );
    assert_eq!(printed(&body), format!("([{list}], [{}1])\n", "1, ".repeat(2_000)));
    let deep = "
type Nest is Data:
  End{}
  Nest{inner: Nest}

def nest(n: Nat, inner: Nest) -> Nest:
  match n:
    case 0n: inner
    case 1n+p: nest(p, Nest{inner})

def main() -> Nest:
  nest(200000n, End{})
";
    assert_eq!(printed(deep), format!("{}End{{}}{}\n", "Nest{".repeat(200_000), "}".repeat(200_000)));
}

#[test]
fn what_cannot_run_is_refused_before_anything_does() {
    let sockets = "
def serve(+port: U32) -> IO(Unit):
  do IO<Unit>:
    IO.print(\"never printed\")
    listener : Listener <- IO.try(Listener, TCP.listen(port))
    Listener.close(listener)

def main() -> IO(Unit):
  serve(80)
";
    let refusal = compiled(sockets).expect_err("there are no sockets");
    assert!(refusal.starts_with("bend: ") && refusal.contains("serve at test.bend:"), "{refusal}");
    let foreign = "
def twice(n: U32) -> IO(U32): import \"twice.c\"

def main() -> IO(U32):
  twice(3)
";
    let refusal = compiled(foreign).expect_err("there is no C");
    assert!(refusal.contains("twice") && refusal.contains("main at test.bend:"), "{refusal}");
    let unused = "
def twice(n: U32) -> IO(U32): import \"twice.c\"

def main() -> U32:
  3
";
    assert_eq!(printed(unused), "3\n");
}

#[test]
fn a_deadlock_names_who_waits_where_and_for_what() {
    let body = "
def wait(+c: Chan(U32)) -> IO(U32):
  do IO<U32>:
    got : Maybe<&1, U32> <- Chan.recv(U32, c)
    return Maybe.default(&1, U32, got, 0)

def main() -> IO(Unit):
  do IO<Unit>:
    +full : Chan(U32) <- Chan.new(U32, 0)
    +empty : Chan(U32) <- Chan.new(U32, 7)
    IO.spawn(Result<&1, &1, U32, Unit>, Chan.send(U32, full, 1))
    +answer : Chan(U32) <- IO.fork(U32, wait(empty))
    IO.print(\"waits\")
    U32 <- IO.join(U32, answer)
    IO.print(\"never\")
";
    let (ran, printed) = on_threads(&compiled(body).expect("it can run"), 1);
    assert_eq!((printed.as_str(), ran.end.status()), ("waits\n", 1));
    let message = ran.end.message().expect("it says so");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(
        lines,
        [
            "bend: deadlock: every computation waits on a channel",
            "  main: recv on a channel of room 1, made at test.bend:14 in main",
            "  spawned at test.bend:13 in main: send on a channel of room 0, made at test.bend:11 in main",
            "  spawned at test.bend:14 in main: recv on a channel of room 7, made at test.bend:12 in main",
        ]
    );
    assert_eq!((ran.stats.computations, ran.stats.peak_parked), (3, 3));
}

#[test]
fn what_is_printed_stands_in_the_output_before_the_program_sleeps() {
    /// Tells when each line came.
    #[derive(Clone, Default)]
    struct Watch(Arc<Mutex<Vec<(std::time::Instant, usize)>>>);
    impl Write for Watch {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let seen = (std::time::Instant::now(), bytes.len());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let body = "
def main() -> IO(Unit):
  do IO<Unit>:
    IO.print(\"one\")
    IO.print(\"two\")
    IO.sleep(50)
    IO.print(\"three\")
";
    let watch = Watch::default();
    let ran = compiled(body).expect("it can run").run(Settings::default(), &Output::to(watch.clone()));
    assert!(matches!(ran.end, End::Finished));
    let seen = watch.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lens: Vec<usize> = seen.iter().map(|(_, len)| *len).collect();
    assert_eq!(lens, [8, 6], "both lines at once, before the sleep");
    assert!(seen[1].0 - seen[0].0 >= std::time::Duration::from_millis(49));
}

#[test]
fn an_output_that_fails_ends_the_run() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("full"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let body = "
def lines(n: Nat) -> IO(Unit):
  match n:
    case 0n: IO.sleep(60000)
    case 1n+p:
      do IO<Unit>:
        IO.print(\"a line\")
        lines(p)

def main() -> IO(Unit):
  lines(100000n)
";
    let ran = compiled(body).expect("it can run").run(Settings::default(), &Output::to(Full));
    assert!(matches!(&ran.end, End::OutputFailed(_)), "{:?}", ran.end);
    assert_eq!(ran.end.message().as_deref(), Some("bend: cannot write to stdout: full"));
}
