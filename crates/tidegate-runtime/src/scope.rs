//! Children that end before their parent goes on.
//!
//! A scope is a token, a list of failures, and a channel that nobody sends on: every child has a sender, and the scope
//! receives until it is closed, which is when the last child has gone. A limit on concurrency is a second channel, whose
//! permits are the turns.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::{pin, Pin};
use core::task::{Context, Poll};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_channel::{bounded, try_bounded, OwnedPermit, OwnedReserving, Receiver, Sender, WeakSender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Unlimited};
use tidegate_wait::Operation;

use crate::here;
use crate::task::{AbortHandle, JoinError, JoinHandle, Origin, Panic, Work};

/// Nobody sends one: the channel is there for its end.
enum Never {}

struct Shared<E> {
    token: CancelToken,
    /// Strong while the body or a child lives.
    alive: WeakSender<Never>,
    /// The receiver only keeps the channel open.
    turns: Option<(Sender<()>, Receiver<()>)>,
    state: Mutex<State<E>>,
}

struct State<E> {
    failures: Vec<Failure<E>>,
    children: BTreeMap<u64, AbortHandle>,
    /// Those that have gone before they were entered above: on another thread, or refused.
    gone: BTreeSet<u64>,
    spawned: u64,
    /// Whoever is entered from now on is aborted at once: another thread may be in the middle of a spawn.
    is_aborted: bool,
}

impl<E> Shared<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn fail(&self, failure: Failure<E>) {
        self.state().failures.push(failure);
        self.token.cancel_with("a task of the scope failed");
    }
}

/// What went wrong in a task of a scope, or in its body.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// It returned an error.
    Error(E),
    /// It panicked.
    Panicked(Panic),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::Panicked(panic) => write!(f, "panicked: {}", panic.message()),
        }
    }
}

/// Why a scope has no output.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScopeError<E> {
    /// Tasks, or the body, failed: the first failure, which cancelled the scope's token, and those that came after.
    Failed {
        /// The first.
        first: Failure<E>,
        /// The others, in order.
        others: Vec<Failure<E>>,
    },
    /// The token that the scope was to stand under was cancelled before it began; nothing ran.
    Cancelled,
}

impl<E> ScopeError<E> {
    /// All failures, in order.
    #[must_use]
    pub fn into_failures(self) -> Vec<Failure<E>> {
        match self {
            ScopeError::Failed { first, others } => std::iter::once(first).chain(others).collect(),
            ScopeError::Cancelled => Vec::new(),
        }
    }
}

impl<E: fmt::Display> fmt::Display for ScopeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeError::Failed { first, others } if others.is_empty() => {
                write!(f, "a task of the scope failed: {first}")
            }
            ScopeError::Failed { first, others } => {
                write!(f, "a task of the scope failed: {first} (and {} more)", others.len())
            }
            ScopeError::Cancelled => f.write_str("the scope's token was cancelled before it began"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ScopeError<E> {}

/// A scope, for its body and its tasks; made by [`scope`].
pub struct Scope<E> {
    shared: Arc<Shared<E>>,
}

impl<E> Clone for Scope<E> {
    fn clone(&self) -> Self {
        Scope { shared: self.shared.clone() }
    }
}

impl<E> fmt::Debug for Scope<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        f.debug_struct("Scope")
            .field("children", &state.children.len())
            .field("failures", &state.failures.len())
            .finish_non_exhaustive()
    }
}

impl<E: 'static> Scope<E> {
    /// The scope's token. Cancelled by the first failure, by [`Scope::cancel`], with the token that the scope stands under,
    /// and when the scope is dropped before its end. Tasks that wait under it end then.
    #[must_use]
    pub fn token(&self) -> &CancelToken {
        &self.shared.token
    }

    /// Asks all tasks to end.
    pub fn cancel(&self) {
        self.shared.token.cancel_with("the scope was cancelled");
    }

    /// Asks, and drops at its next turn each task that has not ended, whether it looks at the token or not; also those that
    /// are spawned later.
    pub fn abort(&self) {
        self.cancel();
        let mut state = self.shared.state();
        state.is_aborted = true;
        let children: Vec<_> = state.children.values().cloned().collect();
        drop(state);
        children.iter().for_each(AbortHandle::abort);
    }

    /// Spawns a child. Its error, or its panic, is the scope's failure, and cancels the others; the handle, which may be
    /// dropped, says [`JoinError::Failed`] then.
    ///
    /// After the scope's end the child has ended before it began, with [`JoinError::Shutdown`]. In a cancelled scope it runs,
    /// unless it still waits for its turn (the limit of [`scope_on`]): then it ends with [`JoinError::Aborted`].
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn spawn<F, T>(&self, future: F) -> JoinHandle<T>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Send,
    {
        // SAFETY: future, output and error are `Send`; what else a child has is so then.
        unsafe { self.spawn_at(future, Origin::new(Location::caller()), true) }
    }

    /// [`Scope::spawn`] of a task that need not be `Send`.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn spawn_local<F, T>(&self, future: F) -> JoinHandle<T>
    where
        F: Future<Output = Result<T, E>> + 'static,
        T: 'static,
    {
        // SAFETY: it stays here.
        unsafe { self.spawn_at(future, Origin::new(Location::caller()), false) }
    }

    /// [`Scope::spawn_local`] with a name.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn spawn_local_named<F, T>(&self, name: impl Into<String>, future: F) -> JoinHandle<T>
    where
        F: Future<Output = Result<T, E>> + 'static,
        T: 'static,
    {
        // SAFETY: it stays here.
        unsafe { self.spawn_at(future, Origin::named(name.into(), Location::caller()), false) }
    }

    /// # Safety
    /// `is_shared`: future, output and error are `Send`.
    #[track_caller]
    unsafe fn spawn_at<F, T>(&self, future: F, origin: Origin, is_shared: bool) -> JoinHandle<T>
    where
        F: Future<Output = Result<T, E>> + 'static,
        T: 'static,
    {
        let local = here();
        let alive = self.shared.alive.upgrade();
        let is_over = alive.is_none();
        let turn = match &self.shared.turns {
            Some((turns, _)) => Turn::Waits(turns.clone().into_reserve().cancel_on_owned(self.shared.token.clone())),
            None => Turn::Has(None),
        };
        let mut state = self.shared.state();
        state.spawned += 1;
        let number = state.spawned;
        drop(state);
        let child = Child { future, turn, shared: self.shared.clone(), number, _alive: alive };
        if is_over {
            return local.shared().refuse(child, origin, JoinError::Shutdown);
        }
        let handle = match is_shared {
            // SAFETY: the caller's promise.
            true => unsafe { local.spawn_shared(child, origin) },
            false => local.spawn_checked(child, origin),
        };
        let mut state = self.shared.state();
        if !state.gone.remove(&number) {
            state.children.insert(number, handle.abort_handle());
        }
        let is_aborted = state.is_aborted;
        drop(state);
        if is_aborted {
            handle.abort();
        }
        handle
    }
}

enum Turn {
    Waits(OwnedReserving<(), Cancellable<'static, Unlimited>>),
    Has(
        /// Given to the next when the child has gone.
        #[allow(dead_code)]
        Option<OwnedPermit<()>>,
    ),
}

/// A task of a scope.
struct Child<F, E> {
    future: F,
    turn: Turn,
    shared: Arc<Shared<E>>,
    number: u64,
    /// The scope waits until all of these are gone. The last field: it goes after all others.
    _alive: Option<Sender<Never>>,
}

impl<F, E> Drop for Child<F, E> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let handle = state.children.remove(&self.number);
        if handle.is_none() {
            state.gone.insert(self.number);
        }
        drop(state);
        drop(handle);
    }
}

impl<F: Future<Output = Result<T, E>>, T, E> Work for Child<F, E> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        // SAFETY: `future` and `turn` are pinned with the whole: neither is moved out, and the destructor moves nothing.
        let (this, mut turn) = unsafe {
            let this = Pin::into_inner_unchecked(self);
            let turn: *mut Turn = &raw mut this.turn;
            (this, Pin::new_unchecked(&mut *turn))
        };
        // SAFETY: as above.
        if let Turn::Waits(reserving) = unsafe { turn.as_mut().get_unchecked_mut() } {
            // SAFETY: as above.
            match unsafe { Pin::new_unchecked(reserving) }.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(permit)) => turn.set(Turn::Has(Some(permit))),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(JoinError::Aborted)),
            }
        }
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let failure = match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(output))) => return Poll::Ready(Ok(output)),
            Ok(Poll::Ready(Err(error))) => Failure::Error(error),
            Err(payload) => Failure::Panicked(Panic::new(payload)),
        };
        this.shared.fail(failure);
        Poll::Ready(Err(JoinError::Failed))
    }
}

/// Runs `body`, which may spawn tasks into the scope, and returns when the body and all of them have ended.
///
/// The first failure (an error or a panic of a task, an error of the body) cancels the scope's token; the scope still waits
/// for all tasks. So a task should wait under the token: [`Operation::cancel_on`] hands back what it has. One that does not
/// look at it runs to its end.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_runtime::{scope, Runtime};
/// let rt = Runtime::new()?;
/// let sum = rt.block_on(scope(|s| async move {
///     let (a, b) = (s.spawn(async { Ok(1) }), s.spawn(async { Ok(2) }));
///     Ok::<_, std::io::Error>(a.await.unwrap() + b.await.unwrap())
/// }))??;
/// assert_eq!(sum, 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ScopeError::Failed`] with all failures, the first one first.
///
/// # Panics
/// As the body does, after all tasks have ended. Outside of a runtime, if it spawns.
///
/// # Cancel safety
/// Dropped before its end, a scope cancels its token and aborts its tasks: each is dropped before it would be polled again.
pub async fn scope<T, E, F, Fut>(body: F) -> Result<T, ScopeError<E>>
where
    F: FnOnce(Scope<E>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: 'static,
{
    run(CancelToken::new(), None, body).await
}

/// [`scope`] under a token: when it is cancelled, so is the scope's. If it is already, nothing runs. With a `limit`, at most
/// so many tasks run at once; the others wait for their turns, in the order in which they were spawned.
///
/// # Errors
/// As [`scope`]; [`ScopeError::Cancelled`].
///
/// # Panics
/// As [`scope`]; when `limit` is zero (no task would ever have its turn), or beyond what a channel can hold.
pub async fn scope_on<T, E, F, Fut>(token: &CancelToken, limit: Option<usize>, body: F) -> Result<T, ScopeError<E>>
where
    F: FnOnce(Scope<E>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: 'static,
{
    assert!(limit != Some(0), "a scope with a limit of 0 tasks would wait for ever for the first one");
    if token.is_cancelled() {
        return Err(ScopeError::Cancelled);
    }
    run(token.child(), limit, body).await
}

/// Ends the tasks of a scope that is dropped before its end.
struct Guard<E: 'static> {
    scope: Scope<E>,
    ended: bool,
}

impl<E: 'static> Drop for Guard<E> {
    fn drop(&mut self) {
        if !self.ended {
            self.scope.abort();
        }
    }
}

async fn run<T, E, F, Fut>(token: CancelToken, limit: Option<usize>, body: F) -> Result<T, ScopeError<E>>
where
    F: FnOnce(Scope<E>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: 'static,
{
    let (alive, ended) = bounded::<Never>(1);
    let turns = limit.map(|limit| match try_bounded(limit) {
        Ok(turns) => turns,
        Err(error) => panic!("a scope with a limit of {limit} tasks: {error}"),
    });
    let shared = Arc::new(Shared {
        token,
        alive: alive.downgrade(),
        turns,
        state: Mutex::new(State {
            failures: Vec::new(),
            children: BTreeMap::new(),
            gone: BTreeSet::new(),
            spawned: 0,
            is_aborted: false,
        }),
    });
    let mut guard = Guard { scope: Scope { shared: shared.clone() }, ended: false };
    let body = body_to_its_end(body, guard.scope.clone(), alive).await;
    let output = match body {
        Ok(Ok(output)) => Some(Ok(output)),
        Ok(Err(error)) => {
            shared.fail(Failure::Error(error));
            None
        }
        Err(panic) => {
            shared.token.cancel_with("the body of the scope panicked");
            Some(Err(panic))
        }
    };
    last_one_gone(&ended).await;
    guard.ended = true;
    let mut failures = core::mem::take(&mut shared.state().failures).into_iter();
    match (output, failures.next()) {
        (Some(Err(panic)), _) => resume_unwind(panic.into_payload()),
        (Some(Ok(output)), None) => Ok(output),
        (_, Some(first)) => Err(ScopeError::Failed { first, others: failures.collect() }),
        (None, None) => unreachable!("a body without an output has left its failure"),
    }
}

/// The body's output or panic; its future, and its share of the scope's life, are gone afterwards.
async fn body_to_its_end<T, E, F, Fut>(body: F, scope: Scope<E>, _alive: Sender<Never>) -> Result<Result<T, E>, Panic>
where
    F: FnOnce(Scope<E>) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let future = catch_unwind(AssertUnwindSafe(|| body(scope))).map_err(Panic::new)?;
    let mut future = pin!(future);
    core::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(ended)) => Poll::Ready(Ok(ended)),
        Err(payload) => Poll::Ready(Err(Panic::new(payload))),
    })
    .await
}

async fn last_one_gone(ended: &Receiver<Never>) {
    match ended.recv().await {
        Ok(never) => match never {},
        Err(_closed) => {}
    }
}

/// Runs all futures as tasks and returns their outputs in the order of the futures.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_runtime::{join_all, Runtime};
/// let squares = Runtime::new()?.block_on(join_all((1..=3).map(|n| async move { n * n })))?;
/// let squares: Vec<i32> = squares.into_iter().map(Result::unwrap).collect();
/// assert_eq!(squares, [1, 4, 9]);
/// # Ok(())
/// # }
/// ```
///
/// An output is missing only where the task panicked or the runtime ended: [`JoinError`].
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancel safety
/// Dropped before its end, it aborts the tasks.
pub async fn join_all<I>(futures: I) -> Vec<Result<<I::Item as Future>::Output, JoinError>>
where
    I: IntoIterator,
    I::Item: Future + 'static,
{
    let scoped = scope(|s| async move {
        let futures = futures.into_iter();
        let handles: Vec<_> = futures.map(|future| spawn_infallible(&s, future)).collect();
        let mut outputs = Vec::with_capacity(handles.len());
        for handle in handles {
            outputs.push(handle.await.unwrap_or_else(Err));
        }
        Ok::<_, Infallible>(outputs)
    });
    match scoped.await {
        Ok(outputs) => outputs,
        Err(_) => unreachable!("no task of this scope fails: each puts its panic into its output"),
    }
}

#[derive(Debug)]
enum Infallible {}

/// A child whose panic is its own output, so that the others go on.
fn spawn_infallible<F: Future + 'static>(
    scope: &Scope<Infallible>,
    future: F,
) -> JoinHandle<Result<F::Output, JoinError>> {
    scope.spawn_local(async move {
        let mut future = pin!(future);
        let polled = core::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(JoinError::panicked(payload))),
        });
        Ok(polled.await)
    })
}

/// What came of a [`race`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Raced<T> {
    /// Which racer ended first.
    pub winner: usize,
    /// With what.
    pub output: Result<T, JoinError>,
    /// What the others ended with after they were cancelled, with their numbers: values that they had taken by then are here.
    pub others: Vec<(usize, Result<T, JoinError>)>,
}

/// Runs all racers as tasks until the first one ends; cancels the token that the others got, and waits for them.
///
/// No value that a loser has taken is lost: a loser that waits under the token ends with it, or with its value, and either is
/// in [`Raced::others`]. A loser that does not look at the token is waited for.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_channel::bounded;
/// use tidegate_runtime::{race, Runtime};
/// use tidegate_wait::Operation;
/// let (fast, slow) = (bounded(1), bounded::<u8>(1));
/// fast.0.try_send(7)?;
/// let receivers = [slow.1, fast.1].map(|rx| {
///     move |token| async move { rx.recv().cancel_on(&token).await }
/// });
/// let raced = Runtime::new()?.block_on(race(receivers))?.unwrap();
/// assert_eq!((raced.winner, raced.output.unwrap().unwrap()), (1, 7));
/// assert!(raced.others[0].1.as_ref().unwrap().is_err());
/// # Ok(())
/// # }
/// ```
///
/// `None`: there were no racers.
///
/// # Panics
/// Outside of a runtime.
///
/// # Cancel safety
/// Dropped before its end, it aborts the racers.
pub async fn race<I, R, F>(racers: I) -> Option<Raced<F::Output>>
where
    I: IntoIterator<Item = R>,
    R: FnOnce(CancelToken) -> F,
    F: Future + 'static,
{
    let scoped = scope(|s| async move {
        let (tx, rx) = tidegate_channel::unbounded();
        let mut racers: Vec<_> = racers
            .into_iter()
            .enumerate()
            .map(|(number, racer)| {
                let (future, tx) = (racer(s.token().clone()), tx.clone());
                let ended = async move {
                    let output = future.await;
                    // The race goes on until all have ended, so the receiver is there.
                    let _ = tx.try_send(number);
                    output
                };
                Some(spawn_infallible(&s, ended))
            })
            .collect();
        drop(tx);
        // Closed before a number: all have panicked, or there are none.
        let winner = rx.recv().await.unwrap_or(0);
        s.token().cancel_with("another racer was first");
        let Some(first) = racers.get_mut(winner).and_then(Option::take) else { return Ok(None) };
        let output = first.await.unwrap_or_else(Err);
        let mut others = Vec::with_capacity(racers.len() - 1);
        for (number, racer) in racers.into_iter().enumerate() {
            if let Some(racer) = racer {
                others.push((number, racer.await.unwrap_or_else(Err)));
            }
        }
        Ok::<_, Infallible>(Some(Raced { winner, output, others }))
    });
    match scoped.await {
        Ok(raced) => raced,
        Err(_) => unreachable!("no task of this scope fails: each puts its panic into its output"),
    }
}
