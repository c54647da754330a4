//! The node, its states and the intrusive list, single-threaded: this file "holds the lock" (W1, W2, W4; G2, G3).

mod support;

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;

use support::{Rng, Woken};
use tidegate_wait::list::List;
use tidegate_wait::waiter::{Kind, Node, State, Ticket};

const KINDS: [Kind; 7] = [Kind::Send, Kind::Receive, Kind::Permit, Kind::Batch, Kind::Arm, Kind::Wait, Kind::Sleep];

/// A pinned list.
fn list() -> Box<List> {
    let list = Box::new(List::new());
    // SAFETY: at its final place, and nobody else knows it.
    unsafe { list.init() };
    list
}

/// Nodes that do not move, each with a waker of its own, and what each was last parked as.
struct Pool {
    nodes: Vec<*mut Node>,
    woken: Vec<(Arc<Woken>, std::task::Waker)>,
    kinds: Vec<Kind>,
}

impl Pool {
    fn new(n: usize) -> Pool {
        Pool {
            nodes: (0..n).map(|_| Box::into_raw(Box::new(Node::new()))).collect(),
            woken: (0..n).map(|_| Woken::new()).collect(),
            kinds: vec![Kind::Wait; n],
        }
    }

    fn node(&self, i: usize) -> &Node {
        // SAFETY: made by `new`, freed by `drop`.
        unsafe { &*self.nodes[i] }
    }

    fn number(&self, node: *const Node) -> usize {
        self.nodes.iter().position(|&known| std::ptr::eq(known, node)).expect("a node of this pool")
    }

    fn park(&mut self, list: &List, i: usize, kind: Kind) {
        self.kinds[i] = kind;
        // SAFETY: one thread; the node is not parked.
        unsafe { list.push_back(self.nodes[i], kind, self.woken[i].1.clone()) };
    }

    /// Takes a node that was unlinked out of Waiting, and checks that it kept its kind and its waker.
    fn finish(&self, i: usize, end: State) {
        let node = self.node(i);
        // SAFETY: one thread; unlinked and still Waiting.
        unsafe {
            assert!(node.is_waiting());
            assert_eq!(node.kind(), self.kinds[i], "the links keep the kind");
            let waker = node.take_waker().expect("a waiting node has a waker");
            assert!(std::ptr::eq(waker.data(), self.woken[i].1.data()), "its own waker");
            node.finish(end);
        }
        assert_eq!(node.state(), end);
        assert!(!node.is_waiting());
    }

    fn unlink(&self, i: usize) {
        // SAFETY: one thread; the node is linked.
        unsafe { List::unlink(self.nodes[i]) };
    }

    fn pop(&self, list: &List) -> Option<usize> {
        // SAFETY: one thread.
        unsafe { list.pop_front() }.map(|node| self.number(node))
    }

    /// The list's content, taken out: from the front, at most one more than there can be.
    fn drain(&self, list: &List) -> Vec<usize> {
        let mut order = Vec::new();
        while let Some(i) = self.pop(list) {
            order.push(i);
            assert!(order.len() <= self.nodes.len(), "a cycle: {order:?}");
            self.finish(i, State::Closed);
        }
        order
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for &node in &self.nodes {
            // SAFETY: made by `Box::into_raw`; parked ones were finished, or their wakers are leaked.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

fn parked(n: usize) -> (Pool, Box<List>) {
    let (mut pool, list) = (Pool::new(n), list());
    (0..n).for_each(|i| pool.park(&list, i, KINDS[i % KINDS.len()]));
    (pool, list)
}

#[test]
fn removal_from_any_place_keeps_the_others_in_order() {
    // G2, G3: head, middle, tail, singleton.
    for n in 1..=5 {
        for gone in 0..n {
            let (mut pool, list) = parked(n);
            pool.unlink(gone);
            pool.finish(gone, State::TimedOut);
            // SAFETY: one thread.
            unsafe {
                assert_eq!(list.count(), n - 1);
                assert_eq!(list.is_empty(), n == 1);
            }
            // Whoever parks now stands at the end: the tail link was mended.
            pool.park(&list, gone, Kind::Receive);
            let expected: Vec<_> = (0..n).filter(|&i| i != gone).chain([gone]).collect();
            assert_eq!(pool.drain(&list), expected, "{gone} of {n} left");
            assert!(pool.pop(&list).is_none());
        }
    }
}

#[test]
fn enqueue_after_a_time_out() {
    let (mut pool, list) = parked(3);
    pool.unlink(2);
    pool.finish(2, State::TimedOut);
    pool.node(2).set_quiet(State::Init);
    pool.park(&list, 2, Kind::Send);
    pool.unlink(0);
    pool.finish(0, State::TimedOut);
    pool.park(&list, 0, Kind::Send);
    assert_eq!(pool.drain(&list), [1, 2, 0]);
}

#[test]
fn wake_before_a_time_out() {
    // The wake has popped the node: the time-out that comes after finds it not waiting (O1).
    let (pool, list) = parked(2);
    assert_eq!(pool.pop(&list), Some(0));
    pool.finish(0, State::Done(Ticket::new(3)));
    assert!(!pool.node(0).is_waiting());
    assert_eq!(pool.node(0).state(), State::Done(Ticket::new(3)));
    assert_eq!(pool.drain(&list), [1]);
}

#[test]
fn a_node_is_used_again_and_again() {
    let (mut pool, list) = (Pool::new(1), list());
    for (turn, &kind) in KINDS.iter().cycle().take(20).enumerate() {
        assert_ne!(pool.node(0).state(), State::Waiting);
        pool.park(&list, 0, kind);
        assert_eq!(pool.node(0).state(), State::Waiting);
        // SAFETY: one thread.
        assert_eq!(unsafe { list.front() }, Some(pool.nodes[0].cast_const()));
        if turn % 2 == 0 {
            pool.unlink(0);
            pool.finish(0, State::Cancelled);
        } else {
            assert_eq!(pool.drain(&list), [0]);
        }
        // SAFETY: one thread.
        assert!(unsafe { list.is_empty() });
        pool.node(0).set_quiet(State::Init);
    }
    assert_eq!(Arc::strong_count(&pool.woken[0].0), 2, "every clone of the waker was taken out (W4)");
}

#[test]
fn splice_in_all_shapes() {
    for (ahead, moved) in [(0, 0), (0, 1), (0, 3), (2, 0), (2, 1), (2, 3)] {
        let (mut pool, from, to) = (Pool::new(ahead + moved + 2), list(), list());
        (0..ahead).for_each(|i| pool.park(&to, i, Kind::Wait));
        (ahead..ahead + moved).for_each(|i| pool.park(&from, i, Kind::Batch));
        // SAFETY: one thread.
        unsafe {
            from.splice(&to);
            assert!(from.is_empty());
            assert_eq!(to.count(), ahead + moved);
        }
        // Both go on as lists.
        pool.park(&from, ahead + moved, Kind::Send);
        pool.park(&to, ahead + moved + 1, Kind::Send);
        let last = ahead + moved + 1;
        // A spliced node leaves from where it stands now.
        let mut expected: Vec<_> = (0..ahead + moved).chain([last]).collect();
        if moved == 3 {
            for gone in [ahead, ahead + 2] {
                pool.unlink(gone);
                pool.finish(gone, State::TimedOut);
                expected.retain(|&i| i != gone);
            }
        }
        assert_eq!(pool.drain(&to), expected);
        assert_eq!(pool.drain(&from), [ahead + moved]);
    }
}

#[test]
fn states_round_trip() {
    let node = Node::new();
    assert_eq!(node.state(), State::Init);
    let tickets = [0, 1, 7, 8, usize::MAX >> 4, usize::MAX >> 3].map(|n| State::Done(Ticket::new(n)));
    let others = [State::Closed, State::TimedOut, State::Cancelled, State::Spent, State::Init];
    for state in tickets.into_iter().chain(others) {
        node.set_quiet(state);
        assert_eq!(node.state(), state);
        assert!(!node.is_waiting());
    }
}

/// 10^5 random steps on two lists against two deques.
#[test]
fn random_steps_against_a_model() {
    const NODES: usize = 24;
    let ends =
        [State::TimedOut, State::Cancelled, State::Closed, State::Spent, State::Done(Ticket::new(usize::MAX >> 3))];
    let (mut pool, lists) = (Pool::new(NODES), [list(), list()]);
    let mut model = [VecDeque::new(), VecDeque::new()];
    let mut rng = Rng(1);
    let steps = if cfg!(miri) { 600 } else { 100_000 };
    for _ in 0..steps {
        let (i, which) = (rng.below(NODES), rng.below(2));
        let end = ends[rng.below(ends.len())];
        match rng.below(8) {
            0..=3 if !model.iter().flatten().any(|&parked| parked == i) => {
                pool.park(&lists[which], i, KINDS[rng.below(KINDS.len())]);
                model[which].push_back(i);
            }
            0..=4 => {
                // From wherever it stands, without knowing in which list.
                if let Some(list) = model.iter_mut().find(|list| list.contains(&i)) {
                    list.retain(|&parked| parked != i);
                    pool.unlink(i);
                    pool.finish(i, end);
                }
            }
            5 | 6 => {
                let popped = pool.pop(&lists[which]);
                assert_eq!(popped, model[which].pop_front());
                if let Some(popped) = popped {
                    pool.finish(popped, end);
                }
            }
            _ => {
                // SAFETY: one thread.
                unsafe { lists[which].splice(&lists[1 - which]) };
                let moved = std::mem::take(&mut model[which]);
                model[1 - which].extend(moved);
            }
        }
        for (list, model) in lists.iter().zip(&model) {
            // SAFETY: one thread.
            unsafe {
                assert_eq!(list.is_empty(), model.is_empty());
                assert_eq!(list.front().map(|node| pool.number(node)), model.front().copied());
            }
        }
        if rng.below(32) == 0 {
            for (list, model) in lists.iter().zip(&model) {
                // SAFETY: one thread.
                assert_eq!(unsafe { list.count() }, model.len());
                assert_eq!(pool.drain(list), Vec::from(model.clone()));
                for &i in model {
                    let kind = pool.kinds[i];
                    pool.park(list, i, kind);
                }
            }
        }
    }
    assert_eq!(pool.drain(&lists[0]), Vec::from(model[0].clone()));
    assert_eq!(pool.drain(&lists[1]), Vec::from(model[1].clone()));
}

/// CASE 32, in shape: all nodes but the two neighbours are overwritten with garbage, so whoever looks at one crashes.
#[test]
fn unlinking_touches_the_neighbours_only() {
    let n = if cfg!(miri) { 50 } else { 100_000 };
    for gone in [1, n / 2, n - 2] {
        let list = list();
        let nodes: Vec<Box<MaybeUninit<Node>>> = (0..n).map(|_| Box::new(MaybeUninit::new(Node::new()))).collect();
        let at = |i: usize| nodes[i].as_ptr();
        // SAFETY: one thread; nodes do not move. The garbage is never used as a node again: the list is forgotten.
        unsafe {
            (0..n).for_each(|i| list.push_back(at(i), Kind::Wait, std::task::Waker::noop().clone()));
            for i in (0..n).filter(|i| i.abs_diff(gone) > 1) {
                at(i).cast_mut().cast::<u8>().write_bytes(0xa7, size_of::<Node>());
            }
            List::unlink(at(gone));
            assert!((*at(gone)).take_waker().is_some());
            (*at(gone)).finish(State::TimedOut);
            // The neighbours know each other now: the second leaves, and the first points behind it.
            if gone + 1 == n - 1 {
                List::unlink(at(gone + 1));
                let late = Box::new(Node::new());
                list.push_back(&raw const *late, Kind::Wait, std::task::Waker::noop().clone());
                List::unlink(&raw const *late);
            }
        }
    }
}

#[test]
fn tickets_order_hand_offs() {
    let max = usize::MAX >> 3;
    let before = |a: usize, b: usize| Ticket::new(a).before(Ticket::new(b));
    for (a, b) in [(0, 1), (1, 2), (7, 8), (5, max / 2), (max - 1, max), (1, 1 << (usize::BITS - 4))] {
        assert!(before(a, b) && !before(b, a), "{a} {b}");
    }
    // Around the end of the numbers.
    for (a, b) in [(max, 0), (max, 1), (max - 5, 5), (max - 5, 0), (max, max / 2 - 1)] {
        assert!(before(a, b) && !before(b, a), "{a} {b}");
    }
    for a in [0, 1, max / 2, max] {
        assert!(!before(a, a), "{a}");
    }
    assert_eq!(Ticket::new(max + 1), Ticket::new(0), "tickets wrap");
    let mut rng = Rng(7);
    for _ in 0..if cfg!(miri) { 50 } else { 1000 } {
        let (a, step) = (rng.next() as usize, 1 + rng.next() as usize % (max / 2));
        assert!(before(a, a.wrapping_add(step)) && !before(a.wrapping_add(step), a), "{a} {step}");
    }
}
