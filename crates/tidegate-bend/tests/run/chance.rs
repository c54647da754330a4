//! Programs by chance, compared with what a plain interpreter of the same trees computes: which value is moved, which is
//! copied, what a row binds, in which order a call reads its arguments.
//!
//! The seeds are fixed, so a failure here is a failure everywhere.

use std::fmt::Write as _;

/// A linear congruential generator: the tests need variety, not quality.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A variable: its place among those of its type.
type Variable = usize;

/// A number.
enum Number {
    Literal(u32),
    Variable(Variable),
    OfNat(Variable),
    Sum(Box<Number>, Box<Number>),
    Product(Box<Number>, Box<Number>),
    Pick(Box<Number>, Box<Number>, Box<Number>, Box<Number>),
    Length(Box<List>),
    /// A closure over the first, at the second.
    Closure(Box<Number>, Box<Number>),
    Call(usize, Box<Number>, Variable, Box<List>),
}

/// A list of numbers.
enum List {
    Variable(Variable),
    Empty,
    Cell(Box<Number>, Box<List>),
    Append(Box<List>, Box<List>),
}

/// The body of a definition.
enum Body {
    Number(Number),
    Let(Number, Box<Body>),
    LetList(List, Box<Body>),
    Parallel(Number, Number, Box<Body>),
    /// Nothing; a number and the rest, which are bound.
    MatchList(Variable, Box<Body>, Box<Body>),
    /// `0n`; `2n+p`; any other.
    MatchNat(Variable, Box<Body>, Box<Body>, Box<Body>),
    /// Two lists at once: `x <> _ y <> ys`; any other.
    MatchBoth(Variable, Variable, Box<Body>, Box<Body>),
}

/// What is in scope: how many of each.
#[derive(Clone, Default)]
struct Scope {
    numbers: usize,
    nats: usize,
    lists: usize,
    /// Those that a match may still take apart.
    open_nats: Vec<Variable>,
    open_lists: Vec<Variable>,
    /// How many definitions may be called.
    callable: usize,
}

impl Scope {
    /// That of a definition's body.
    fn of_parameters(callable: usize) -> Scope {
        Scope { numbers: 1, nats: 1, lists: 1, open_nats: vec![0], open_lists: vec![0], callable }
    }

    fn more(&self, numbers: usize, nats: usize, lists: usize) -> Scope {
        let scope = self.clone();
        Scope { numbers: self.numbers + numbers, nats: self.nats + nats, lists: self.lists + lists, ..scope }
    }
}

/// The values of what is in scope.
#[derive(Clone, Default)]
struct Values {
    numbers: Vec<u32>,
    nats: Vec<u64>,
    lists: Vec<Vec<u32>>,
}

fn number(random: &mut Random, scope: &Scope, depth: usize) -> Number {
    let more = |random: &mut Random| Box::new(number(random, scope, depth - 1));
    if depth == 0 {
        return match random.below(3) {
            0 => Number::Literal(random.below(100) as u32),
            1 => Number::OfNat(random.below(scope.nats)),
            _ => Number::Variable(random.below(scope.numbers)),
        };
    }
    match random.below(9) {
        0 | 1 => Number::Sum(more(random), more(random)),
        2 => Number::Product(more(random), more(random)),
        3 => Number::Pick(more(random), more(random), more(random), more(random)),
        4 => Number::Length(Box::new(list(random, scope, depth - 1))),
        5 => Number::Closure(more(random), more(random)),
        6 if scope.callable > 0 => {
            let (called, nat) = (random.below(scope.callable), random.below(scope.nats));
            Number::Call(called, more(random), nat, Box::new(list(random, scope, depth - 1)))
        }
        _ => Number::Variable(random.below(scope.numbers)),
    }
}

fn list(random: &mut Random, scope: &Scope, depth: usize) -> List {
    let more = |random: &mut Random| Box::new(list(random, scope, depth - 1));
    match random.below(if depth == 0 { 2 } else { 5 }) {
        0 => List::Empty,
        2 | 3 => List::Cell(Box::new(number(random, scope, depth - 1)), more(random)),
        4 => List::Append(more(random), more(random)),
        _ => List::Variable(random.below(scope.lists)),
    }
}

fn body(random: &mut Random, scope: &Scope, depth: usize) -> Body {
    if depth == 0 {
        return Body::Number(number(random, scope, 2));
    }
    let more = |random: &mut Random, scope: &Scope| Box::new(body(random, scope, depth - 1));
    match random.below(6) {
        1 => Body::LetList(list(random, scope, 2), more(random, &scope.more(0, 0, 1))),
        2 => {
            let two = scope.more(2, 0, 0);
            Body::Parallel(number(random, scope, 2), number(random, scope, 2), more(random, &two))
        }
        3 if !scope.open_lists.is_empty() => {
            let mut rest = scope.clone();
            let matched = rest.open_lists.swap_remove(random.below(scope.open_lists.len()));
            let mut cell = rest.more(1, 0, 1);
            cell.open_lists.push(scope.lists);
            Body::MatchList(matched, more(random, &rest), more(random, &cell))
        }
        4 if !scope.open_nats.is_empty() => {
            let mut rest = scope.clone();
            let matched = rest.open_nats.swap_remove(random.below(scope.open_nats.len()));
            let mut above = rest.more(0, 1, 0);
            above.open_nats.push(scope.nats);
            Body::MatchNat(matched, more(random, &rest), more(random, &above), more(random, &rest))
        }
        5 if scope.open_lists.len() > 1 => {
            let mut rest = scope.clone();
            let left = rest.open_lists.swap_remove(random.below(rest.open_lists.len()));
            let right = rest.open_lists.swap_remove(random.below(rest.open_lists.len()));
            let mut cells = rest.more(2, 0, 1);
            cells.open_lists.push(scope.lists);
            Body::MatchBoth(left, right, more(random, &cells), more(random, &rest))
        }
        _ => Body::Let(number(random, scope, 2), more(random, &scope.more(1, 0, 0))),
    }
}

impl Number {
    fn text(&self, at: &str) -> String {
        match self {
            Number::Literal(value) => value.to_string(),
            Number::Variable(variable) => format!("x{variable}"),
            Number::OfNat(variable) => format!("U32.from_nat(n{variable})"),
            Number::Sum(a, b) => format!("U32.add({}, {})", a.text(at), b.text(at)),
            Number::Product(a, b) => format!("({} * {} : U32)", a.text(at), b.text(at)),
            Number::Pick(a, b, c, d) => {
                format!("Bool.pick(U32, U32.is_lt({}, {}), {}, {})", a.text(at), b.text(at), c.text(at), d.text(at))
            }
            Number::Length(list) => format!("U32.from_nat(List.length(&2, U32, {}))", list.text(at)),
            Number::Closure(a, b) => format!("mixer({}, {})", a.text(at), b.text(at)),
            Number::Call(called, a, nat, list) => format!("f{called}({}, n{nat}, {})", a.text(at), list.text(at)),
        }
    }

    fn value(&self, program: &[Body], values: &Values) -> u32 {
        let of = |number: &Number| number.value(program, values);
        match self {
            Number::Literal(value) => *value,
            Number::Variable(variable) => values.numbers[*variable],
            Number::OfNat(variable) => values.nats[*variable] as u32,
            Number::Sum(a, b) => of(a).wrapping_add(of(b)),
            Number::Product(a, b) => of(a).wrapping_mul(of(b)),
            Number::Pick(a, b, c, d) => {
                if of(a) < of(b) {
                    of(c)
                } else {
                    of(d)
                }
            }
            Number::Length(list) => list.value(program, values).len() as u32,
            Number::Closure(a, b) => of(a).wrapping_mul(31).wrapping_add(of(b)),
            Number::Call(called, a, nat, list) => {
                let arguments = Values {
                    numbers: vec![of(a)],
                    nats: vec![values.nats[*nat]],
                    lists: vec![list.value(program, values)],
                };
                program[*called].value(program, arguments)
            }
        }
    }
}

impl List {
    fn text(&self, at: &str) -> String {
        match self {
            List::Variable(variable) => format!("l{variable}"),
            List::Empty => String::from("[]"),
            List::Cell(head, tail) => format!("Con{{{}, {}}}", head.text(at), tail.text(at)),
            List::Append(a, b) => format!("List.append(&2, U32, {}, {})", a.text(at), b.text(at)),
        }
    }

    fn value(&self, program: &[Body], values: &Values) -> Vec<u32> {
        match self {
            List::Variable(variable) => values.lists[*variable].clone(),
            List::Empty => Vec::new(),
            List::Cell(head, tail) => {
                let mut all = vec![head.value(program, values)];
                all.extend(tail.value(program, values));
                all
            }
            List::Append(a, b) => [a.value(program, values), b.value(program, values)].concat(),
        }
    }
}

impl Body {
    fn text(&self, scope: &Scope, at: &str, out: &mut String) {
        let (numbers, nats, lists) = (scope.numbers, scope.nats, scope.lists);
        let inner = format!("{at}    ");
        let line = |out: &mut String, text: String| out.push_str(&format!("{at}{text}\n"));
        match self {
            Body::Number(number) => line(out, number.text(at)),
            Body::Let(value, rest) => {
                line(out, format!("+x{numbers} : U32 = {}", value.text(at)));
                rest.text(&scope.more(1, 0, 0), at, out);
            }
            Body::LetList(value, rest) => {
                line(out, format!("+l{lists} : List<&2, U32> = {}", value.text(at)));
                rest.text(&scope.more(0, 0, 1), at, out);
            }
            Body::Parallel(a, b, rest) => {
                let (first, second) = (numbers, numbers + 1);
                line(out, format!("+x{first} +x{second} = id({}) id({})", a.text(at), b.text(at)));
                rest.text(&scope.more(2, 0, 0), at, out);
            }
            Body::MatchList(list, empty, cell) => {
                line(out, format!("match l{list}:"));
                line(out, String::from("  case []:"));
                empty.text(scope, &inner, out);
                line(out, format!("  case +x{numbers} <> +l{lists}:"));
                cell.text(&scope.more(1, 0, 1), &inner, out);
            }
            Body::MatchNat(nat, zero, above, other) => {
                line(out, format!("match n{nat}:"));
                line(out, String::from("  case 0n:"));
                zero.text(scope, &inner, out);
                line(out, format!("  case 2n++n{nats}:"));
                above.text(&scope.more(0, 1, 0), &inner, out);
                line(out, String::from("  case _:"));
                other.text(scope, &inner, out);
            }
            Body::MatchBoth(left, right, cells, other) => {
                line(out, format!("match l{left} l{right}:"));
                line(out, format!("  case +x{numbers} <> _ +x{} <> +l{lists}:", numbers + 1));
                cells.text(&scope.more(2, 0, 1), &inner, out);
                line(out, String::from("  case _ _:"));
                other.text(scope, &inner, out);
            }
        }
    }

    fn value(&self, program: &[Body], mut values: Values) -> u32 {
        match self {
            Body::Number(number) => number.value(program, &values),
            Body::Let(value, rest) => {
                let value = value.value(program, &values);
                values.numbers.push(value);
                rest.value(program, values)
            }
            Body::LetList(value, rest) => {
                let value = value.value(program, &values);
                values.lists.push(value);
                rest.value(program, values)
            }
            Body::Parallel(a, b, rest) => {
                let both = [a.value(program, &values), b.value(program, &values)];
                values.numbers.extend(both);
                rest.value(program, values)
            }
            Body::MatchList(list, empty, cell) => match values.lists[*list].split_first() {
                None => empty.value(program, values),
                Some((&head, tail)) => {
                    let tail = tail.to_vec();
                    values.numbers.push(head);
                    values.lists.push(tail);
                    cell.value(program, values)
                }
            },
            Body::MatchNat(nat, zero, above, other) => match values.nats[*nat] {
                0 => zero.value(program, values),
                1 => other.value(program, values),
                more => {
                    values.nats.push(more - 2);
                    above.value(program, values)
                }
            },
            Body::MatchBoth(left, right, cells, other) => {
                let (left, right) = (&values.lists[*left], &values.lists[*right]);
                match (left.first().copied(), right.split_first()) {
                    (Some(first), Some((&second, tail))) => {
                        let tail = tail.to_vec();
                        values.numbers.extend([first, second]);
                        values.lists.push(tail);
                        cells.value(program, values)
                    }
                    _ => other.value(program, values),
                }
            }
        }
    }
}

const HEAD: &str = "
def id(x: U32) -> U32:
  x

def mixer(k: U32) -> U32 -> U32:
  x => (k * 31 + x : U32)
";

#[test]
fn programs_compute_what_their_trees_mean() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let (mut program, mut text) = (Vec::new(), String::from(HEAD));
        for at in 0..4 {
            let scope = Scope::of_parameters(at);
            let definition = body(&mut random, &scope, 4);
            let _ = writeln!(text, "\ndef f{at}(+x0: U32, +n0: Nat, +l0: List<&2, U32>) -> U32:");
            definition.text(&scope, "  ", &mut text);
            program.push(definition);
        }
        let mut expected = Vec::new();
        let mut calls = Vec::new();
        for at in 0..12 {
            let arguments = Values {
                numbers: vec![random.below(50) as u32],
                nats: vec![random.below(6) as u64],
                lists: vec![(0..random.below(4) as u32).collect()],
            };
            let (x, n, list) = (arguments.numbers[0], arguments.nats[0], &arguments.lists[0]);
            calls.push(format!("f{}({x}, {n}n, {list:?})", at % 4));
            expected.push(program[at % 4].value(&program, arguments));
        }
        let _ = writeln!(text, "\ndef main() -> List<U32>:\n  [{}]", calls.join(", "));
        assert_eq!(crate::printed(&text), format!("{expected:?}\n"), "seed {seed}\n{text}");
    }
}
