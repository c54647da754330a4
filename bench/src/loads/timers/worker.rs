//! A loop that treats its timers as a worker of a runtime of ours will, and nothing else.
//!
//! It polls tasks in the order in which they were woken. When none is ready it turns its own wheel, and sleeps until
//! there is something to turn; while some are ready it turns the wheel once every [`POLLS_A_TURN`] polls. So one sees what
//! the wheel gives when no other thread and no foreign executor's wake queue stand between a timer and its task.
//!
//! It is **not a runtime**: it polls a fixed set of tasks, has neither budget nor stealing nor I/O, and sleeps through a
//! wake that comes from another thread.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tidegate_wait::timer::{Next, Wheel};

use crate::harness::Failure;
use crate::loads::hooks;

/// As often as tokio's current-thread runtime looks at its own timers.
const POLLS_A_TURN: usize = 61;

/// The numbers of the tasks to poll, oldest wake first. Never locked while a task runs.
#[derive(Default)]
struct Ready(Mutex<VecDeque<usize>>);

impl Ready {
    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TaskWaker {
    number: usize,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.lock().push_back(self.number);
    }
}

enum Task<F: Future> {
    Running(Pin<Box<F>>, Waker),
    Ended(F::Output),
}

/// Runs `futures` to their ends on a wheel of this thread's and returns what they returned, in their order.
pub(super) fn run<F: Future>(futures: impl Iterator<Item = F>) -> Result<Vec<F::Output>, Failure> {
    let wheel = hooks::wheel()?;
    hooks::on(&wheel, || {
        let ready = Arc::new(Ready::default());
        let task = |(number, future)| {
            let waker = Waker::from(Arc::new(TaskWaker { number, ready: ready.clone() }));
            waker.wake_by_ref();
            Task::Running(Box::pin(future), waker)
        };
        let mut tasks: Vec<Task<F>> = futures.enumerate().map(task).collect();
        poll_all(&mut tasks, &ready, &wheel)?;
        let output = |task| match task {
            Task::Ended(output) => Some(output),
            Task::Running(..) => None,
        };
        Ok(tasks.into_iter().filter_map(output).collect())
    })
}

fn poll_all<F: Future>(tasks: &mut [Task<F>], ready: &Ready, wheel: &Wheel) -> Result<(), Failure> {
    let mut running = tasks.len();
    let mut polls = 0;
    while running > 0 {
        // Its own statement: the lock must be open again before the task runs.
        let next = ready.lock().pop_front();
        let Some(number) = next else {
            turn_or_sleep(ready, wheel)?;
            continue;
        };
        running -= usize::from(poll(&mut tasks[number]));
        polls += 1;
        if polls % POLLS_A_TURN == 0 {
            // What is left to turn has time until the next look.
            let _next = wheel.turn();
        }
    }
    Ok(())
}

/// True: the task has ended just now.
fn poll<F: Future>(task: &mut Task<F>) -> bool {
    let Task::Running(future, waker) = task else { return false };
    match future.as_mut().poll(&mut Context::from_waker(waker)) {
        Poll::Ready(output) => {
            *task = Task::Ended(output);
            true
        }
        Poll::Pending => false,
    }
}

/// Turns the wheel once; sleeps if that woke nobody.
fn turn_or_sleep(ready: &Ready, wheel: &Wheel) -> Result<(), Failure> {
    let next = wheel.turn();
    match next {
        _ if !ready.lock().is_empty() => Ok(()),
        Next::More => Ok(()),
        Next::At(at) => {
            std::thread::sleep(Duration::from_nanos(at.saturating_sub(wheel.now_ns())));
            Ok(())
        }
        Next::Idle => Err(Failure::new("tasks are left that nobody will wake")),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_wait::timer::sleep;

    use super::*;

    #[test]
    fn outputs_stand_in_the_order_of_the_tasks() {
        let nap = |ms| async move {
            sleep(Duration::from_millis(ms)).await;
            ms
        };
        assert_eq!(run([3, 0, 2, 1].into_iter().map(nap)).unwrap(), [3, 0, 2, 1]);
    }

    #[test]
    fn a_task_that_nobody_wakes_is_a_failure() {
        assert!(run([std::future::pending::<()>()].into_iter()).is_err());
    }
}
